"""Partitions and how they are put back together, in both modes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dualflow as df

NUMBERS = arrays.arrays(np.int32, st.integers(0, 20), elements=st.integers(0, 3))


@given(partitions=NUMBERS)
def test_stitching_undoes_partitioning(partitions):
    data = np.arange(3 * len(partitions)).reshape(-1, 3)
    places = df.dynamic_partition(np.arange(len(partitions)), partitions, 4)
    parts = df.dynamic_partition(data, partitions, 4)
    for number, part in enumerate(parts):
        np.testing.assert_array_equal(part, data[partitions == number])
    np.testing.assert_array_equal(df.dynamic_stitch(places, parts), data)


def test_partitions_of_a_traced_tensor(mode):
    data, numbers = df.constant([[10, 20], [30, 40]]), df.constant([[1, 0], [0, 0]])
    result = mode(lambda data, numbers: df.dynamic_partition(data, numbers, 3))(data, numbers)
    assert [part.numpy().tolist() for part in result] == [[20, 30, 40], [10], []]


def test_one_number_is_a_partition_of_one_row(mode):
    result = mode(lambda: df.dynamic_partition([[1, 2], [3, 4]], 1, 2))()
    assert [part.shape for part in result] == [(0, 2, 2), (1, 2, 2)]


@pytest.mark.parametrize("number", [-1, 3])
def test_a_partition_that_does_not_exist_is_an_error(mode, number):
    with pytest.raises(df.errors.InvalidArgumentError, match=r"0\.\.2"):
        mode(lambda numbers: df.dynamic_partition([10, 20], numbers, 3))(df.constant([0, number]))


@pytest.mark.parametrize(
    ("indices", "data", "expected"),
    [
        ([[0, 3], [1]], [[10, 30], [20]], [10, 20, 0, 30]),
        ([[0, 1], [1]], [[10, 30], [20]], [10, 20]),
        ([0, [1, 2]], [[1.0, 2.0], [[3.0, 4.0], [5.0, 6.0]]], [[1, 2], [3, 4], [5, 6]]),
        ([[[0, 1], [3, 2]]], [[[10, 30], [20, 5]]], [10, 30, 5, 20]),
        ([np.zeros(0, int)], [np.zeros((0, 2))], np.zeros((0, 2))),
    ],
)
def test_rows_go_where_indices_point(mode, indices, data, expected):
    indices, data = [df.constant(i) for i in indices], [df.constant(d) for d in data]
    np.testing.assert_array_equal(mode(df.dynamic_stitch)(indices, data), expected)


def test_a_negative_index_is_an_error(mode):
    with pytest.raises(df.errors.OutOfRangeError):
        mode(lambda at: df.dynamic_stitch([at], [[1, 2]]))(df.constant([0, -1]))


def test_gradients_flow_to_each_part(mode):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            parts = df.dynamic_partition(x, [0, 1, 0], 2)
            y = df.reduce_sum(parts[0]) * 2 + df.reduce_sum(parts[1] ** 2)
        return tape.gradient(y, x)

    np.testing.assert_array_equal(mode(gradient)(df.constant([1.0, 3.0, 5.0])), [2, 6, 2])


def test_gradients_of_stitched_rows(mode):
    def gradient(x, y):
        with df.GradientTape() as tape:
            tape.watch([x, y])
            z = df.dynamic_stitch([[0, 2], [1]], [x, y]) * [1.0, 2.0, 3.0]
        return tape.gradient(z, [x, y])

    x, y = mode(gradient)(df.constant([1.0, 2.0]), df.constant([3.0]))
    np.testing.assert_array_equal(x, [1, 3])
    np.testing.assert_array_equal(y, [2])


def test_values_are_stacked_at_once(mode):
    result = mode(lambda x: df.parallel_stack([x, x + 1]))(df.constant([1, 2]))
    np.testing.assert_array_equal(result, [[1, 2], [2, 3]])


@pytest.mark.parametrize("shape", [(0, 0, 3), (2, 2, 2), (3, 0, 1)])
@pytest.mark.parametrize("spec", [[None, None, 3], [None, None, None], None])
def test_rows_are_stitched_whatever_their_dynamic_sizes(shape, spec):
    def stitched(x):
        numbers = df.cast(df.reduce_sum(x, [1, 2]) > 3.0, df.int32)
        places = df.dynamic_partition(df.range(df.shape(x)[0]), numbers, 2)
        return df.dynamic_stitch(places, df.dynamic_partition(x, numbers, 2))

    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    signature = None if spec is None else [df.TensorSpec([*spec[:2], shape[2] if spec[2] else None])]
    np.testing.assert_array_equal(df.function(stitched, input_signature=signature)(x), x)


@pytest.mark.parametrize("width", [0, 2, None])
def test_indices_of_two_dynamic_axes(width):
    specs = [df.TensorSpec([None, None], df.int32), df.TensorSpec([None, None, width])]
    stitched = df.function(lambda at, x: df.dynamic_stitch([at], [x]), input_signature=specs)
    at = np.array([[0, 1], [3, 2]], np.int32)
    x = np.arange(4 * (2 if width is None else width), dtype=np.float32).reshape(
        2, 2, -1 if width != 0 else 0
    )
    np.testing.assert_array_equal(stitched(at, x), x.reshape(4, x.shape[2])[[0, 1, 3, 2]])
