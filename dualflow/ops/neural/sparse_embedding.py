"""Embeddings of sparse rows: the rows of a table for the ids in each row of a sparse tensor, combined."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float32, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.arithmetic import divide_no_nan, maximum
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import greater, greater_equal, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import stack
from dualflow.ops.neural.embedding import embedding_lookup
from dualflow.ops.powers import sqrt
from dualflow.ops.reduction import reduce_max
from dualflow.ops.scattering import scatter_nd
from dualflow.ops.selection import where
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_COMBINERS = ("mean", "sqrtn", "sum")


def _check_lookup(sp_ids: Any, sp_weights: Any, combiner: Any, what: str) -> str:
    kind = "mean" if combiner is None else combiner
    if kind not in _COMBINERS:
        raise InvalidArgumentError(f"combiner is 'mean', 'sqrtn' or 'sum', not {combiner!r}.")
    if not isinstance(sp_ids, SparseTensor) or not isinstance(sp_weights, SparseTensor | None):
        raise DTypeError(
            f"{what} takes SparseTensors of ids and weights, not {sp_ids!r} and {sp_weights!r}; "
            "df.sparse.from_dense makes one."
        )
    return str(kind)


def _combined_rows(rows: Any, weights: Any, indices: Any, count: Any, combiner: str) -> Any:
    """Rows summed at their positions, and divided as the combiner requires."""
    broadcast_weights = reshape(weights, [-1, *[1] * (len(rows.shape) - 1)])
    shape = [count, *rows.shape[1:]]
    total = scatter_nd(indices, rows * broadcast_weights, shape)
    if combiner == "sum":
        return total
    powers = weights if combiner == "mean" else weights * weights
    norm = scatter_nd(indices, powers, [count])
    norm = norm if combiner == "mean" else sqrt(maximum(norm, 0))
    return divide_no_nan(total, reshape(norm, [count, *[1] * (len(rows.shape) - 1)]))


def _weights(sp_weights: Any, like: Any, dtype: Any) -> Any:
    if sp_weights is None:
        return cast(greater_equal(like, like), dtype)
    return cast(sp_weights.values, dtype)


def embedding_lookup_sparse(
    params: TensorLike,
    sp_ids: SparseTensor,
    sp_weights: SparseTensor | None,
    combiner: str | None = None,
    max_norm: TensorLike | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """The rows of a table for the ids in each row of a sparse matrix, combined to one.

    Args:
        params: a table, or a list of tables whose rows are numbered one after another.
        sp_ids: a SparseTensor of integers with two axes, its indices sorted.
        sp_weights: a SparseTensor of floats with the same indices; None for weights of 1.
        combiner: "sum", "mean" (divided by the sum of the weights) or "sqrtn" (divided by the root of the sum
            of their squares); None for "mean".
        max_norm: the largest norm of a row of the table: rows with a larger one are scaled down to it.
        allow_fast_lookup: ignored.

    Returns:
        A tensor of shape ``(rows, *params.shape[1:])``, up to the last row with an id; zeros for a row
        without.

    Raises:
        OutOfRangeError: an id is outside the table.
        InvalidArgumentError: the combiner is unknown.
        DTypeError: ``sp_ids`` or ``sp_weights`` is not a SparseTensor.

    >>> import dualflow as df
    >>> ids = df.SparseTensor([[0, 0], [0, 1], [1, 0]], [2, 0, 1], [2, 2])
    >>> table = df.constant([[1.0], [10.0], [100.0]])
    >>> df.nn.embedding_lookup_sparse(table, ids, None, combiner="sum").numpy().tolist()
    [[101.0], [10.0]]
    """
    kind = _check_lookup(sp_ids, sp_weights, combiner, "embedding_lookup_sparse")
    rows = embedding_lookup(params, sp_ids.values, max_norm)
    indices = sp_ids.indices[:, :1]
    combined = _combined_rows(
        rows, _weights(sp_weights, sp_ids.values, rows.dtype), indices, sp_ids.sizes()[0], kind
    )
    last = maximum(reduce_max(indices), -1)
    return combined[: cast(last + 1, int32)]


def safe_embedding_lookup_sparse(
    embedding_weights: TensorLike,
    sparse_ids: SparseTensor,
    sparse_weights: SparseTensor | None = None,
    combiner: str = "mean",
    default_id: TensorLike | None = None,
    max_norm: TensorLike | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """:func:`embedding_lookup_sparse` that ignores negative ids, and weights that are not positive.

    Args:
        embedding_weights: a table, or a list of tables whose rows are numbered one after another.
        sparse_ids: a SparseTensor of integers with two axes or more, its indices sorted.
        sparse_weights: a SparseTensor of floats with the same indices; None for weights of 1. With the
            combiner "sum", weights below 0 count.
        combiner: "sum", "mean" or "sqrtn".
        default_id: the index of the row for those without an id; None for zeros.
        max_norm: the largest norm of a row of the table: rows with a larger one are scaled down to it.
        allow_fast_lookup: ignored.

    Returns:
        A tensor of shape ``(*sparse_ids.shape[:-1], *embedding_weights.shape[1:])``.

    Raises:
        OutOfRangeError: an id is outside the table.
        InvalidArgumentError: the combiner is unknown.
        DTypeError: ``sparse_ids`` or ``sparse_weights`` is not a SparseTensor.

    >>> import dualflow as df
    >>> ids = df.SparseTensor([[0, 0], [0, 1]], [2, -1], [2, 2])
    >>> table = df.constant([[1.0], [10.0], [100.0]])
    >>> df.nn.safe_embedding_lookup_sparse(table, ids).numpy().tolist()
    [[100.0], [0.0]]
    """
    kind = _check_lookup(sparse_ids, sparse_weights, combiner, "safe_embedding_lookup_sparse")
    outer = sparse_ids.sizes()[:-1]
    count = math.prod(outer)
    ids = sparse_ids.values
    valid = greater_equal(ids, 0)
    if sparse_weights is not None and kind != "sum":
        valid = logical_and(valid, greater(sparse_weights.values, 0))
    rows = embedding_lookup(embedding_weights, where(valid, ids, 0), max_norm)
    weights = where(valid, _weights(sparse_weights, ids, rows.dtype), 0)
    steps = [convert_to_tensor(math.prod(outer[i + 1 :]), int64) for i in range(len(outer))]
    at = reduce_sum(cast(sparse_ids.indices[:, :-1], int64) * stack(steps), 1)
    indices = reshape(at, [-1, 1])
    combined = _combined_rows(rows, weights, indices, count, kind)
    number = scatter_nd(indices, cast(valid, float32), [count])
    if default_id is not None:
        row = embedding_lookup(embedding_weights, static_int(default_id, "default_id"), max_norm)
        has_ids = reshape(number > 0, [count, *[1] * (len(rows.shape) - 1)])
        combined = where(has_ids, combined, row)
    return reshape(combined, [*outer, *rows.shape[1:]])
