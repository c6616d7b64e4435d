"""Rows of tables by numbers that a sparse tensor holds, joined row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float32, int32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.ops.arithmetic import divide_no_nan, maximum
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import greater, greater_equal, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.neural.embedding import embedding_lookup
from dualflow.ops.powers import sqrt
from dualflow.ops.scattering import scatter_nd
from dualflow.ops.selection import where
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

_COMBINERS = ("mean", "sqrtn", "sum")


def _checked(sp_ids: Any, sp_weights: Any, combiner: Any, what: str) -> str:
    kind = "mean" if combiner is None else combiner
    if kind not in _COMBINERS:
        raise InvalidArgumentError(f"combiner is 'mean', 'sqrtn' or 'sum', not {combiner!r}.")
    if not isinstance(sp_ids, SparseTensor) or not isinstance(sp_weights, SparseTensor | None):
        raise DTypeError(
            f"{what} takes SparseTensors of ids and weights, not {sp_ids!r} and {sp_weights!r}; "
            "df.sparse.from_dense makes one."
        )
    if sp_ids.shape[0] is None or None in sp_ids.shape[:-1]:
        raise InvalidArgumentError(
            f"{what} needs to know the number of rows while tracing, but it is that of shape {sp_ids.shape}."
        )
    return str(kind)


def _joined(rows: Any, weights: Any, places: Any, count: int, combiner: str) -> Any:
    """Rows added up at their places, and divided as the combiner says."""
    wide = reshape(weights, [-1, *[1] * (len(rows.shape) - 1)])
    shape = [count, *rows.shape[1:]]
    total = scatter_nd(places, rows * wide, shape)
    if combiner == "sum":
        return total
    powers = weights if combiner == "mean" else weights * weights
    norm = scatter_nd(places, powers, [count])
    norm = norm if combiner == "mean" else sqrt(maximum(norm, 0))
    return divide_no_nan(total, reshape(norm, [count, *[1] * (len(rows.shape) - 1)]))


def _weights(sp_weights: Any, like: Any, dtype: Any) -> Any:
    if sp_weights is None:
        return cast(greater_equal(like, like), dtype)
    return cast(sp_weights.values, dtype)


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    combiner: str | None = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """The rows of a table that each row of a sparse matrix numbers, joined to one.

    Args:
        params: a table, or a list of tables whose rows are numbered one after another.
        sp_ids: a SparseTensor of integers ``[rows, any]``, its indices sorted.
        sp_weights: a SparseTensor of floats with the same indices, or None for weights of 1.
        combiner: "sum", "mean" (by default; divided by the weights' sum) or "sqrtn" (by the root of the sum
            of their squares).
        max_norm: the largest norm of a row of the table: longer ones are scaled down to it.
        name: ignored; as in TensorFlow.
        allow_fast_lookup: ignored.

    Returns:
        ``(rows, ...)``: up to the last row with an id; zeros for a row without.

    Raises:
        OutOfRangeError: an id is outside the table.
        InvalidArgumentError: an unknown combiner, or an open number of rows.
        DTypeError: what is no SparseTensor.

    >>> import dualflow as df
    >>> ids = df.SparseTensor([[0, 0], [0, 1], [1, 0]], [2, 0, 1], [2, 2])
    >>> table = df.constant([[1.0], [10.0], [100.0]])
    >>> df.nn.embedding_lookup_sparse(table, ids, None, combiner="sum").numpy().tolist()
    [[101.0], [10.0]]
    """
    kind = _checked(sp_ids, sp_weights, combiner, "embedding_lookup_sparse")
    rows = embedding_lookup(params, sp_ids.values, max_norm)
    places = sp_ids.indices[:, :1]
    found = _joined(rows, _weights(sp_weights, sp_ids.values, rows.dtype), places, sp_ids.shape[0], kind)
    if sp_ids.values.shape[0] == 0:
        return found[:0]
    return found[: cast(sp_ids.indices[-1, 0] + 1, int32)]


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: Any = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """:func:`embedding_lookup_sparse` that leaves out ids below 0 and weights that are not above 0.

    Args:
        embedding_weights: a table, or a list of tables whose rows are numbered one after another.
        sparse_ids: a SparseTensor of integers of two axes or more, its indices sorted.
        sparse_weights: a SparseTensor of floats with the same indices, or None for weights of 1; with the
            combiner "sum" those below 0 count.
        combiner: "sum", "mean" or "sqrtn".
        default_id: the number of the row for what has no id; zeros by default.
        max_norm: the largest norm of a row of the table.
        name: ignored; as in TensorFlow.
        allow_fast_lookup: ignored.

    Returns:
        The shape of the ids without their last axis, and then that of a row.

    Raises:
        OutOfRangeError: an id is outside the table.
        InvalidArgumentError: an unknown combiner, or open sizes.
        DTypeError: what is no SparseTensor.

    >>> import dualflow as df
    >>> ids = df.SparseTensor([[0, 0], [0, 1]], [2, -1], [2, 2])
    >>> table = df.constant([[1.0], [10.0], [100.0]])
    >>> df.nn.safe_embedding_lookup_sparse(table, ids).numpy().tolist()
    [[100.0], [0.0]]
    """
    kind = _checked(sparse_ids, sparse_weights, combiner, "safe_embedding_lookup_sparse")
    outer = sparse_ids.shape[:-1]
    count = Shape(outer).num_elements()
    ids = sparse_ids.values
    valid = greater_equal(ids, 0)
    if sparse_weights is not None and kind != "sum":
        valid = logical_and(valid, greater(sparse_weights.values, 0))
    rows = embedding_lookup(embedding_weights, where(valid, ids, 0), max_norm)
    weights = where(valid, _weights(sparse_weights, ids, rows.dtype), 0)
    steps = [Shape(outer[i + 1 :]).num_elements() for i in range(len(outer))]
    at = reduce_sum(sparse_ids.indices[:, :-1] * convert_to_tensor(steps, sparse_ids.indices.dtype), 1)
    places = reshape(at, [-1, 1])
    found = _joined(rows, weights, places, count or 0, kind)
    number = scatter_nd(places, cast(valid, float32), [count])
    if default_id is not None:
        row = embedding_lookup(embedding_weights, static_int(default_id, "default_id"), max_norm)
        empty = reshape(number > 0, [count or 0, *[1] * (len(rows.shape) - 1)])
        found = where(empty, found, row)
    return reshape(found, [*outer, *rows.shape[1:]])
