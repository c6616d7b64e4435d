"""Embeddings: rows of tables, looked up by their indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.clipping import clip_by_norm
from dualflow.ops.joining import concat
from dualflow.ops.static import shape_of
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def embedding_lookup(
    params: TensorLike, ids: TensorLike, max_norm: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """The rows of ``params`` with the indices ``ids``: :func:`gather` along the first axis.

    Args:
        params: a table, or a list of tables whose rows are numbered one after another.
        ids: integers of any shape.
        max_norm: the largest norm of a row: rows with a larger one are scaled down to it. None for no limit.

    Returns:
        A tensor of shape ``(*ids.shape, *params.shape[1:])`` with the dtype of ``params``.

    Raises:
        OutOfRangeError: an id is outside the table.
        InvalidArgumentError: ``params`` is an empty list.
        DTypeError: ``ids`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.nn.embedding_lookup([[[1, 2], [3, 4]], [[5, 6]]], [2, 0]).numpy().tolist()
    [[5, 6], [1, 2]]
    """
    if isinstance(params, list):
        if not params:
            raise InvalidArgumentError("embedding_lookup needs a table to look in, but params is empty.")
        params = params[0] if len(params) == 1 else concat(params, 0)
    rows = gather(params, ids)
    if max_norm is None:
        return rows
    return clip_by_norm(rows, max_norm, range(len(shape_of(ids)), len(rows.shape)))
