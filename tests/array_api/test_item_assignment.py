"""``x[key] = value`` on arrays: NumPy's result, no effect on other arrays, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dualflow as df
import dualflow.array_api as xp

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)


def key_of(x: np.ndarray[Any, Any], data: st.DataObject) -> Any:
    """Slices and integers, a mask, arrays of integers, or a mixture."""
    masks = st.integers(1, x.ndim).flatmap(lambda n: hnp.arrays(bool, x.shape[:n]))
    several = hnp.integer_array_indices(x.shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3))
    first = st.integers(-x.shape[0], x.shape[0] - 1)
    mixture = st.tuples(hnp.arrays(np.int64, (2,), elements=first), st.just(slice(None)))
    kinds = [hnp.basic_indices(x.shape), masks, several, *([mixture] if x.ndim > 1 else [])]
    return data.draw(st.one_of(kinds))


def in_arrays(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(in_arrays(item) for item in key)
    return xp.asarray(key) if isinstance(key, np.ndarray) else key


def put(x: Any, key: Any, value: Any) -> Any:
    x = xp.asarray(x, copy=True)
    x[key] = value
    return x


def distinct(x: np.ndarray[Any, Any], key: Any) -> bool:
    """Whether a key names no element twice: which of several values stays is open."""
    named = np.arange(x.size).reshape(x.shape)[key]
    return len(np.unique(named)) == np.size(named)


@given(shape=SHAPES, data=st.data())
def test_a_part_is_assigned_as_numpy_assigns_it(shape: tuple[int, ...], data: st.DataObject) -> None:
    expected = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    key = key_of(expected, data)
    assume(distinct(expected, key))
    part = np.shape(expected[key])
    sizes = tuple(1 if data.draw(st.booleans()) else n for n in part)
    value = data.draw(st.just(-1.5) | st.just(-np.arange(1, np.prod(sizes) + 1).reshape(sizes)))
    before = xp.asarray(expected)
    result = put(before, in_arrays(key), in_arrays(value))
    np.testing.assert_array_equal(np.asarray(before), expected)
    expected[key] = value
    np.testing.assert_array_equal(np.asarray(result), expected)


KEYS = {
    "a slice": (slice(1, None), np.zeros((2, 4))),
    "an integer": (1, 7.0),
    "the end": ((..., -1), np.ones(3)),
    "a mask": (np.array([True, False, True]), np.ones(4)),
    "a mask of elements": (np.arange(12).reshape(3, 4) % 5 == 0, 7.0),
    "rows": (np.array([2, 0]), np.ones((2, 4))),
    "points": ((np.array([0, 2]), np.array([1, 3])), np.array([5.0, 6.0])),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_compiled_assignment_is_the_eager_one(name: str) -> None:
    key, value = KEYS[name]
    x = np.arange(12.0).reshape(3, 4)

    @df.function
    def compiled(x: Any, value: Any) -> Any:
        return put(x, in_arrays(key), value)

    expected = x.copy()
    expected[key] = value
    np.testing.assert_array_equal(compiled(xp.asarray(x), value), expected)


@pytest.mark.parametrize("name", KEYS)
def test_the_gradient_goes_to_the_value_and_around_it(name: str) -> None:
    key, value = KEYS[name]
    x, v = xp.asarray(np.arange(12.0).reshape(3, 4)), xp.asarray(value)
    weights = np.arange(1.0, 13.0).reshape(3, 4)
    with df.GradientTape() as tape:
        tape.watch([x, v])
        y = xp.sum(put(x, in_arrays(key), v) * xp.asarray(weights))
    by_x, by_v = tape.gradient(y, [x, v])
    around = weights.copy()
    around[key] = 0
    np.testing.assert_array_equal(by_x, around)
    gone = weights[key]
    extra = np.ndim(gone) - np.ndim(value)
    np.testing.assert_array_equal(by_v, np.sum(gone, axis=tuple(range(extra))))


def test_an_assignment_is_seen_by_this_array_alone() -> None:
    x = xp.zeros(3)
    same, view, copy = x, x[:2], xp.asarray(x, copy=True)
    x[0] = 5.0
    assert same is x
    assert (x.tolist(), view.tolist(), copy.tolist()) == ([5.0, 0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0])


def test_operators_in_place_change_the_array() -> None:
    x = xp.asarray([1, 2, 3])
    same = x
    x += 1
    x *= xp.asarray([1, 2, 3])
    x //= 2
    assert same is x
    assert x.tolist() == [1, 3, 6]


def test_an_array_keeps_its_dtype() -> None:
    x = xp.zeros(2, dtype=xp.float32)
    x[0] = xp.asarray(1, dtype=xp.float64)
    x[1] = 3
    assert x.dtype == xp.float32
    assert x.tolist() == [1.0, 3.0]


def test_a_tape_has_what_was_there_before() -> None:
    x = xp.asarray([1.0, 2.0])
    with df.GradientTape() as tape:
        tape.watch(x)
        watched = x.tensor
        y = xp.sum(x * x)
        x[0] = 100.0
    assert tape.gradient(y, watched).numpy().tolist() == [2.0, 4.0]


def test_a_loop_carries_an_array_that_it_assigns_to() -> None:
    @df.function
    def squares(n: Any) -> Any:
        out = xp.zeros(5)
        for i in df.range(n):
            out = put(out, xp.reshape(xp.asarray(i), (1,)), xp.asarray(df.cast(i * i, df.float64)))
        return out

    assert squares(df.constant(4)).tolist() == [0.0, 1.0, 4.0, 9.0, 0.0]


def test_an_argument_that_is_assigned_to_is_refused_where_it_would_be_lost() -> None:
    @df.function
    def lost(x: Any) -> Any:
        x[0] = 1.0
        return x

    with pytest.raises(df.errors.InvalidArgumentError, match="should not modify its Python input arguments"):
        lost(xp.zeros(2))
