"""Edit distances against the recurrence that defines them, and TensorFlow's cases of empty sequences."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

SEQUENCES = st.lists(st.lists(st.integers(0, 2), max_size=5), min_size=1, max_size=4)


@lru_cache
def levenshtein(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    if not a or not b:
        return len(a) + len(b)
    substituted = levenshtein(a[1:], b[1:]) + (a[0] != b[0])
    return min(substituted, levenshtein(a[1:], b) + 1, levenshtein(a, b[1:]) + 1)


def sparse(sequences: list[list[Any]], dtype: Any = df.int32) -> df.SparseTensor:
    return df.ragged.constant(sequences, dtype=dtype, ragged_rank=1).to_sparse()


@given(SEQUENCES, SEQUENCES)
def test_distances_are_those_of_the_recurrence(a: list[list[int]], b: list[list[int]]) -> None:
    distances = df.edit_distance(sparse(a), sparse(b), normalize=False).numpy()
    count = max(len(a), len(b))
    pairs = [(rows + [[]] * (count - len(rows))) for rows in (a, b)]
    assert distances.tolist() == [levenshtein(tuple(x), tuple(y)) for x, y in zip(*pairs, strict=True)]


def test_a_normalised_distance_to_nothing_is_infinite_unless_both_are_nothing(mode: Any) -> None:
    distance = mode(df.edit_distance)(sparse([[1], [], [1, 2]]), sparse([[], [], [1, 3]]))
    assert distance.numpy().tolist() == [np.inf, 0.0, 0.5]


def test_words_are_compared_too() -> None:
    words, others = sparse([["a", "b"]], df.string), sparse([["b", "b", "a"]], df.string)
    assert df.edit_distance(words, others, normalize=False).numpy().tolist() == [2.0]


def test_a_nan_differs_from_each_element() -> None:
    numbers = sparse([[1.0, np.nan, -0.0]], df.float32)
    others = sparse([[1.0, np.nan, 0.0]], df.float32)
    assert df.edit_distance(numbers, others, normalize=False).numpy().tolist() == [1.0]
