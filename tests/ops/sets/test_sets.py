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


@pytest.mark.llvm  # Numba has no programs for sizes that depend on data
@pytest.mark.parametrize("name", PYTHONS)
def test_one_program_takes_any_number_of_sets_of_any_size(name):
    function = getattr(df.sets, name)

    def joined(a, b):
        result = function(df.floor(a), df.floor(b))
        return result.indices, result.values * 2.0, result.dense_shape, df.sets.size(result)

    compiled = df.function(joined, input_signature=[df.TensorSpec([None, None, 2])] * 2)
    for n in (0, 1, 2, 31, 32, 33):
        a, b = df.random.uniform([2, n, n, 2], -3.0, 3.0)
        for result, expected in zip(compiled(a, b), joined(a, b), strict=True):
            np.testing.assert_array_equal(result, expected, strict=True)
    assert compiled.experimental_get_tracing_count() == 1
    assert "all_ops" not in compiled.status()
    with pytest.raises(df.errors.InvalidArgumentError, match="same sizes before the last axis"):
        compiled(df.ones([3, 2, 2]), df.ones([2, 3, 2]))


@pytest.mark.llvm
def test_sets_of_rows_that_a_mask_selects(mode):
    def common(a, b):
        result = df.sets.intersection(df.boolean_mask(a, a[:, 0] > 0), df.boolean_mask(b, b[:, 0] > 0))
        return df.sparse.to_dense(result)

    a, b = df.constant([[1, 2, 3], [0, 1, 2], [4, 5, 6]]), df.constant([[3, 1, 9], [6, 7, 4], [-1, 0, 1]])
    np.testing.assert_array_equal(mode(common)(a, b), [[1, 3], [4, 6]])
