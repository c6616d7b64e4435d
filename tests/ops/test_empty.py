"""Tensors without elements: reductions, shapes and random numbers of them, in both modes."""

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError

MODES = {"eager": lambda f: f, "compiled": df.function}
modes = pytest.mark.parametrize("way", MODES.values(), ids=MODES)


@modes
@pytest.mark.parametrize("dtype", [df.float16, df.float32, df.int8, df.int32, df.uint64])
def test_extremes_of_nothing_are_the_ends_of_the_dtype(way, dtype):
    low = -np.inf if dtype.is_floating else dtype.min
    high = np.inf if dtype.is_floating else dtype.max
    for reduce, expected in ((df.reduce_max, low), (df.reduce_min, high)):
        for axis, shape in ((None, ()), (0, (3,))):
            result = way(lambda x, reduce=reduce, axis=axis: reduce(x, axis))(df.zeros([0, 3], dtype)).numpy()
            np.testing.assert_array_equal(result, np.full(shape, expected, dtype.dtype), strict=True)


@modes
def test_an_axis_next_to_the_empty_one_has_no_results(way):
    assert way(lambda x: df.reduce_max(x, 1))(df.zeros([0, 3])).shape == (0,)


@modes
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_softmax_and_logsumexp_of_nothing(way, shape):
    x = df.zeros(shape)
    for axis in (0, -1):
        assert way(lambda x, axis=axis: df.nn.softmax(x, axis))(x).shape == shape
        assert way(lambda x, axis=axis: df.nn.log_softmax(x, axis))(x).shape == shape
    assert way(df.reduce_logsumexp)(x).numpy() == -np.inf


@modes
def test_the_loss_over_no_classes_is_zero(way):
    x = df.zeros([3, 0])
    result = way(lambda x: df.nn.softmax_cross_entropy_with_logits(labels=x, logits=x))(x)
    np.testing.assert_array_equal(result, np.zeros(3, np.float32), strict=True)


@modes
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
def test_a_free_size_next_to_a_zero_is_what_the_other_sizes_leave(way, old, new, expected):
    assert way(lambda x: df.reshape(x, new))(df.zeros(old)).shape == expected


@pytest.mark.parametrize(("old", "new"), [((0, 3), [0, 2, -1]), ((0,), []), ((3, 0), [3])])
def test_a_shape_that_nothing_fills_is_refused(old, new):
    with pytest.raises(InvalidArgumentError):
        df.reshape(df.zeros(old), new)


@modes
@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_random_numbers_of_no_elements(way, shape):
    assert way(lambda: df.random.uniform(shape, 0, 0, df.int32))().shape == shape
    assert way(lambda: df.random.shuffle(df.zeros(shape)))().shape == shape
    assert way(lambda: df.random.gamma(shape, 1.0))().shape == shape


@modes
@pytest.mark.parametrize("reduce", [df.reduce_max, df.reduce_min, df.reduce_logsumexp])
def test_gradients_of_extremes_of_nothing_are_empty(way, reduce):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = reduce(x)
        return tape.gradient(y, x)

    assert way(gradient)(df.zeros([0, 3])).shape == (0, 3)
