"""Functions of TensorFlow 1 without a name in version 2, with TensorFlow's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualflow.compat import v1
from dualflow.core.errors import InvalidArgumentError

SPARSE = v1.SparseTensor([[0, 0], [1, 2]], [1.0, 2.0], [2, 3])


@given(st.lists(st.text("a|, ", max_size=6), min_size=1, max_size=3), st.sampled_from([" ", ",", "|,", ""]))
def test_each_character_is_a_delimiter(texts: list[str], delimiters: str) -> None:
    for character in delimiters[1:]:
        parted = [text.replace(character, delimiters[0]) for text in texts]
        texts = parted
    expected = [[p for p in (t.split(delimiters[0]) if delimiters else t) if p] for t in texts]
    parts = v1.string_split(texts, delimiter=delimiters, result_type="RaggedTensor")
    assert parts.to_list() == [[p.encode() for p in row] for row in expected]


def test_empty_parts_are_kept_on_request() -> None:
    assert v1.string_split(["a  b"], skip_empty=False).values.numpy().tolist() == [b"a", b"", b"b"]


def test_splits_are_sparse_unless_ragged_ones_are_requested() -> None:
    assert v1.strings.split("a b").dense_shape.numpy().tolist() == [1, 2]
    assert v1.strings.split(["a,b"], ",", result_type="RaggedTensor").to_list() == [[b"a", b"b"]]
    with pytest.raises(InvalidArgumentError, match="'SparseTensor' or 'RaggedTensor', not 'list'"):
        v1.string_split(["a"], result_type="list")


@pytest.mark.parametrize(
    ("indices", "shape", "values", "expected"),
    [
        (2, [4], 9, [0, 0, 9, 0]),
        ([1, 3], [4], [5, 6], [0, 5, 0, 6]),
        ([[0, 1], [1, 0]], [2, 2], 7, [[0, 7], [7, 0]]),
    ],
)
def test_values_are_written_to_a_dense_tensor(indices: Any, shape: Any, values: Any, expected: Any) -> None:
    assert v1.sparse_to_dense(indices, shape, values).numpy().tolist() == expected


def test_one_value_is_written_to_a_number_of_places_that_a_call_determines() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        indices = v1.placeholder(v1.int64, [None, 1])
        dense = v1.sparse_to_dense(indices, [4], 7.0)
        for places in ([[1], [3]], [[0]], np.zeros([0, 1])):
            expected = np.zeros(4)
            expected[np.array(places, int).ravel()] = 7.0
            np.testing.assert_array_equal(session.run(dense, {indices: places}), expected)


def test_an_average_norm_is_that_of_a_vector_whose_length_a_call_determines() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [None])
        clipped = v1.clip_by_average_norm(x, 1.25)
        for value, expected in (([3.0, 4.0], [1.5, 2.0]), ([3.0, 4.0, 0.0, 0.0], [3.0, 4.0, 0.0, 0.0])):
            np.testing.assert_allclose(session.run(clipped, {x: value}), expected, rtol=1e-6)


def test_sums_of_sparse_tensors_have_tensorflow_1_s_arguments() -> None:
    doubled = v1.sparse_add(SPARSE, SPARSE, thresh=3.0)
    assert v1.sparse_tensor_to_dense(doubled).numpy().tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 4.0]]
    assert v1.sparse_reduce_sum(SPARSE, reduction_axes=1, keep_dims=True).numpy().tolist() == [[1.0], [2.0]]


def test_patches_have_tensorflow_1_s_arguments() -> None:
    patches = v1.extract_image_patches(
        np.ones([1, 4, 4, 1]), ksizes=[1, 2, 2, 1], strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding="VALID"
    )
    assert patches.shape == (1, 2, 2, 4)


def test_tables_are_initialised_by_an_operation_of_the_graph() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        assert session.run([v1.tables_initializer(), v1.initialize_all_tables()]) == [None, None]
