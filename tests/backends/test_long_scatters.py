"""Scatters of rows of any length: whole registers and the remainder, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

Array = np.ndarray[Any, Any]
JOINS: dict[str, tuple[Callable[..., Any], Callable[[Array, int, Array], Any]]] = {
    "put": (df.tensor_scatter_nd_update, lambda out, i, row: row),
    "add": (df.tensor_scatter_nd_add, lambda out, i, row: out[i] + row),
    "maximum": (df.tensor_scatter_nd_max, lambda out, i, row: np.maximum(out[i], row)),
}


def one_by_one(join: Callable[[Array, int, Array], Any], onto: Array, at: Array, rows: Array) -> Array:
    out = onto.copy()
    for i, row in zip(at, rows, strict=True):
        out[i] = join(out, i, row)
    return out


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("length", [1, 15, 16, 17, 31, 32, 33, 70])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_rows_of_any_length(join: str, length: int, dtype: str) -> None:
    rng = np.random.default_rng(length)
    onto, rows = (rng.integers(-60, 60, (n, length)).astype(dtype) for n in (5, 9))
    at = rng.integers(0, 5, 9).astype(np.int32)
    op, expected = JOINS[join]
    result = df.function(op)(df.constant(onto), df.constant(at[:, None]), df.constant(rows))
    np.testing.assert_array_equal(result.numpy(), one_by_one(expected, onto, at, rows))


def test_much_is_added_to_a_few_zeros_in_order() -> None:
    rng = np.random.default_rng(0)
    at, rows = rng.integers(0, 5, 3000).astype(np.int32), rng.standard_normal((3000, 16)).astype(np.float32)
    result = df.tensor_scatter_nd_add(df.zeros([5, 16]), at[:, None], rows).numpy()
    expected = one_by_one(JOINS["add"][1], np.zeros((5, 16), np.float32), at, rows)
    np.testing.assert_array_equal(result, expected)
