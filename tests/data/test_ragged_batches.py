"""Datasets of elements of different lengths: ragged batches, and their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from forked_programs import run_forked
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

Dataset = df.data.Dataset
X = df.ragged.constant([[3.0, 1.0], [], [4.0, 1.0, 5.0]])
Y = df.ragged.constant([[[1, 2], [3]], [], [[4, 5, 6]]])


def counted(limit: int) -> Any:
    """Elements of 0, 1, 2, ... numbers."""
    return Dataset.range(limit).map(lambda n: df.range(n))


def listed(dataset: Any) -> list[Any]:
    return [x.to_list() if isinstance(x, df.RaggedTensor) else x.numpy().tolist() for x in dataset]


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=6),
    st.integers(1, 4),
    st.booleans(),
)
def test_a_batch_has_the_elements_as_rows(rows: list[list[int]], size: int, drop: bool) -> None:
    dataset = Dataset.from_tensor_slices(df.ragged.constant(rows, df.int32)).ragged_batch(size, drop)
    batches = [rows[i : i + size] for i in range(0, len(rows), size)]
    assert listed(dataset) == [batch for batch in batches if len(batch) == size or not drop]
    assert listed(dataset.unbatch()) == [row for batch in listed(dataset) for row in batch]


def test_the_spec_of_a_batch_is_that_of_ragged_tensors() -> None:
    dataset = counted(4).ragged_batch(2, drop_remainder=True, row_splits_dtype="int32")
    assert dataset.element_spec == df.RaggedTensorSpec([2, None], df.int64, 1, df.int32)
    assert {batch.row_splits.dtype for batch in dataset} == {df.int32}
    assert int(dataset.cardinality()) == 2


def test_components_of_one_size_are_batched_as_tensors() -> None:
    dataset = Dataset.range(3).map(lambda n: {"words": df.range(n), "n": n, "pair": df.stack([n, n])})
    (batch,) = dataset.ragged_batch(3)
    assert batch["words"].to_list() == [[], [0], [0, 1]]
    assert batch["n"].numpy().tolist() == [0, 1, 2]
    assert batch["pair"].shape == (3, 2)


def test_several_unknown_sizes_are_several_ragged_axes() -> None:
    dataset = Dataset.range(1, 3).map(lambda n: df.ones([n, 2, n], df.int32))
    assert dataset.element_spec.shape == (None, 2, None)
    (batch,) = dataset.ragged_batch(2)
    assert batch.to_list() == [[[[1], [1]]], [[[1, 1], [1, 1]], [[1, 1], [1, 1]]]]


@pytest.mark.parametrize("value", [X, Y], ids=["one axis", "two axes"])
def test_rows_of_a_ragged_tensor_are_elements(value: Any) -> None:
    dataset = Dataset.from_tensor_slices((value, [10, 20, 30]))
    assert [(listed([x])[0], int(n)) for x, n in dataset] == list(
        zip(value.to_list(), [10, 20, 30], strict=True)
    )
    assert int(dataset.cardinality()) == 3
    assert listed(Dataset.from_tensors(value)) == [value.to_list()]


def test_batches_of_ragged_elements_are_ragged() -> None:
    assert listed(Dataset.from_tensor_slices(Y).batch(2)) == [[[[1, 2], [3]], []], [[[4, 5, 6]]]]
    words = Dataset.from_tensor_slices(["a b", "c", "d e f"]).batch(2).map(df.strings.split)
    assert listed(words) == [[[b"a", b"b"], [b"c"]], [[b"d", b"e", b"f"]]]
    assert listed(words.unbatch()) == [[b"a", b"b"], [b"c"], [b"d", b"e", b"f"]]
    assert listed(words.unbatch().ragged_batch(3)) == [[[b"a", b"b"], [b"c"], [b"d", b"e", b"f"]]]


def test_functions_take_ragged_elements() -> None:
    sums = counted(5).ragged_batch(2).map(lambda x: df.reduce_sum(x, axis=1))
    assert listed(sums) == [[0, 0], [1, 3], [6]]
    padded = counted(3).ragged_batch(3).map(lambda x: x.to_tensor(-1))
    assert listed(padded) == [[[-1, -1], [0, -1], [0, 1]]]


def test_an_iterator_s_state_restores_its_place_among_rows() -> None:
    iterator = iter(Dataset.from_tensor_slices(X))
    next(iterator)
    state = iterator.get_state()
    remaining = listed(iterator)
    iterator.set_state(state)
    assert listed(iterator) == remaining == [[], [4.0, 1.0, 5.0]]


def test_the_older_name_is_a_transformation() -> None:
    assert listed(counted(3).apply(df.data.experimental.dense_to_ragged_batch(2))) == [[[], [0]], [[0, 1]]]


def test_a_program_that_names_no_ragged_tensor_may_read_such_batches() -> None:
    program = """if True:
        import dualflow as df
        rows = df.data.Dataset.range(3).map(lambda n: df.range(n))
        print([batch.to_list() for batch in rows.ragged_batch(3)])
    """
    assert run_forked(["-c", program]).stdout == "[[[], [0], [0, 1]]]\n"


def test_a_batch_of_an_unknown_number_of_axes_is_refused() -> None:
    values = iter([np.ones(2), np.ones((2, 2))])
    dataset = Dataset.from_generator(lambda: values, output_signature=df.TensorSpec(None, df.float64))
    with pytest.raises(ValueError, match="known number of axes; give them a shape with map"):
        dataset.ragged_batch(2)


def test_components_with_other_numbers_of_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="same first size"):
        list(Dataset.from_tensor_slices((X, [1, 2])))
