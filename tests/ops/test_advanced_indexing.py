"""``x[...]`` with arrays, lists and masks picks as NumPy's, in both modes, and so do the gradients."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np
import pytest
from error_cases import ErrorCases
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)


@st.composite
def picks(draw):
    """An array, and a key with at least one array among slices, integers, masks, new axes and ``...``."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    common = draw(st.sampled_from([(2,), (3,), (2, 3), (1,), (0,)]))

    def integers(size, sizes):
        drawn = st.lists(
            st.integers(-size, size - 1), min_size=int(np.prod(sizes)), max_size=int(np.prod(sizes))
        )
        return np.array(draw(drawn), draw(st.sampled_from([np.int8, np.int32, np.int64]))).reshape(sizes)

    kinds = draw(st.permutations(["array", *draw(st.lists(st.sampled_from(KINDS), max_size=len(shape) - 1))]))
    key = []
    for kind, size in zip(kinds, shape, strict=False):
        key += [None] * draw(st.sampled_from([0, 0, 1]))
        if kind == "array":
            key.append(integers(size, draw(st.sampled_from([common, (1,), ()]))))
        elif kind == "list":
            key.append(draw(st.sampled_from([list, tuple]))(integers(size, common).tolist()))
        elif kind == "mask":
            key.append(np.arange(size) % 2 == 0)
        elif kind == "int":
            key.append(draw(st.integers(-size, size - 1)))
        else:
            key.append(draw(st.sampled_from([slice(None), slice(1, None), slice(None, None, -1)])))
    if len(key) < len(shape):
        key += draw(st.sampled_from([[], [...]]))
    array = np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)
    return array, tuple(key)


KINDS = ["array", "list", "mask", "int", "slice"]


def numpys(array, key):
    """NumPy's result, or None where the arrays do not broadcast."""
    try:
        return array[key]
    except IndexError:
        return None


@given(picks())
@settings(deadline=None)
def test_arrays_pick_as_numpys_do(case):
    array, key = case
    expected = numpys(array, key)
    if expected is None:
        with pytest.raises(InvalidArgumentError):
            df.constant(array)[key]
    else:
        result = df.constant(array)[key]
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result.numpy(), expected)


@given(picks())
@settings(deadline=None, max_examples=25)
def test_compiled_and_eager_pick_the_same_and_gradients_add_up_there(case):
    array, key = case
    expected = numpys(array, key)
    if expected is None:
        return
    g = np.cos(np.arange(expected.size, dtype=np.float32)).reshape(expected.shape)
    slots = np.zeros_like(array)
    np.add.at(slots, key, g)

    def picked(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = x[key]
        return y, tape.gradient(y, x, output_gradients=g)

    for run in (picked, df.function(picked)):
        y, gradient = run(df.constant(array))
        np.testing.assert_array_equal(y.numpy(), expected)
        np.testing.assert_allclose(gradient.numpy(), slots, atol=1e-5)


def picking(key):
    """The function that picks with ``key``, a closure variable."""
    return lambda x: x[key]


SYMBOLS = [
    (lambda x, i, j: x[i], lambda i, j: i),
    (lambda x, i, j: x[:, i], lambda i, j: (slice(None), i)),
    (lambda x, i, j: x[i, j], lambda i, j: (i, j)),
    (lambda x, i, j: x[i[:, None], j], lambda i, j: (i[:, None], j)),
    (lambda x, i, j: x[1, j], lambda i, j: (1, j)),
    (lambda x, i, j: x[i, None, 2], lambda i, j: (i, None, 2)),
    (lambda x, i, j: x[[0, 2], j], lambda i, j: ([0, 2], j)),
]


@pytest.mark.parametrize(("use", "key"), SYMBOLS)
def test_tensors_pick_as_arrays_do(mode, use, key):
    i, j = np.array([2, -3]), np.array([-1, 1])
    result = mode(use)(df.constant(X), df.constant(i), df.constant(j))
    np.testing.assert_array_equal(result.numpy(), X[key(i, j)])


def test_a_list_picks_rows_as_an_array_does(mode):
    for key in ([2, 0], [-1], [[0, 1], [2, 2]], [], range(2), [df.constant(2), 0]):
        expected = X[[int(k) for k in key]] if key and not isinstance(key[0], list) else X[np.array(key, int)]
        np.testing.assert_array_equal(mode(picking(key))(df.constant(X)).numpy(), expected)


@pytest.mark.parametrize("value", [True, False])
def test_one_bool_makes_an_axis_of_one_row_or_none(mode, value):
    for key in (value, np.bool_(value), np.array(value)):
        np.testing.assert_array_equal(mode(picking(key))(df.constant(X)).numpy(), X[value])
    np.testing.assert_array_equal(df.constant(X)[df.constant(value)].numpy(), X[value])


def test_a_mask_that_is_known_picks_in_both_modes(mode):
    mask = X[0] > 1.5
    np.testing.assert_array_equal(mode(lambda x: x[X > 4])(df.constant(X)).numpy(), X[X > 4])
    np.testing.assert_array_equal(mode(lambda x: x[1:, mask])(df.constant(X)).numpy(), X[1:, mask])


DYNAMIC = [
    lambda x: x[[0, -1]],
    lambda x: x[:, [0, -1]],
    lambda x: x[[0, -1], [1, 2]],
    lambda x: x[1, [0, 1]],
    lambda x: x[..., [0], None],
]


@pytest.mark.parametrize("use", DYNAMIC)
@pytest.mark.parametrize("sizes", [[None, 4], [None, None]])
def test_elements_of_dynamic_sizes_are_picked(use, sizes):
    traced = df.function(use, input_signature=[df.TensorSpec(sizes)])
    for x in (X, X[:2]):
        np.testing.assert_array_equal(traced(x).numpy(), use(x))


@pytest.mark.parametrize("use", [lambda x: x[1], lambda x: x[-2], lambda x: x[[1]], lambda x: x[1, [0, 1]]])
def test_indices_are_checked_once_the_sizes_are_known(use):
    traced = df.function(use, input_signature=[df.TensorSpec([None, 4])])
    for x in (X[:1], X[:0]):
        with pytest.raises(InvalidArgumentError, match="out of range"):
            traced(x)


def test_variables_are_picked_from_as_tensors_are(mode):
    v = df.Variable(X)
    np.testing.assert_array_equal(mode(lambda: v[[2, 0]])().numpy(), X[[2, 0]])
    np.testing.assert_array_equal(mode(lambda: v[:, [1]])().numpy(), X[:, [1]])


@pytest.mark.parametrize("key", [[3], [-4], ([0], [4]), (slice(None), [[0, -5]])])
def test_an_index_outside_is_refused_in_both_modes(mode, key):
    with pytest.raises(OutOfRangeError, match="out of range"):
        mode(lambda x: x[key])(df.constant(X))


def test_a_tensor_outside_its_axis_is_refused_when_it_runs(mode):
    pick = mode(lambda x, i: x[i, i])
    with pytest.raises(InvalidArgumentError, match="out of range"):
        pick(df.constant(X), df.constant([0, 3]))


T = df.constant(X)
CASES = {
    "floats": (lambda: T[[0.5, 1.0]], DTypeError, "integers or bools, not of float64", "df.cast"),
    "a float tensor": (lambda: T[df.constant(0.5)], DTypeError, r"not of float32 .* shape \(\)", "df.cast"),
    "rows of two lengths": (
        lambda: T[[[0], [1, 2]]],
        InvalidArgumentError,
        "different lengths",
        "as many in each",
    ),
    "a text": (lambda: T["a"], DTypeError, "'a' is no index", "integers in an array"),
    "a mask of another size": (
        lambda: T[:, np.array([True, False])],
        InvalidArgumentError,
        r"shape \(2,\) does not fit .* \(4,\)",
        "must be known and equal",
    ),
    "a mask known at run time": (
        lambda: df.function(lambda x: x[1:, x[0] > 0])(T),
        DTypeError,
        "must be known while tracing",
        "df.boolean_mask",
    ),
    "a row too far": (
        lambda: T[:, [4]],
        OutOfRangeError,
        "index 4 is out of range for axis 1",
        "use -4 to 3",
    ),
    "arrays of two lengths": (lambda: T[[0, 1], [0, 1, 2]], InvalidArgumentError, "broadcast", ""),
    "parts of a variable": (
        lambda: df.Variable(X)[[0]].assign(X[:1]),
        DTypeError,
        "not at",
        "scatter_nd_update",
    ),
}


class TestErrorMessages(ErrorCases):
    cases: ClassVar = {
        name: (call, kind, what, re.escape(remedy)) for name, (call, kind, what, remedy) in CASES.items()
    }
    raised_in = ("ops/advanced_indexing.py",)
