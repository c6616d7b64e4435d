"""Counts of the integers in ragged rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df

ROWS = st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=4)


@given(ROWS, st.sampled_from([{}, {"minlength": 4}, {"maxlength": 3}, {"minlength": 2, "maxlength": 2}]))
@settings(max_examples=30)
def test_each_row_is_counted_as_by_numpy(rows: list[list[int]], lengths: dict[str, int]) -> None:
    x = df.RaggedTensor.from_row_lengths(
        df.constant([i for row in rows for i in row], df.int64), [len(row) for row in rows]
    )
    size = max([i + 1 for row in rows for i in row], default=0)
    size = min(max(size, lengths.get("minlength", 0)), lengths.get("maxlength", size + 9))
    expected = [np.bincount(np.array(row, int), minlength=9)[:size].tolist() for row in rows]
    assert df.math.bincount(x, axis=-1, **lengths).numpy().tolist() == expected
    total = np.sum(expected, axis=0).tolist() if size else []
    assert df.math.bincount(x, **lengths).numpy().tolist() == total


@pytest.mark.parametrize("compiled", [False, True])
def test_counts_are_weighted_or_binary(compiled: bool) -> None:
    def f(x: Any, weights: Any) -> Any:
        options = {"minlength": 4, "maxlength": 4, "axis": -1}
        return df.math.bincount(x, weights, **options), df.math.bincount(x, binary_output=True, **options)

    x, weights = df.ragged.constant([[1, 1], [], [3]]), df.ragged.constant([[0.5, 2.0], [], [7.0]])
    weighted, binary = (df.function(f) if compiled else f)(x, weights)
    assert weighted.numpy().tolist() == [[0, 2.5, 0, 0], [0, 0, 0, 0], [0, 0, 0, 7]]
    assert binary.numpy().tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
