"""Segments against loops over them in NumPy, in both modes; values at the edges are TensorFlow 2.21's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dualflow as df

REDUCE = {
    "sum": np.sum,
    "mean": np.mean,
    "sqrt_n": lambda rows, axis: np.sum(rows, axis) / np.sqrt(len(rows)),
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
}
ROWS = st.tuples(st.integers(0, 12), st.integers(1, 3))


def expected(kind, data, ids, count, empty):
    out = np.full((count, *data.shape[1:]), empty, np.float64)
    for number in set(ids[ids >= 0].tolist()):
        out[number] = REDUCE[kind](data[ids == number].astype(np.float64), axis=0)
    return out


@st.composite
def segments(draw, least):
    """Rows of small whole numbers, so that every order of adding gives the same, and an id for each."""
    shape = draw(ROWS)
    data = draw(arrays.arrays(np.float32, shape, elements=st.integers(-4, 4)))
    return data, draw(arrays.arrays(np.int32, shape[0], elements=st.integers(least, 4)))


@pytest.mark.parametrize("kind", REDUCE)
@given(drawn=segments(-2))
def test_unsorted_segments_are_what_a_loop_over_them_gives(kind, drawn):
    data, ids = drawn
    empty = {"prod": 1, "max": np.finfo(np.float32).min, "min": np.finfo(np.float32).max}.get(kind, 0)
    result = getattr(df.math, f"unsorted_segment_{kind}")(df.constant(data), df.constant(ids), 5)
    np.testing.assert_allclose(result, expected(kind, data, ids, 5, empty), rtol=1e-6)


@pytest.mark.parametrize("kind", ["sum", "mean", "prod", "max", "min"])
@given(drawn=segments(0))
def test_sorted_segments_are_what_a_loop_over_them_gives(kind, drawn):
    data, ids = drawn
    ids = np.sort(ids)
    count = int(ids.max(initial=-1)) + 1
    result = getattr(df.math, f"segment_{kind}")(df.constant(data), df.constant(ids))
    np.testing.assert_allclose(result, expected(kind, data, ids, count, kind == "prod"), rtol=1e-6)


@pytest.mark.parametrize("kind", REDUCE)
def test_compiled_segments_are_eager_ones_to_the_bit(kind):
    rng = np.random.default_rng(0)
    function = getattr(df.math, f"unsorted_segment_{kind}")
    data, ids = rng.normal(size=(50, 7)).astype(np.float32), rng.integers(-1, 6, 50)
    compiled = df.function(lambda data, ids: function(data, ids, 6))
    np.testing.assert_array_equal(compiled(data, ids), function(data, ids, 6))
    assert "numpy:" not in str(compiled.status())


def test_the_number_of_sorted_segments_is_known_when_it_runs(mode):
    for ids in ([0, 0, 2], [1, 1, 1], [0, 1, 5]):
        result = mode(df.math.segment_sum)(df.ones([3]), df.constant(ids))
        np.testing.assert_array_equal(result, np.bincount(ids))


@pytest.mark.llvm  # Numba leaves sizes that depend on data to NumPy
@pytest.mark.parametrize(
    "function",
    [
        df.math.segment_sum,
        df.math.segment_max,
        lambda data, ids: df.dynamic_partition(data, ids, 3),
        lambda data, ids: df.dynamic_stitch([ids], [data]),
        lambda data, ids: df.math.bincount(ids, weights=data),
        lambda data, ids: df.math.confusion_matrix(ids, ids, weights=data),
    ],
)
def test_data_dependent_sizes_are_machine_code(function):
    f = df.function(function)
    f(df.ones([3]), df.constant([0, 0, 2]))
    assert "native:" in str(f.status())
    assert "numpy:" not in str(f.status())


def test_the_number_of_segments_may_be_a_tensor(mode):
    result = mode(df.math.unsorted_segment_max)(df.constant([3, 1]), df.constant([1, 1]), df.constant(3))
    np.testing.assert_array_equal(result, [df.int32.min, 3, df.int32.min])


def test_sizes_may_be_open():
    specs = [df.TensorSpec([None, None]), df.TensorSpec([None], df.int32)]
    f = df.function(lambda data, ids: df.math.segment_max(data, ids), input_signature=specs)
    np.testing.assert_array_equal(f([[1.0, 5.0], [2.0, 4.0]], [1, 1]), [[0, 0], [2, 5]])
    np.testing.assert_array_equal(f([[1.0], [2.0], [3.0]], [0, 0, 1]), [[2], [3]])


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (df.math.segment_sum, ([1, 2, 3, 4], [0, 0, 2, 2]), [3, 0, 7]),
        (df.math.segment_mean, ([1, 2, -3, -4], [0, 0, 2, 2]), [1, 0, -3]),
        (df.math.segment_prod, ([1, 2, 3, 4], [0, 0, 2, 2]), [2, 1, 12]),
        (df.math.segment_max, ([1, 2, -3, -4], [0, 0, 2, 2]), [2, 0, -3]),
        (df.math.segment_min, ([1, 2, 3, 4], [0, 0, 2, 2]), [1, 0, 3]),
        (df.math.segment_sum, (np.zeros((0, 3)), np.zeros(0, int)), np.zeros((0, 3))),
        (df.math.unsorted_segment_sum, ([[1, 2], [3, 4]], [[0, 1], [1, 0]], 2), [5, 5]),
        (df.math.unsorted_segment_sum, ([[1, 2], [3, 4]], 1, 2), [[[0, 0], [0, 0]], [[1, 2], [3, 4]]]),
        (df.math.unsorted_segment_mean, ([1, 2, 3, 4], [2, 0, -1, 2], 4), [2, 0, 2.5, 0]),
        (df.math.unsorted_segment_sum, (np.ones((0, 2)), np.zeros(0, int), 2), [[0, 0], [0, 0]]),
    ],
)
def test_values_of_tensorflow(mode, function, arguments, expected):
    np.testing.assert_array_equal(mode(lambda: function(*arguments))(), expected)


@pytest.mark.parametrize("dtype", [df.int8, df.uint8, df.int16, df.int64, df.uint64, df.float16, df.float64])
def test_segments_keep_their_dtype(mode, dtype):
    x = df.constant([3, 1, 2], dtype)
    for kind in ("sum", "prod", "max", "min"):
        result = mode(lambda x, kind=kind: getattr(df.math, f"unsorted_segment_{kind}")(x, [0, 0, 2], 3))(x)
        assert result.dtype is dtype
    highest = mode(lambda x: df.math.unsorted_segment_min(x, [0, 0, 2], 3))(x)
    np.testing.assert_array_equal(highest, np.array([1, dtype.max, 2], dtype.dtype))


def test_complex_numbers_are_added_and_multiplied(mode):
    x = df.constant([1j, 2 + 1j])
    np.testing.assert_array_equal(mode(lambda x: df.math.unsorted_segment_sum(x, [0, 0], 1))(x), [2 + 2j])
    np.testing.assert_array_equal(mode(lambda x: df.math.unsorted_segment_prod(x, [0, 0], 1))(x), [-1 + 2j])


def test_a_nan_is_the_extreme_of_its_segment(mode):
    x = df.constant([1.0, np.nan, 3.0])
    for function in (df.math.unsorted_segment_max, df.math.unsorted_segment_min):
        np.testing.assert_array_equal(mode(lambda x, f=function: f(x, [0, 0, 1], 2))(x), [np.nan, 3])


@pytest.mark.parametrize("ids", [[0, 3], [5, -1]])
def test_an_id_that_no_segment_has_is_an_error(mode, ids):
    with pytest.raises(df.errors.InvalidArgumentError, match=r"below num_segments \(3\)"):
        mode(lambda ids: df.math.unsorted_segment_sum([1, 2], ids, 3))(df.constant(ids))


@pytest.mark.parametrize("ids", [[1, 0], [-1, 0]])
def test_ids_out_of_order_are_an_error(mode, ids):
    with pytest.raises(df.errors.InvalidArgumentError, match="never decrease"):
        mode(lambda ids: df.math.segment_sum([1, 2], ids))(df.constant(ids))


def gradient(mode, function, *xs):
    def taken(*xs):
        with df.GradientTape() as tape:
            tape.watch(xs)
            y = function(*xs)
        return tape.gradient(y, xs)

    return [g.numpy() for g in mode(taken)(*[df.constant(x) for x in xs])]


@pytest.mark.parametrize(
    ("kind", "x", "ids", "expected"),
    [
        ("sum", [1.0, 2, 3, 4], [2, 0, -1, 2], [1, 1, 0, 1]),
        ("mean", [0.0, 2, 3, 4], [2, 0, -1, 2], [0.5, 1, 0, 0.5]),
        ("sqrt_n", [0.0, 2, 3, 4], [2, 0, -1, 2], [0.5**0.5, 1, 0, 0.5**0.5]),
        ("max", [4.0, 2, 3, 4], [2, 0, -1, 2], [0.5, 1, 0, 0.5]),
        ("min", [4.0, 2, 3, 5], [2, 0, -1, 2], [1, 1, 0, 0]),
        ("prod", [4.0, 2, 3, 4], [2, 0, -1, 2], [4, 1, 0, 4]),
        ("prod", [0.0, 2, 3, 4], [2, 0, -1, 2], [4, 1, 0, 0]),
        ("prod", [0.0, 0, 3, 4], [2, 2, -1, 2], [0, 0, 0, 0]),
    ],
)
def test_gradients_are_tensorflows(mode, kind, x, ids, expected):
    function = getattr(df.math, f"unsorted_segment_{kind}")
    (slope,) = gradient(mode, lambda x: function(x, ids, 3), x)
    np.testing.assert_allclose(slope, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["sum", "mean", "prod", "max", "min"])
def test_gradients_of_sorted_segments(mode, kind):
    expected = {"mean": [0.5, 0.5, 1], "max": [0, 1, 1], "min": [1, 0, 1], "prod": [2, 1, 1]}
    function = getattr(df.math, f"segment_{kind}")
    (slope,) = gradient(mode, lambda x: function(x, [0, 0, 2]), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(slope, expected.get(kind, [1, 1, 1]))
