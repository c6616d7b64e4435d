"""Errors of ``df.sparse``: each states the rejected input and what to do."""

from __future__ import annotations

import numpy as np
import pytest
from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

sparse = df.sparse
X = df.SparseTensor([[0, 1], [1, 2]], [1.0, 2.0], [3, 4])
OTHER = df.SparseTensor([[0, 0], [0, 1]], [1.0, 2.0], [3, 4])
SMALL, CUBE, LINE = (
    sparse.eye(2),
    df.SparseTensor([[0, 0, 0]], [1.0], [1, 1, 1]),
    df.SparseTensor([[0]], [1.0], [2]),
)
DENSE = df.ones([3, 4])
SLICES = df.IndexedSlices([[1.0]], [0])

CASES = {
    "distances of other numbers of axes": (
        lambda: df.edit_distance(X, CUBE),
        InvalidArgumentError,
        "same number of axes",
        "sparse.reshape",
    ),
    "distances of negative indices": (
        lambda: df.edit_distance(df.SparseTensor([[-5, 0]], [1.0], [3, 4]), X),
        InvalidArgumentError,
        "outside of the dense_shape",
        "give sequences whose indices are inside",
    ),
    "distances of other dtypes": (
        lambda: df.edit_distance(X, X.with_values([1, 2])),
        DTypeError,
        "float32 and int32",
        "cast one",
    ),
    "crosses of no inputs": (lambda: sparse.cross_hashed([]), InvalidArgumentError, "one or more inputs"),
    "a negative number of buckets": (
        lambda: sparse.cross_hashed([[[1]]], -1),
        InvalidArgumentError,
        "0 or more, not -1",
    ),
    "crosses of sparse features": (
        lambda: sparse.cross_hashed([X]),
        InvalidArgumentError,
        "not a SparseTensor",
        "to_dense",
    ),
    "crosses of floats": (lambda: sparse.cross_hashed([DENSE]), DTypeError, "not float32"),
    "crosses of vectors": (
        lambda: sparse.cross_hashed([["a"]]),
        InvalidArgumentError,
        r"not shape \(1,\)",
        "reshape",
    ),
    "crosses of other rows": (
        lambda: sparse.cross_hashed([[["a"]], [["b"], ["c"]]]),
        InvalidArgumentError,
        r"not of \[1, 2\] rows",
    ),
    "parts of other ranks": (
        lambda: df.SparseTensor([0], [1.0], [3]),
        InvalidArgumentError,
        r"\(1,\) and \(1,\)",
        "reshape",
    ),
    "too few indices": (
        lambda: df.SparseTensor([[0]], [1.0, 2.0], [3]),
        InvalidArgumentError,
        "2 values",
        "a row for each",
    ),
    "a value like one": (lambda: df.SparseTensor.from_value(3), DTypeError, "not 3", "from_dense"),
    "no tensor": (lambda: df.add(X, 1.0), DTypeError, r"shape \(3, 4\)", r"to_dense\(x\)"),
    "no array": (lambda: df.convert_to_tensor(X), DTypeError, r"shape \(3, 4\)", "map_values"),
    "no product": (lambda: X * X, DTypeError, r"shape \(3, 4\)", "map_values"),
    "an open signature": (
        lambda: df.function(lambda x: x, input_signature=[df.SparseTensorSpec([None, 3])])(SMALL),
        InvalidArgumentError,
        r"not \(None, 3\)",
        "Leave the signature out",
    ),
    "slices and indices": (
        lambda: df.IndexedSlices([[1.0]], [0, 1]),
        InvalidArgumentError,
        r"\(1, 1\).*\(2,\)",
        "as many",
    ),
    "slices of what": (
        lambda: df.convert_to_tensor(SLICES),
        InvalidArgumentError,
        "without dense_shape",
        "give dense_shape",
    ),
    "a tensor": (lambda: sparse.reorder(DENSE), DTypeError, "is required, not", "from_dense"),
    "too many places": (
        lambda: sparse.reorder(df.SparseTensor([[0, 0]], [1.0], [1 << 40, 1 << 40])),
        InvalidArgumentError,
        "more places than int64",
        "smaller",
    ),
    "a smaller shape": (
        lambda: sparse.reset_shape(X, [2, 2]),
        InvalidArgumentError,
        r"\(2, 2\)",
        "sparse.slice",
    ),
    "another number of places": (
        lambda: sparse.reshape(X, [5, -1]),
        InvalidArgumentError,
        r"\(5, -1\)",
        "one size may be -1",
    ),
    "no permutation": (
        lambda: sparse.transpose(X, [0, 0]),
        InvalidArgumentError,
        r"\[0, 0\]",
        "each of 2 axes once",
    ),
    "no such axis": (lambda: sparse.expand_dims(X, 7), InvalidArgumentError, "axis 7", "use -3..2"),
    "no axes": (lambda: sparse.from_dense(3.0), InvalidArgumentError, "without axes", "reshape"),
    "nothing to map": (
        lambda: sparse.map_values(df.add, 1, 2),
        InvalidArgumentError,
        "No SparseTensor",
        "the function itself",
    ),
    "shapes to map": (
        lambda: sparse.map_values(df.add, X, SMALL),
        InvalidArgumentError,
        r"\(3, 4\), \(2, 2\)",
        "one shape",
    ),
    "places to map": (
        lambda: sparse.map_values(df.add, X, OTHER),
        InvalidArgumentError,
        "other places",
        "sparse.add",
    ),
    "out of order": (
        lambda: sparse.to_dense(df.SparseTensor([[1], [0]], [1, 2], [2])),
        InvalidArgumentError,
        "out of order or repeated",
        "sparse.reorder",
    ),
    "outside": (
        lambda: sparse.to_dense(df.SparseTensor([[5]], [1], [2])),
        df.errors.OutOfRangeError,
        "index 5",
        "use 0..1",
    ),
    "a tensor to add": (lambda: sparse.add(DENSE, DENSE), DTypeError, "At least one", "df.add"),
    "shapes to add": (
        lambda: sparse.add(X, SMALL),
        InvalidArgumentError,
        r"\(3, 4\) and \(2, 2\)",
        "reshape",
    ),
    "a dense shape to add": (
        lambda: sparse.add(X, df.ones([4])),
        InvalidArgumentError,
        r"\(3, 4\) and \(4,\)",
        "reshape",
    ),
    "no matrix": (
        lambda: sparse.sparse_dense_matmul(CUBE, DENSE),
        InvalidArgumentError,
        r"\(1, 1, 1\)",
        "loop over",
    ),
    "two sparse ones": (
        lambda: sparse.sparse_dense_matmul(SMALL, SMALL),
        DTypeError,
        "one tensor",
        "to_dense",
    ),
    "inner sizes": (
        lambda: sparse.sparse_dense_matmul(X, DENSE),
        InvalidArgumentError,
        r"\(3, 4\) and \(3, 4\)",
        "transpose",
    ),
    "bools to retain": (
        lambda: sparse.retain(X, [True]),
        InvalidArgumentError,
        r"each of 2 elements",
        r"not the shape \(1,\)",
    ),
    "a part of other axes": (
        lambda: sparse.slice(X, [0], [1, 1]),
        InvalidArgumentError,
        "not 1 and 2",
        "each of 2 axes",
    ),
    "parts": (lambda: sparse.split(X, 9, 0), InvalidArgumentError, "not 9", "between 1 and 3"),
    "ranks to join": (
        lambda: sparse.concat(0, [X, CUBE]),
        InvalidArgumentError,
        r"\(1, 1, 1\)",
        "of one rank",
    ),
    "sizes to join": (
        lambda: sparse.concat(0, [X, SMALL]),
        InvalidArgumentError,
        r"\[2, 4\] on axis 1",
        "expand_nonconcat",
    ),
    "rows of a line": (
        lambda: sparse.softmax(LINE),
        InvalidArgumentError,
        r"not of shape \(2,\)",
        "expand_dims",
    ),
    "ids of segments": (
        lambda: sparse.segment_sum(DENSE, [0], [0, 1]),
        InvalidArgumentError,
        r"\(2,\)",
        "one for each index",
    ),
    "no slices": (lambda: sparse.mask(DENSE, [0]), DTypeError, "IndexedSlices, not", "boolean_mask"),
    "no rows": (
        lambda: sparse.fill_empty_rows(LINE, 0.0),
        InvalidArgumentError,
        r"shape \(2,\)",
        "expand_dims",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/sparse/*.py",)


def test_a_refused_call_leaves_its_inputs_alone() -> None:
    with pytest.raises(InvalidArgumentError):
        X.set_shape([3, 5])
    assert X.shape == (3, 4)
    assert np.array_equal(X.values, [1.0, 2.0])
