"""Sorting of long rows, by other algorithms than short ones: results of NumPy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.graph.passes.trimming import trim_control

LONG = 1500
RNG = np.random.default_rng(3)
FEW = RNG.integers(-4, 5, (2, LONG))
ROWS = {
    "few floats": FEW / np.float32(2),
    "float16": (FEW / 2).astype(np.float16),
    "float64": RNG.normal(size=(2, LONG)),
    "special": RNG.choice(
        np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1.0], "f4"), (2, LONG)
    ),
    "int8": FEW.astype(np.int8),
    "few integers": FEW * 1000 - 2_000_000_000,
    "any int32": RNG.integers(-(1 << 31), 1 << 31, (2, LONG), np.int32),
    "any uint32": RNG.integers(0, 1 << 32, (2, LONG), np.uint32),
    "any int64": RNG.integers(-(1 << 63), (1 << 63) - 1, (2, LONG), np.int64),
    "large uint64": RNG.integers((1 << 64) - 100, (1 << 64) - 1, (2, LONG), np.uint64),
    "bools": FEW > 0,
}


def stable(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if not descending:
        return x.argsort(axis, kind="stable")
    back = np.flip(x, axis).argsort(axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(back, axis)


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
@pytest.mark.parametrize("name", ROWS)
def test_equal_elements_keep_their_order(name, direction):
    for x, axis in ((ROWS[name], 1), (ROWS[name].T, 0)):
        places = stable(x, axis, direction == "DESCENDING")
        np.testing.assert_array_equal(df.argsort(x, axis, direction), places)
        expected = np.take_along_axis(x, places, axis)
        np.testing.assert_array_equal(bits(df.sort(x, axis, direction).numpy()), bits(expected))


@pytest.mark.parametrize("count", [1, 7, 40])
@pytest.mark.parametrize("name", ROWS)
def test_the_largest_are_the_first_of_the_sorted_row(name, count):
    x = ROWS[name]
    places = stable(x, 1, True)[:, :count]
    values, indices = df.math.top_k(x, count)
    np.testing.assert_array_equal(indices, places)
    np.testing.assert_array_equal(bits(values.numpy()), bits(np.take_along_axis(x, places, 1)))


def test_the_smallest_are_the_first_of_the_sorted_row_too():
    x = ROWS["special"]
    values, indices = df.math.approx_min_k(x.T, 9, 0)
    places = stable(x, 1, False)[:, :9]
    np.testing.assert_array_equal(indices, places.T)
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1).T)


def test_no_rows_have_no_largest(mode):
    values, indices = mode(lambda x: df.math.top_k(x, 2))(df.zeros([0, LONG]))
    assert values.shape == indices.shape == (0, 2)


def test_the_gradient_of_a_sort_goes_where_elements_came_from(mode):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.sort(x, 0, "DESCENDING") * [1.0, 2.0, 3.0]
        return tape.gradient(y, x)

    np.testing.assert_array_equal(mode(gradient)(df.constant([5.0, 7.0, 5.0])), [2, 1, 3])


@pytest.mark.parametrize("side", ["left", "right"])
def test_many_values_belong_where_each_of_them_does(side):
    rows = np.sort(RNG.integers(0, 5000, (2, 1 << 15)).astype(np.float32))
    values = RNG.integers(-3, 5003, (2, 1 << 15)).astype(np.float32)
    result = df.searchsorted(rows, values, side).numpy()
    count = [
        [(row < v).sum() if side == "left" else (row <= v).sum() for v in some]
        for row, some in zip(rows, values[:, :50], strict=True)
    ]
    np.testing.assert_array_equal(result[:, :50], count)
    np.testing.assert_array_equal(result[0], rows[0].searchsorted(values[0], side))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.uint8, np.int64])
@pytest.mark.parametrize("more", [-1, 0, 5000])
def test_as_many_values_belong_where_numpy_finds_them(side, dtype, more):
    """More of them than the row has elements, or fewer; with zeros of both signs, infinities and nan."""
    count = (1 << 15) + 1
    row, values = ((RNG.normal(size=n) * 60).astype(dtype) for n in (count, count + more))
    if np.dtype(dtype).kind == "f":
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
        row[:50], values[-50:] = np.resize(special, 50), np.resize(special[::-1], 50)
    row = np.sort(row)
    result = df.searchsorted(row, values, side)
    np.testing.assert_array_equal(result, row.searchsorted(values, side))


MORE = 1 << 14
WIDE = {
    "float64": RNG.normal(size=(2, MORE)),
    "tied float64": RNG.normal(size=(2, MORE)).round(1),
    "special float64": RNG.choice(np.array([np.nan, -np.nan, np.inf, 0.0, -0.0, -1.0]), (2, MORE)),
    "zeros of both signs": RNG.choice(np.array([0.0, -0.0, 1.0, -np.inf]), (2, MORE)),
    "any int64": RNG.integers(-(1 << 63), (1 << 63) - 1, (2, MORE), np.int64),
    "tied int64": RNG.integers(-4, 4, (2, MORE)) * (1 << 60),
    "any uint64": RNG.integers(0, (1 << 64) - 1, (2, MORE), np.uint64),
    "sorted": np.sort(RNG.normal(size=(2, MORE)))[:, ::-1],
    "one value": np.full((2, MORE), 1 << 60),
    "nothing": np.zeros((0, MORE)),
}


@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
@pytest.mark.parametrize("name", WIDE)
def test_equal_elements_of_64_bits_keep_their_order(name, direction):
    for x, axis in ((WIDE[name], 1), (WIDE[name].T, 0)):
        places = stable(x, axis, direction == "DESCENDING")
        np.testing.assert_array_equal(df.argsort(x, axis, direction), places)


MANY = (1 << 15) + 1500
VECTORS = {name: rows[0] for name, rows in ROWS.items()} | {
    "many integers of which few are missing": RNG.integers(-MANY // 2, MANY // 2 - 9, MANY),
    "a late element": np.r_[np.zeros(MANY, np.int32), -5],
    "all of int8": RNG.integers(-128, 128, MANY).astype(np.int8),
    "the last of uint64": RNG.integers((1 << 64) - 999, (1 << 64) - 1, MANY, np.uint64),
    "the first of int64": RNG.integers(-(1 << 63), -(1 << 63) + 999, MANY),
    "many floats": RNG.normal(size=MANY).astype(np.float32).round(3),
    "many float64": RNG.normal(size=MANY).round(3),
    "many bools": np.ones(MANY, bool),
}


@pytest.mark.parametrize("name", VECTORS)
def test_distinct_elements_of_long_vectors_are_numpys(name):
    x = VECTORS[name]
    y, places, counts = df.unique_with_counts(x)
    np.testing.assert_array_equal(y.numpy()[places], x)
    _, first, expected = np.unique(x, return_index=True, return_counts=True, equal_nan=False)
    np.testing.assert_array_equal(bits(y.numpy()), bits(x[np.sort(first)]))
    np.testing.assert_array_equal(counts, expected[first.argsort()])


@pytest.mark.parametrize(
    ("results", "read"),
    [(1, lambda u: u.y), (2, lambda u: (u.idx, u.y)), (3, lambda u: (u.y, u.count)), (3, lambda u: u)],
)
def test_a_graph_computes_what_is_read_of_distinct_elements(results, read):
    x = df.constant(VECTORS["special"])
    f = df.function(lambda x: read(df.unique_with_counts(x)))
    search = trim_control(f.get_concrete_function(x).graph).nodes[0]
    assert len(search.outputs) == results
    eager = read(df.unique_with_counts(x))
    for result, expected in zip(df.nest.flatten(f(x)), df.nest.flatten(eager), strict=True):
        np.testing.assert_array_equal(result, expected)
