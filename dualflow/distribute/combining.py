"""Values of replicas, combined: all-reduce and all-gather of structures of tensors."""

from __future__ import annotations

from typing import Any

from dualflow.core.dispatch import AbstractComposite
from dualflow.core.dtypes import int64
from dualflow.core.shape import normalize_axis
from dualflow.core.tree import flatten, unflatten
from dualflow.distribute.distributed_values import DistributedValues, own_value
from dualflow.distribute.reduce_op import ReduceOp
from dualflow.ops.arrangement import transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.collectives.collective_ops import ReplicaGroup, gather_over, sums_over
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.shapes import shape
from dualflow.ops.sparse.indexed_slices import IndexedSlices


def all_reduce(op: ReduceOp, value: Any, group: ReplicaGroup, bucket_bytes: int) -> Any:
    """The sums or means over replicas of a structure of tensors; of ``IndexedSlices`` all slices."""
    leaves, structure = flatten(value, _is_value)
    leaves = [own_value(x) for x in leaves]
    dense = [i for i, x in enumerate(leaves) if not isinstance(x, IndexedSlices)]
    results = [_gather_slices(x, op, group) if isinstance(x, IndexedSlices) else x for x in leaves]
    sums = sums_over([leaves[i] for i in dense], group, bucket_bytes)
    for i, total in zip(dense, sums, strict=True):
        results[i] = total if op is ReduceOp.SUM else _mean(total, group)
    return unflatten(structure, results)


def reduce_along(op: ReduceOp, value: Any, axis: int | None, group: ReplicaGroup, bucket_bytes: int) -> Any:
    """The sum or mean along ``axis`` of a structure of all replicas' tensors; :func:`all_reduce` for None.

    The size of the axis may differ between replicas. A mean of integers is float64, as in TensorFlow.
    """
    if axis is None:
        return all_reduce(op, value, group, bucket_bytes)
    leaves, structure = flatten(value, _is_value)
    tensors = [convert_to_tensor(own_value(x)) for x in leaves]
    sums = sums_over([reduce_sum(x, axis) for x in tensors], group, bucket_bytes)
    if op is ReduceOp.MEAN:
        counts = sums_over([cast(shape(x)[axis], int64) for x in tensors], group, bucket_bytes)
        sums = [s / cast(n, s.dtype) for s, n in zip(sums, counts, strict=True)]
    return unflatten(structure, sums)


def gather(value: Any, axis: int, group: ReplicaGroup) -> Any:
    """A structure of tensors, each joined with those of the other replicas along ``axis``."""
    leaves, structure = flatten(value, _is_value)
    return unflatten(structure, [_gathered(convert_to_tensor(own_value(x)), axis, group) for x in leaves])


def _gathered(x: Any, axis: int, group: ReplicaGroup) -> Any:
    axes = list(range(len(x.shape)))
    axis = normalize_axis(axis, len(axes)) if axes else 0
    if axis == 0:
        return gather_over([x], group)[0]  # which refuses scalars
    axes[0], axes[axis] = axes[axis], axes[0]
    return transpose(gather_over([transpose(x, axes)], group)[0], axes)


def _gather_slices(x: IndexedSlices, op: ReduceOp, group: ReplicaGroup) -> IndexedSlices:
    values, indices = gather_over([x.values, x.indices], group)
    values = _mean(values, group) if op is ReduceOp.MEAN else values
    return IndexedSlices(values, indices, x.dense_shape)


def _mean(total: Any, group: ReplicaGroup) -> Any:
    """The quotient of a total and the number of replicas; of integers as float64, as in TensorFlow."""
    is_mean = group.size == 1 and not total.dtype.is_integer
    return total if is_mean else total / cast(group.size, total.dtype)


def _is_value(x: Any) -> bool:
    return isinstance(x, DistributedValues | AbstractComposite)
