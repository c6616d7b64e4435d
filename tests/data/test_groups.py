"""Datasets of datasets, windows and groups, in the order of TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

Dataset = df.data.Dataset


def elements(dataset: Any) -> list[Any]:
    """The elements as Python's numbers."""
    return [df.nest.map_structure(lambda x: x.numpy().tolist(), element) for element in dataset]


def ragged(n: int) -> Any:
    return Dataset.range(1, n).map(lambda x: df.fill([x], x))


def constants(count: int) -> Any:
    return lambda x: Dataset.from_tensors(x).repeat(count)


def test_interleave_reads_blocks_cyclically() -> None:
    result = elements(Dataset.range(1, 6).interleave(constants(6), cycle_length=2, block_length=4))
    assert result == [
        1,
        1,
        1,
        1,
        2,
        2,
        2,
        2,
        1,
        1,
        2,
        2,
        3,
        3,
        3,
        3,
        4,
        4,
        4,
        4,
        3,
        3,
        4,
        4,
        5,
        5,
        5,
        5,
        5,
        5,
    ]


@pytest.mark.parametrize("threads", [None, 2])
def test_interleave_replaces_what_has_ended(threads: int | None) -> None:
    uneven = Dataset.range(5).interleave(
        lambda x: Dataset.range(x), cycle_length=3, block_length=2, num_parallel_calls=threads
    )
    assert elements(uneven) == [0, 0, 1, 0, 1, 0, 1, 2, 2, 3]
    even = Dataset.range(5).interleave(constants(3), cycle_length=2, num_parallel_calls=threads)
    assert elements(even) == [0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 4, 4, 4]


@given(st.lists(st.integers(0, 4), max_size=6))
def test_flat_map_joins(lengths: list[int]) -> None:
    source = Dataset.from_tensor_slices(np.array(lengths, np.int64))
    assert elements(source.flat_map(lambda n: Dataset.range(n))) == [x for n in lengths for x in range(n)]


def test_functions_inside_of_flat_map_see_the_outer_element() -> None:
    result = Dataset.range(3).flat_map(lambda x: Dataset.range(2).map(lambda y: 10 * x + y))
    assert elements(result) == [0, 1, 10, 11, 20, 21]
    assert result.element_spec == df.TensorSpec([], df.int64)


@pytest.mark.parametrize(
    ("count", "arguments", "expected"),
    [
        (7, (3, None, 1), [[0, 1, 2], [3, 4, 5], [6]]),
        (7, (3, 1, 1, True), [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6]]),
        (7, (3, 1, 2, True), [[0, 2, 4], [1, 3, 5], [2, 4, 6]]),
        (7, (3, 1, 2), [[0, 2, 4], [1, 3, 5], [2, 4, 6], [3, 5], [4, 6], [5], [6]]),
        (12, (2, 5, 2), [[0, 2], [5, 7], [10]]),
        (11, (3, 5, 1), [[0, 1, 2], [5, 6, 7], [10]]),
    ],
)
def test_windows_are_those_of_tensorflow(count: int, arguments: Any, expected: list[list[int]]) -> None:
    windows = Dataset.range(count).window(*arguments)
    assert [elements(w) for w in windows] == expected
    assert int(windows.cardinality()) == len(expected)


def test_a_window_of_pairs_is_a_pair_of_windows() -> None:
    pairs = Dataset.zip((Dataset.range(3), Dataset.range(5, 8))).window(2)
    assert [(elements(a), elements(b)) for a, b in pairs] == [([0, 1], [5, 6]), ([2], [7])]


def test_windows_become_batches_again() -> None:
    result = Dataset.range(7).window(3, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(3))
    assert elements(result) == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]


def test_windows_are_reduced_in_a_map() -> None:
    result = Dataset.range(6).window(3).map(lambda w: w.reduce(np.int64(0), lambda s, x: s + x))
    assert elements(result) == [3, 12]


def test_full_groups_come_first_and_the_remaining_by_key() -> None:
    def grouped(size: int) -> list[Any]:
        return elements(
            Dataset.range(10).group_by_window(lambda x: x % 2, lambda k, d: d.batch(5), window_size=size)
        )

    assert grouped(5) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert grouped(3) == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]


def test_buckets_hold_elements_of_like_length() -> None:
    def bucketed(**options: Any) -> list[Any]:
        return elements(
            ragged(8).bucket_by_sequence_length(lambda x: df.shape(x)[0], [3, 5], [2, 2, 2], **options)
        )

    assert bucketed() == [
        [[1, 0], [2, 2]],
        [[3, 3, 3, 0], [4, 4, 4, 4]],
        [[5, 5, 5, 5, 5, 0], [6, 6, 6, 6, 6, 6]],
        [[7, 7, 7, 7, 7, 7, 7]],
    ]
    short = ragged(4).bucket_by_sequence_length(
        lambda x: df.shape(x)[0], [3, 6], [2, 2, 2], pad_to_bucket_boundary=True
    )
    assert elements(short) == [[[1, 0], [2, 2]], [[3, 3, 3, 0, 0]]]


def test_rebatching_keeps_the_rows() -> None:
    fours = Dataset.range(10).batch(4)
    assert elements(fours.rebatch(3)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert elements(fours.rebatch([2, 1])) == [[0, 1], [2], [3, 4], [5], [6, 7], [8], [9]]
    assert elements(fours.rebatch(3, drop_remainder=True)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_a_batch_that_is_divided_is_not_copied_for_each_part() -> None:
    parts = Dataset.from_tensors(np.arange(100)).rebatch(1).stage.start().next(100)
    assert [x.tolist() for (x,) in parts] == [[i] for i in range(100)]
    assert len({id(x.base) for (x,) in parts}) == 1


def test_unique_keeps_the_first() -> None:
    assert elements(Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique()) == [1, 37, 2]


def test_unique_compares_vectors_of_strings() -> None:
    words = Dataset.from_tensor_slices([["a", "b"], ["a", "b"], ["a", "c"]])
    assert elements(words.unique()) == [[b"a", b"b"], [b"a", b"c"]]


def test_choices_name_datasets() -> None:
    r = Dataset.range
    three = [r(3), r(10, 13), r(20, 23)]
    assert elements(Dataset.choose_from_datasets(three, r(3).repeat(2))) == [0, 10, 20, 1, 11, 21]
    uneven = [r(1), r(10, 13)]
    assert elements(Dataset.choose_from_datasets(uneven, r(2).repeat(3))) == [0, 10]
    passed = Dataset.choose_from_datasets(uneven, r(2).repeat(3), stop_on_empty_dataset=False)
    assert elements(passed) == [0, 10, 11, 12]


def test_sampling_follows_the_weights() -> None:
    zero, one = Dataset.from_tensors(0).repeat(), Dataset.from_tensors(1).repeat()
    result = elements(Dataset.sample_from_datasets([zero, one], [0.25, 0.75], seed=1).take(1000))
    assert 700 < sum(result) < 800  # 750 give or take 14


def test_sampling_ends_with_the_datasets_that_have_a_weight() -> None:
    r = Dataset.range
    sampled = Dataset.sample_from_datasets([r(3), r(10, 13), r(20, 23)], [1.0, 0.0, 2.0], seed=1)
    assert sorted(elements(sampled)) == [0, 1, 2, 20, 21, 22]


def test_random_numbers_are_the_same_in_each_iteration_and_spread() -> None:
    numbers = Dataset.random(seed=3).take(500)
    result = elements(numbers)
    assert result == elements(numbers)
    assert 0 <= min(result) < 2**27
    assert 2**32 - 2**27 < max(result) < 2**32


def test_ignore_errors_skips_elements_that_fail() -> None:
    inverse = Dataset.from_tensor_slices([1.0, 0.0, 4.0]).map(
        lambda x: df.debugging.check_numerics(1.0 / x, "infinite")
    )
    assert elements(inverse.ignore_errors()) == [1.0, 0.25]
    with pytest.warns(UserWarning, match="left out"):
        elements(inverse.ignore_errors(log_warning=True))


def test_the_kind_of_a_nested_dataset_is_known() -> None:
    spec = df.TensorSpec([], df.int64)
    assert Dataset.range(3).window(2).element_spec == df.data.DatasetSpec(spec)
