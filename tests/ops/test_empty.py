"""Tensors without elements: reductions, shapes and random numbers of them, in both modes."""

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError


@pytest.mark.parametrize("dtype", [df.float16, df.float32, df.int8, df.int32, df.uint64])
def test_extremes_of_nothing_are_the_ends_of_the_dtype(mode, dtype):
    low = -np.inf if dtype.is_floating else dtype.min
    high = np.inf if dtype.is_floating else dtype.max
    for reduce, expected in ((df.reduce_max, low), (df.reduce_min, high)):
        for axis, shape in ((None, ()), (0, (3,))):
            result = mode(lambda x, reduce=reduce, axis=axis: reduce(x, axis))(
                df.zeros([0, 3], dtype)
            ).numpy()
            np.testing.assert_array_equal(result, np.full(shape, expected, dtype.dtype), strict=True)


def test_an_axis_next_to_the_empty_one_has_no_results(mode):
    assert mode(lambda x: df.reduce_max(x, 1))(df.zeros([0, 3])).shape == (0,)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_softmax_and_logsumexp_of_nothing(mode, shape):
    x = df.zeros(shape)
    for axis in (0, -1):
        assert mode(lambda x, axis=axis: df.nn.softmax(x, axis))(x).shape == shape
        assert mode(lambda x, axis=axis: df.nn.log_softmax(x, axis))(x).shape == shape
    assert mode(df.reduce_logsumexp)(x).numpy() == -np.inf


def test_the_loss_over_no_classes_is_zero(mode):
    x = df.zeros([3, 0])
    result = mode(lambda x: df.nn.softmax_cross_entropy_with_logits(labels=x, logits=x))(x)
    np.testing.assert_array_equal(result, np.zeros(3, np.float32), strict=True)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ((0,), [-1], (0,)),
        ((0,), [0, -1], (0, 1)),
        ((0, 3), [0, -1], (0, 3)),
        ((0, 3), [3, -1], (3, 0)),
        ((3, 0), [0, -1], (0, 3)),
        ((0, 6), [-1, 0, 2], (3, 0, 2)),
        ((3, 0), [0, 7], (0, 7)),
    ],
)
def test_a_free_size_next_to_a_zero_is_what_the_other_sizes_leave(mode, old, new, expected):
    assert mode(lambda x: df.reshape(x, new))(df.zeros(old)).shape == expected


@pytest.mark.parametrize(("old", "new"), [((0, 3), [0, 2, -1]), ((0,), []), ((3, 0), [3])])
def test_a_shape_that_nothing_fills_is_refused(old, new):
    with pytest.raises(InvalidArgumentError):
        df.reshape(df.zeros(old), new)


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_random_numbers_of_no_elements(mode, shape):
    assert mode(lambda: df.random.uniform(shape, 0, 0, df.int32))().shape == shape
    assert mode(lambda: df.random.shuffle(df.zeros(shape)))().shape == shape
    assert mode(lambda: df.random.gamma(shape, 1.0))().shape == shape


@pytest.mark.parametrize("reduce", [df.reduce_max, df.reduce_min, df.reduce_logsumexp])
def test_gradients_of_extremes_of_nothing_are_empty(mode, reduce):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = reduce(x)
        return tape.gradient(y, x)

    assert mode(gradient)(df.zeros([0, 3])).shape == (0, 3)


@pytest.mark.parametrize("op", [df.math.floordiv, df.math.floormod, df.truncatediv, df.truncatemod])
def test_nothing_divided_by_zero_is_nothing(mode, op):
    x = df.zeros([0, 3], df.int32)
    assert mode(lambda x: op(x, 0))(x).shape == (0, 3)
    with pytest.raises(InvalidArgumentError, match="division by zero"):
        mode(lambda x: op(x, 0))(df.ones([1], df.int32))


def test_nothing_to_a_negative_power_is_nothing(mode):
    assert mode(lambda x: x**-1)(df.zeros([0, 3], df.int32)).shape == (0, 3)


def test_the_interpreter_finds_positions_in_rows_without_elements():
    positions = df.function(df.where, backend="numpy")(df.zeros([1, 0], df.bool))
    assert positions.shape == (0, 2)
