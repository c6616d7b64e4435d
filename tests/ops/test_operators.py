"""Python's operators on tensors."""

import math
import operator

import numpy as np
import pytest

import dualflow as df

X = np.array([[1.0, -2.0], [3.0, 4.0]])
I = np.array([[7, -2], [3, 4]])  # noqa: E741  # integers next to X
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("other", [2.0, 3, np.array([2.0, 5.0])])
def test_arithmetic_with_a_tensor_on_either_side(op, other):
    np.testing.assert_allclose(op(df.constant(X), other), op(X, other))
    result = op(other, df.constant(X))
    assert isinstance(result, df.Tensor)
    np.testing.assert_allclose(result, op(other, X))


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift])
def test_bits(op):
    np.testing.assert_array_equal(op(df.constant(I), 2), op(I, 2))
    np.testing.assert_array_equal(op(5, df.constant(np.abs(I))), op(5, np.abs(I)))


@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_comparisons(op):
    np.testing.assert_array_equal(op(df.constant(X), 3.0), op(X, 3.0))
    np.testing.assert_array_equal(op(3.0, df.constant(X)), op(3.0, X))


@pytest.mark.parametrize("op", [operator.neg, operator.pos, operator.abs])
def test_signs(op):
    np.testing.assert_array_equal(op(df.constant(X)), op(X))


def test_invert_flips_bools_and_bits():
    assert (~df.constant([True, False])).numpy().tolist() == [False, True]
    assert (~df.constant([0, 5])).numpy().tolist() == [-1, -6]


@pytest.mark.parametrize("exponent", [2, 2.0, 3, 0.5, -1.0, 0])
def test_powers(exponent):
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(df.constant(X) ** exponent, X**exponent)
    np.testing.assert_allclose(2.0 ** df.constant(X), 2.0**X)


def test_an_integer_squared_is_an_integer_and_to_a_float_power_a_float():
    x = df.constant([3])
    assert (x**2).dtype is df.int32
    assert (x**2.0).dtype is df.float32
    assert (x**0.5).dtype is df.float32


@pytest.mark.parametrize(
    "call", [lambda x: x // 0, lambda x: x % 0, lambda x: df.floordiv(x, [0]), lambda x: x**-1]
)
def test_integers_are_not_divided_by_zero_nor_raised_to_negative_powers(call):
    with pytest.raises(df.errors.InvalidArgumentError, match=r"zero|negative power"):
        call(df.constant([3]))


def test_floats_divided_by_zero_are_infinite():
    x = df.constant([3.0, -3.0])
    assert (x / 0.0).numpy().tolist() == [np.inf, -np.inf]


def test_tensors_of_shapes_that_do_not_broadcast_are_not_equal(mode):
    x, y = df.constant([1.0, 2.0]), df.constant([1.0, 2.0, 3.0])
    same, differ = mode(lambda x, y: (x == y, x != y))(x, y)
    assert same.numpy() == np.False_
    assert differ.numpy() == np.True_
    assert same.shape == differ.shape == ()
    assert not bool(x == [1.0, 2.0, 3.0])


def test_equality_with_what_is_no_tensor_is_false():
    x = df.constant([1.0, 2.0])
    assert (x == None) is False  # noqa: E711  # the comparison itself is under test
    assert (x != None) is True  # noqa: E711  # the comparison itself is under test
    assert (x == "a") is False


def test_tensors_have_no_hash_and_report_what_to_use():
    with pytest.raises(TypeError, match="ref"):
        hash(df.constant(1.0))


@pytest.mark.parametrize("other", [object(), None, {1, 2}, "a"])
def test_a_non_number_is_refused(other):
    with pytest.raises(TypeError, match=r"can't become|no common dtype"):
        df.constant([1.0]) + other
    with pytest.raises(TypeError, match=r"can't become|no common dtype|unsupported operand"):
        other + df.constant([1.0])


def test_matrices_multiply_with_arrays_on_either_side():
    np.testing.assert_array_equal(df.constant(X) @ X, X @ X)
    np.testing.assert_array_equal(X @ df.constant(X), X @ X)


def test_transposes():
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(df.constant(X).T, X.T)
    np.testing.assert_array_equal(df.constant(x).mT, x.swapaxes(1, 2))
    with pytest.raises(df.errors.InvalidArgumentError, match="mT"):
        _ = df.constant(x).T


def test_shapes_that_do_not_broadcast_are_named_with_the_op():
    with pytest.raises(df.errors.InvalidArgumentError, match=r"add\(.*\[2, 2\].*\[3\].*broadcast"):
        df.constant(X) + np.ones(3)


def test_the_angle_of_a_point_names_its_coordinates():
    assert float(df.atan2(y=1.0, x=2.0)) == pytest.approx(math.atan2(1.0, 2.0))
