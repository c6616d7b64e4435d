"""Blocks moved into the batch and back, sequences turned round, and shapes as values, in both modes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df


def blocks_of(x, blocks):
    """Each member of the new batch by strides: of the first axis, from one place in each block."""
    places = np.ndindex(*blocks)
    rows = [x[(slice(None), *[slice(p, None, b) for p, b in zip(at, blocks, strict=True)])] for at in places]
    return np.concatenate(rows)


@given(
    blocks=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    counts=st.lists(st.integers(1, 3), min_size=2, max_size=2),
    further=st.integers(0, 2),
)
def test_blocks_are_moved_into_the_batch_and_back(blocks, counts, further):
    shape = (2, *[b * c for b, c in zip(blocks, counts, strict=False)], *[3] * further)
    x = np.arange(np.prod(shape)).reshape(shape)
    moved = df.space_to_batch(x, blocks, [[0, 0]] * len(blocks))
    np.testing.assert_array_equal(moved, blocks_of(x, blocks))
    np.testing.assert_array_equal(df.batch_to_space(moved, blocks, [[0, 0]] * len(blocks)), x)


def test_paddings_come_first_and_crops_last(mode):
    x = df.constant([[1, 2, 3, 4]])
    moved = mode(lambda x: df.space_to_batch_nd(x, [3], [[1, 1]]))(x)
    np.testing.assert_array_equal(moved, [[0, 3], [1, 4], [2, 0]])
    np.testing.assert_array_equal(mode(lambda x: df.batch_to_space(x, [3], [[1, 1]]))(moved), x)
    square = mode(lambda x: df.batch_to_space(x, 2, [[0, 0], [0, 1]]))(df.reshape(df.range(4), [4, 1, 1]))
    np.testing.assert_array_equal(square, [[[0], [2]]])


@pytest.mark.parametrize(
    ("base", "paddings", "crops"),
    [(None, [[0, 1], [0, 2]], [[0, 1], [0, 2]]), ([[1, 0], [0, 1]], [[1, 0], [0, 2]], [[0, 0], [0, 1]])],
)
def test_the_paddings_that_blocks_need(base, paddings, crops):
    result = df.required_space_to_batch_paddings([5, 7], [2, 3], base)
    np.testing.assert_array_equal(result[0], np.array(paddings, np.int32), strict=True)
    np.testing.assert_array_equal(result[1], np.array(crops, np.int32), strict=True)


@pytest.mark.parametrize(
    ("lengths", "options", "expected"),
    [
        ([2, 3], {"seq_axis": 1}, [[2, 1, 3], [6, 5, 4]]),
        ([0, 1], {"seq_axis": 1, "batch_axis": 0}, [[1, 2, 3], [4, 5, 6]]),
        ([2, 1, 0], {"seq_axis": 0, "batch_axis": 1}, [[4, 2, 3], [1, 5, 6]]),
    ],
)
def test_sequences_are_turned_round(mode, lengths, options, expected):
    call = mode(lambda x, lengths: df.reverse_sequence(x, lengths, **options))
    np.testing.assert_array_equal(call(df.constant([[1, 2, 3], [4, 5, 6]]), df.constant(lengths)), expected)


def test_sequences_of_rows(mode):
    x = np.arange(24).reshape(2, 4, 3)
    expected = np.stack([x[0], x[1][[2, 1, 0, 3]]])
    call = mode(lambda x, n: df.reverse_sequence(x, n, seq_axis=1))
    np.testing.assert_array_equal(call(df.constant(x), df.constant([1, 3])), expected)


def test_reverse_is_native_and_so_is_its_gradient():
    def gradient(x, lengths):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reverse_sequence(x, lengths, seq_axis=1) * [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        return tape.gradient(y, x)

    f = df.function(gradient)
    np.testing.assert_array_equal(f(df.ones([2, 3]), df.constant([2, 1])), [[2, 1, 3], [4, 5, 6]])
    assert "numpy:" not in str(f.status())


@pytest.mark.parametrize("length", [-1, 4])
def test_a_length_that_no_sequence_has_is_an_error(mode, length):
    with pytest.raises(df.errors.InvalidArgumentError, match="seq_lengths"):
        mode(lambda n: df.reverse_sequence([[1, 2, 3]], n, seq_axis=1))(df.constant([length]))


@pytest.mark.parametrize(("x", "y"), [([2, 1], [3]), ([], [4]), ([5], [1, 1]), ([0], [1])])
def test_shapes_broadcast_as_numpys(mode, x, y):
    expected = np.broadcast_shapes(tuple(x), tuple(y))
    assert df.broadcast_static_shape(x, y) == expected
    given_shapes = df.constant(x, df.int32), df.constant(y, df.int32)
    np.testing.assert_array_equal(mode(df.broadcast_dynamic_shape)(*given_shapes), expected)


def test_incompatible_shapes(mode):
    with pytest.raises(df.errors.InvalidArgumentError, match="broadcast"):
        mode(df.broadcast_dynamic_shape)(df.constant([2]), df.constant([3]))


def test_dynamic_sizes_broadcast():
    assert df.broadcast_static_shape(df.TensorShape([None, 1]), [3]).as_list() == [None, 3]
    assert df.broadcast_static_shape(df.TensorShape(None), [3]).rank is None


def test_the_shape_of_each(mode):
    result = mode(lambda x, y: df.shape_n([x, y], df.int64))(df.ones([2, 3]), df.constant(1))
    assert [(s.numpy().tolist(), s.dtype) for s in result] == [([2, 3], df.int64), ([], df.int64)]


def test_each_of_several(mode):
    result = mode(lambda x, y: df.identity_n([x, y]))(df.constant([1.0]), df.constant(2))
    assert [x.numpy().tolist() for x in result] == [[1], 2]


@given(dims=st.lists(st.integers(1, 4), min_size=1, max_size=3), data=st.data())
def test_places_along_each_axis_are_numpys(dims, data):
    at = data.draw(st.lists(st.integers(0, int(np.prod(dims)) - 1), max_size=4))
    expected = np.array(np.unravel_index(np.array(at, int), dims))
    np.testing.assert_array_equal(df.unravel_index(df.constant(at, df.int32), dims), expected)


def test_places_in_a_shape_known_only_at_run_time(mode):
    result = mode(df.unravel_index)(df.constant(5), df.constant([2, 3]))
    np.testing.assert_array_equal(result, [1, 2])
    with pytest.raises(df.errors.InvalidArgumentError, match="product of dims"):
        mode(df.unravel_index)(df.constant([6]), df.constant([2, 3]))
