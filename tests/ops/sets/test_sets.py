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
    found = {place: [] for place in np.ndindex(*leading)}
    for (*place, column), value in zip(x.indices.numpy(), x.values.numpy(), strict=True):
        assert column == len(found[tuple(map(int, place))])
        found[tuple(map(int, place))].append(value)
    return list(found.values())


@pytest.mark.parametrize("name", PYTHONS)
@given(a=ROWS, b=ROWS)
def test_sets_are_pythons(name, a, b):
    found = getattr(df.sets, name)(a, b)
    expected = [sorted(PYTHONS[name](set(x.tolist()), set(y.tolist()))) for x, y in zip(a, b, strict=True)]
    assert rows_of(found, (3,)) == expected
    assert found.dense_shape.numpy().tolist() == [3, max(map(len, expected))]
    assert df.sets.size(found).numpy().tolist() == list(map(len, expected))


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
    found = mode(lambda a, b: df.sets.difference(a, b, aminusb=False))(a, b)
    assert rows_of(found, (2, 1)) == [[5], []]
    assert found.dense_shape.numpy().tolist() == [2, 1, 1]
    np.testing.assert_array_equal(mode(df.sets.size)(found), [[1], [0]])


@pytest.mark.parametrize("dtype", [df.float64, df.uint8, df.bool])
def test_elements_keep_their_dtype(mode, dtype):
    found = mode(df.sets.union)(df.constant([[1, 0]], dtype), df.constant([[1]], dtype))
    assert found.dtype is dtype
    assert found.values.numpy().tolist() == [0, 1]
