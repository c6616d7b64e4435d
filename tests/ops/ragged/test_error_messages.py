"""What ragged tensors refuse: what was wrong, and what to do about it."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

R, ragged = df.RaggedTensor, df.ragged
X = ragged.constant([[3.0, 1.0], [], [4.0, 1.0, 5.0]])
Y = ragged.constant([[[1, 2], [3]], [], [[4, 5, 6]]])
SHORT = ragged.constant([[1.0], [2.0, 3.0], []])
OTHER = ragged.constant([[3.0], [1.0], [2.0]])
I = ragged.constant([[[0]], [], []])  # noqa: E741  # indices
M, V = df.ones([2, 3]), df.constant([1, 2, 3])
SPARSE = df.SparseTensor([[0, 1]], [1.0], [2, 2])
SPEC = df.RaggedTensorSpec([None, None])


def traced(function):
    """Trace ``function`` with a ragged tensor of unknown row lengths."""
    return df.function(function, input_signature=[SPEC])(X)


CASES = {
    "no tensor": (lambda: df.matmul(X, X), DTypeError, r"shape \(3, None\)", r"to_tensor\(\) pads"),
    "a conversion": (
        lambda: df.convert_to_tensor(X),
        DTypeError,
        "where a tensor is required",
        "map_flat_values",
    ),
    "an array": (lambda: df.nn.softmax(X), DTypeError, "where a tensor is required", "map_flat_values"),
    "a call of the class": (lambda: R([1], [0, 1]), DTypeError, "created by", "ragged.constant"),
    "depths": (lambda: ragged.constant([1, [2]]), InvalidArgumentError, "at one depth", "nest them alike"),
    "a depth": (
        lambda: ragged.constant([[1]], ragged_rank=2),
        InvalidArgumentError,
        "not less than",
        "leave it out",
    ),
    "a shape": (lambda: df.shape(X), InvalidArgumentError, "no shape as a tensor", "bounding_shape"),
    "ranges": (
        lambda: ragged.range([1, 2], [3, 4, 5]),
        InvalidArgumentError,
        "vectors of one size",
        "reshape",
    ),
    "an endless range": (lambda: ragged.range([1], [3], [0]), InvalidArgumentError, "deltas are not 0"),
    "too few partitions": (
        lambda: ragged.stack_dynamic_partitions([1, 2, 3], [0, 1], 2),
        InvalidArgumentError,
        "does not start with the shape of the partitions",
    ),
    "rows to join in a function": (
        lambda: df.function(lambda x, y: df.concat([x, y], 1), input_signature=[SPEC, SPEC])(X, X[:2]),
        InvalidArgumentError,
        "as many rows",
    ),
    "an empty stack": (lambda: ragged.stack([]), InvalidArgumentError, "list is empty", "give one"),
    "ranks to stack": (
        lambda: ragged.stack([[1], 2]),
        InvalidArgumentError,
        r"shapes \(1,\), \(\)",
        "reshape",
    ),
    "a mask of numbers": (lambda: ragged.boolean_mask(M, M), DTypeError, "not float32", "x > 0"),
    "a long mask": (
        lambda: ragged.boolean_mask(V, M > 0),
        InvalidArgumentError,
        r"\(2, 3\).*\(3,\)",
        "equal",
    ),
    "another mask": (lambda: ragged.boolean_mask(X, OTHER > 0), InvalidArgumentError, "row lengths"),
    "no splits to ids": (
        lambda: ragged.row_splits_to_segment_ids([]),
        InvalidArgumentError,
        "empty",
        r"\[0\]",
    ),
    "sizes": (lambda: X.to_tensor(shape=[3]), InvalidArgumentError, "1 sizes", "one for each"),
    "a wide default": (lambda: X.to_tensor([1.0, 2.0]), InvalidArgumentError, r"shape \(2,\)", "one value"),
    "wide padding": (
        lambda: R.from_tensor(M, padding=[1.0]),
        InvalidArgumentError,
        r"shape \(1,\)",
        "one of these",
    ),
    "other ragged axes": (
        lambda: X + df.cast(Y, df.float32),
        InvalidArgumentError,
        "1 ragged axes can't be combined with one with 2",
        "same",
    ),
    "other row lengths": (lambda: X + OTHER, InvalidArgumentError, "same row lengths", "slice or pad"),
    "other row lengths in a function": (
        lambda: df.function(lambda x, y: df.reduce_sum(x + y), input_signature=[SPEC, SPEC])(OTHER, SHORT),
        InvalidArgumentError,
        "same row lengths",
    ),
    "other row lengths in a function of splits": (
        lambda: df.function(lambda x, y: (x + y).row_splits, input_signature=[SPEC, SPEC])(OTHER, SHORT),
        InvalidArgumentError,
        "same row lengths",
    ),
    "other numbers of rows in a function": (
        lambda: df.function(lambda x, y: x + y, input_signature=[SPEC, SPEC])(OTHER, OTHER[:2]),
        InvalidArgumentError,
        "same row lengths",
    ),
    "other numbers of rows": (lambda: X + OTHER[:2], InvalidArgumentError, "same row lengths"),
    "more axes": (lambda: X + df.ones([1, 3, 1]), InvalidArgumentError, "more axes"),
    "another width": (
        lambda: X + df.ones([3, 2]),
        InvalidArgumentError,
        "sizes are 1, or those of all rows",
        "pad",
    ),
    "fewer values": (lambda: X.with_values([1.0]), InvalidArgumentError, r"5 values.*\(1,\)", "as many"),
    "splits of floats": (
        lambda: X.with_row_splits_dtype(df.float32),
        DTypeError,
        "not float32",
        "one of these",
    ),
    "a spec of any rank": (lambda: df.RaggedTensorSpec(), InvalidArgumentError, "Must specify ragged_rank"),
    "a spec of a tensor": (
        lambda: df.RaggedTensorSpec([3], ragged_rank=1),
        InvalidArgumentError,
        r"\(3,\)",
        "TensorSpec",
    ),
    "a symbolic list": (
        lambda: traced(lambda x: x.to_list()),
        InvalidArgumentError,
        "symbolic",
        "on the result",
    ),
    "a symbolic loop": (lambda: traced(list), DTypeError, "symbolic RaggedTensor", "df.range"),
    "a sparse tensor of rows": (
        lambda: ragged.constant([[[1, 2]]], ragged_rank=1).to_sparse(),
        InvalidArgumentError,
        r"\(1, 2\)",
        "ragged_rank",
    ),
    "axes to merge": (lambda: X.merge_dims(1, 0), InvalidArgumentError, "axes 1 to 0", "in order"),
    "no splits": (lambda: R.from_row_splits([1], []), InvalidArgumentError, "empty", r"\[0\]"),
    "decreasing splits": (
        lambda: R.from_row_splits([1, 2], [0, 2, 1, 2]),
        InvalidArgumentError,
        "never decrease",
    ),
    "short splits": (lambda: R.from_row_splits([1, 2], [0, 1]), InvalidArgumentError, "number of values"),
    "lengths": (lambda: R.from_row_lengths([1, 2], [1, 2]), InvalidArgumentError, "number of values"),
    "row ids": (lambda: R.from_value_rowids([1, 2], [1, 0]), InvalidArgumentError, "never decrease"),
    "large row ids": (
        lambda: R.from_value_rowids([1, 2], [0, 5], nrows=2),
        InvalidArgumentError,
        "below nrows",
    ),
    "splits of halves": (lambda: R.from_row_splits([1], [0.0, 1.0]), DTypeError, "int32 or int64", "cast"),
    "splits of rows": (
        lambda: R.from_row_splits([1], [[0, 1]]),
        InvalidArgumentError,
        r"\(1, 2\)",
        "reshape",
    ),
    "a negative length": (
        lambda: R.from_uniform_row_length([1], -1),
        InvalidArgumentError,
        "not -1",
        "length of a row",
    ),
    "no multiple": (
        lambda: R.from_uniform_row_length([1, 2, 3], 2),
        InvalidArgumentError,
        "number of values",
    ),
    "numbers of rows": (
        lambda: R.from_nested_value_rowids([1], [[0]], [1, 1]),
        InvalidArgumentError,
        "2 numbers for 1",
    ),
    "a vector": (lambda: R.from_tensor(V), InvalidArgumentError, r"shape \(3,\)", "less than"),
    "two ways to cut": (
        lambda: R.from_tensor(M, [1, 2], 0.0),
        InvalidArgumentError,
        "by lengths or by padding",
        "one",
    ),
    "a dense one": (lambda: R.from_sparse(M), DTypeError, "takes a SparseTensor", "from_tensor"),
    "a sparse cube": (
        lambda: R.from_sparse(df.SparseTensor([[0, 0, 0]], [1], [1, 1, 1])),
        InvalidArgumentError,
        "takes a matrix",
        "reshape",
    ),
    "a gap": (lambda: R.from_sparse(SPARSE), InvalidArgumentError, "without gaps"),
    "a scalar": (lambda: R.from_row_splits(1, [0, 1]), InvalidArgumentError, "no rows", "list"),
    "one partition": (
        lambda: R.from_nested_row_splits([1], df.constant([0, 1])),
        DTypeError,
        "are a list",
        "axis",
    ),
    "float indices": (lambda: df.gather(X, [0.5]), DTypeError, "not float32", "cast"),
    "indices out of range": (lambda: df.gather(X, [3]), InvalidArgumentError, "in range of the rows"),
    "an index out of range": (lambda: X[3], InvalidArgumentError, "index 3 is out of range", "nrows"),
    "an index out of range in a function": (
        lambda: df.function(lambda x, i: x[i], input_signature=[SPEC, df.TensorSpec([], df.int32)])(X, 3),
        InvalidArgumentError,
        "in range of the rows",
    ),
    "two ellipses": (lambda: X[..., ...], InvalidArgumentError, "2 ellipses", "at most"),
    "an index of floats": (lambda: X[0.5], DTypeError, "0.5 is no index", "df.gather"),
    "a column": (lambda: X[:, 0], InvalidArgumentError, "inner ragged dimension", "Slice the rows"),
    "no step": (lambda: X[:, ::0], InvalidArgumentError, "can't be 0", "leave it out"),
    "ranks to join": (lambda: df.concat([X, Y], 0), InvalidArgumentError, r"\(3, None\)", "expand"),
    "rows to join": (lambda: df.concat([X, OTHER[:1]], 1), InvalidArgumentError, r"\(1, None\)", "slice"),
    "inner rows to join": (lambda: df.concat([Y, Y[::-1]], 2), InvalidArgumentError, "same row lengths"),
    "one_hot": (
        lambda: df.one_hot(df.cast(X, df.int32), 3, axis=0),
        InvalidArgumentError,
        "not axis 0",
        "leave axis",
    ),
    "tiles": (lambda: df.tile(X, [2]), InvalidArgumentError, r"\(2,\)", "each axis"),
    "an axis to gather": (lambda: df.gather(X, [0], axis=1), InvalidArgumentError, "axis=1", "transpose"),
    "nested indices": (
        lambda: df.gather(X, I, batch_dims=1),
        InvalidArgumentError,
        "one ragged axis",
        "merge",
    ),
    "an index in another row": (
        lambda: df.gather(X, [[2], [0], [0]], batch_dims=1),
        InvalidArgumentError,
        "below the row lengths",
    ),
    "rows to gather in": (
        lambda: df.gather(X, df.cast(OTHER[:1], df.int32) * 0, batch_dims=1),
        InvalidArgumentError,
        "as many rows",
    ),
    "separators": (
        lambda: df.strings.split(["a"], ["b", "c"]),
        InvalidArgumentError,
        r"shape \(2,\)",
        "once for each",
    ),
    "numbers to split": (lambda: df.strings.split(V), DTypeError, "takes strings"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/ragged/*.py", "ops/text/splitting.py")
