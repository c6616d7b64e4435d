"""The dtypes and values of tensors created from Python and NumPy values."""

import array
import collections

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError

TOP = 2**64 - 1


@pytest.mark.parametrize("value", [TOP, [TOP, 1], [[2**63], [0]], [TOP, True]])
def test_integers_beyond_int64_fit_uint64(mode, value):
    result = mode(lambda: df.constant(value, df.uint64))().numpy()
    np.testing.assert_array_equal(result, np.array(value, np.uint64), strict=True)


def test_integers_beyond_int64_make_floats_where_these_are_requested(mode):
    assert mode(lambda: df.constant([TOP, 1], df.float32))().numpy().tolist() == [2.0**64, 1.0]
    assert df.Variable(TOP, dtype=df.uint64).numpy() == TOP


@pytest.mark.parametrize("value", [2**64, [2**64], [TOP, -1], -(2**63) - 1])
def test_integers_beyond_uint64_are_refused(value):
    with pytest.raises(InvalidArgumentError, match="outside int64 and uint64"):
        df.constant(value, df.uint64)


@pytest.mark.parametrize("value", [TOP, [TOP, 1]])
def test_integers_beyond_int64_need_a_dtype(value):
    with pytest.raises(InvalidArgumentError, match="name its dtype, uint64"):
        df.constant(value)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [([False, 3], df.int32), ([3, False], df.int32), ([True, 1.0], df.float32), ([[True], [2]], df.int32)],
)
def test_bools_among_numbers_are_numbers_at_any_position(mode, value, dtype):
    result = mode(lambda: df.constant(value))()
    assert result.dtype is dtype
    assert result.numpy().tolist() == np.array(value).tolist()


def test_bools_among_numbers_in_a_given_dtype():
    assert df.constant([False, 3], df.float64).numpy().tolist() == [0.0, 3.0]


def test_a_shape_is_a_tensor_of_integers_even_if_it_has_no_axes(mode):
    scalar = df.ones([]).shape
    assert mode(lambda: df.convert_to_tensor(scalar))().numpy().tolist() == []
    assert mode(lambda: df.convert_to_tensor(scalar))().dtype is df.int32
    assert mode(lambda: df.reduce_prod(scalar))().dtype is df.int32
    assert mode(lambda: df.concat([[2, 3], scalar], 0))().numpy().tolist() == [2, 3]
    assert mode(lambda: df.convert_to_tensor(df.TensorShape([2**33])))().dtype is df.int64


@pytest.mark.parametrize("other", ["hello", None, 3.5, object, [1]])
def test_a_dtype_equals_nothing_that_is_none(other):
    assert not df.float32 == other  # noqa: SIM201  both operators are called
    assert df.float32 != other
    assert df.float32 not in [other]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (array.array("f", [1, 2]), df.float32),
        (array.array("l", [1, 2]), df.int32),
        (memoryview(np.array([1.0, 2.0])), df.float32),
        (memoryview(np.array([[1, 2], [3, 4]])), df.int32),
        (collections.deque([1, 2]), df.int32),
        (collections.UserList([1.5, 2.0]), df.float32),
        (bytearray(b"ab"), df.int32),
        (range(2, 8, 3), df.int32),
    ],
    ids=lambda x: type(x).__name__,
)
def test_sequences_are_lists_of_their_numbers(mode, value, dtype):
    result = mode(lambda: df.constant(value))()
    assert result.dtype is dtype
    np.testing.assert_array_equal(result.numpy(), np.asarray(value))
    assert mode(lambda x: x + value)(result).numpy().tolist() == (result.numpy() * 2).tolist()


def test_objects_with_the_array_interface_are_arrays():
    class Image:
        def __init__(self, pixels):
            self.__array_interface__ = pixels.__array_interface__

    pixels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    result = df.constant(Image(pixels))
    np.testing.assert_array_equal(result.numpy(), pixels, strict=True)
