"""Sets against Python's, of dense and sparse tensors, in both modes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dualflow as df

PYTHONS = {
    "intersection": set.intersection,
    "union": set.union,
    "difference": set.difference,
}
ROWS = arrays.arrays(np.int32, st.tuples(st.just(3), st.integers(0, 5)), elements=st.integers(-3, 3))


def rows_of(x, leading):
    """The elements that are stored, by the place of their set, in order."""
    rows = {place: [] for place in np.ndindex(*leading)}
    for (*place, column), value in zip(x.indices.numpy(), x.values.numpy(), strict=True):
        assert column == len(rows[tuple(map(int, place))])
        rows[tuple(map(int, place))].append(value)
    return list(rows.values())


@pytest.mark.parametrize("name", PYTHONS)
@given(a=ROWS, b=ROWS)
def test_sets_are_pythons(name, a, b):
    result = getattr(df.sets, name)(a, b)
    expected = [sorted(PYTHONS[name](set(x.tolist()), set(y.tolist()))) for x, y in zip(a, b, strict=True)]
    assert rows_of(result, (3,)) == expected
    assert result.dense_shape.numpy().tolist() == [3, max(map(len, expected))]
    assert df.sets.size(result).numpy().tolist() == list(map(len, expected))


@pytest.mark.parametrize("name", PYTHONS)
def test_sparse_sets_are_those_of_what_is_stored(mode, name):
    function = getattr(df.sets, name)
    a, b = np.array([[3, 1, 2], [4, 4, 5]]), np.array([[2, 7, 4], [5, 6, 6]])
    expected = rows_of(function(a, b), (2,))
    sparse = [df.sparse.from_dense(x) for x in (a, b)]
    assert rows_of(mode(function)(*sparse), (2,)) == expected
    assert rows_of(mode(function)(df.constant(a), sparse[1]), (2,)) == expected


def test_sets_of_several_axes_and_the_other_difference(mode):
    a, b = df.constant([[[1, 2]], [[3, 4]]]), df.constant([[[2, 5]], [[3, 4]]])
    result = mode(lambda a, b: df.sets.difference(a, b, aminusb=False))(a, b)
    assert rows_of(result, (2, 1)) == [[5], []]
    assert result.dense_shape.numpy().tolist() == [2, 1, 1]
    np.testing.assert_array_equal(mode(df.sets.size)(result), [[1], [0]])


@pytest.mark.parametrize("dtype", [df.float64, df.uint8, df.bool])
def test_elements_keep_their_dtype(mode, dtype):
    result = mode(df.sets.union)(df.constant([[1, 0]], dtype), df.constant([[1]], dtype))
    assert result.dtype is dtype
    assert result.values.numpy().tolist() == [0, 1]
