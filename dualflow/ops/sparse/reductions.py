"""Sums over axes of a SparseTensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.shape import normalize_axes
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum as sum_of
from dualflow.ops.creation import zeros_like
from dualflow.ops.joining import concat
from dualflow.ops.scattering import scatter_nd
from dualflow.ops.sparse.places import joined, place_numbers, sparse
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import ints
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def reduce_sum(
    sp_input: Any,
    axis: Any = None,
    keepdims: Any = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor | SparseTensor:
    """The sum over ``axis``, or over all axes.

    Args:
        sp_input: a SparseTensor.
        axis: an axis, or several; all by default.
        keepdims: whether the result keeps these axes, of size 1.
        output_is_sparse: whether the result is a SparseTensor, of the places that have elements to add.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: an axis that is not there.

    >>> import dualflow as df
    >>> df.sparse.reduce_sum(df.SparseTensor([[0, 1], [0, 2]], [1, 2], [2, 3]), axis=1).numpy()
    array([3, 0], dtype=int32)
    """
    x = sparse(sp_input)
    rank = len(x.shape)
    gone = normalize_axes(None if axis is None else ints(axis, "axis"), rank)
    kept = [a for a in range(rank) if a not in gone]
    shape = x.sizes()
    whole = [1 if a in gone else shape[a] for a in range(rank)] if keepdims else [shape[a] for a in kept]
    indices = gather(x.indices, kept, axis=1) if kept else x.indices[:, :0]
    if output_is_sparse:
        places = joined(place_numbers(indices, [shape[a] for a in kept]))
        found = places.at_first(indices)
        if keepdims:
            none = zeros_like(found[:, :1]) if kept else zeros_like(places.at_first(x.indices[:, :1]))
            columns = [none if a in gone else found[:, kept.index(a), None] for a in range(rank)]
            found = concat(columns, 1)
        return SparseTensor(found, places.sums(x.values), whole)
    total = scatter_nd(indices, x.values, [shape[a] for a in kept]) if kept else sum_of(x.values)
    return reshape(total, whole) if keepdims else total
