"""Rows distributed to several tensors by integers, and merged again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, less, logical_and
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat, stack
from dualflow.ops.masking import boolean_mask
from dualflow.ops.record import promote_together
from dualflow.ops.reduction import reduce_all
from dualflow.ops.scattering import tensor_scatter_nd_update
from dualflow.ops.segments.rows import as_row_indices, check_leading, count_up_to, filled_rows
from dualflow.ops.shapes import shape, size
from dualflow.ops.static import static_int, tensor_list

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def dynamic_partition(
    data: TensorLike, partitions: TensorLike, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """The rows of ``data`` of each partition, in order.

    Args:
        data: a tensor of any dtype, whose shape starts with that of ``partitions``.
        partitions: the number of the partition of each row, integers.
        num_partitions: the number of partitions, 1 or more.

    Returns:
        A list with a tensor for each partition, of shape ``(rows, *data.shape[rank of partitions:])`` and the
        dtype of ``data``; in a trace the number of rows is unknown.

    Raises:
        InvalidArgumentError: a partition is outside ``[0, num_partitions)``, or the shapes don't fit.
        DTypeError: ``partitions`` doesn't hold integers.

    >>> import dualflow as df
    >>> [part.numpy().tolist() for part in df.dynamic_partition([10, 20, 30], [0, 1, 0], 3)]
    [[10, 30], [20], []]
    """
    data, indices = convert_to_tensor(data), as_row_indices(partitions, "partitions")
    count = static_int(num_partitions, "num_partitions")
    if count < 1:
        raise InvalidArgumentError(f"dynamic_partition makes 1 partition or more, not {count}.")
    check_leading(data, indices.shape, "partitions")
    if not len(indices.shape):
        data, indices = expand_dims(data, 0), expand_dims(indices, 0)
    indices = required(
        indices,
        reduce_all(logical_and(indices >= 0, less(indices, count))),
        f"partitions are in 0..{count - 1}, below num_partitions.",
    )
    return [boolean_mask(data, equal(indices, number)) for number in range(count)]


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """The inverse of :func:`dynamic_partition`: ``merged[indices[m][i]] = data[m][i]``.

    Of several rows for one position the last is kept; positions without a row are 0.

    Args:
        indices: for each tensor of ``data`` the positions of its rows, integers of 0 or more.
        data: a list of tensors whose shapes start with those of their indices and have equal ends.

    Returns:
        A tensor of shape ``(largest index + 1, *row)`` with the common dtype; in a trace the first size is
        unknown unless the indices are known.

    Raises:
        OutOfRangeError: an index is negative.
        InvalidArgumentError: the shapes don't fit, or the lists are empty or differ in length.
        DTypeError: ``indices`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.dynamic_stitch([[0, 2], [1]], [[10, 30], [20]]).numpy()
    array([10, 20, 30], dtype=int32)
    """
    indices, data = list(tensor_list(indices, "indices")), list(tensor_list(data, "data"))
    if not indices or len(indices) != len(data):
        raise InvalidArgumentError(
            f"dynamic_stitch takes indices for each of its data, not {len(indices)} for {len(data)}."
        )
    positions = [as_row_indices(x, "indices") for x in indices]
    tensors = list(promote_together(*data))
    for at, rows in zip(positions, tensors, strict=True):
        check_leading(rows, at.shape, "indices")
    ends = {rows.shape[len(at.shape) :] for at, rows in zip(positions, tensors, strict=True)}
    if len(ends) > 1:
        raise InvalidArgumentError(
            f"dynamic_stitch takes rows of one shape, not of {' and '.join(map(str, ends))}."
        )
    (row,) = ends
    flat = concat(list(promote_together(*[reshape(at, [-1]) for at in positions])), 0)
    rows = concat([_as_rows(x, at, row) for x, at in zip(tensors, positions, strict=True)], 0)
    start = filled_rows(count_up_to(flat), rows, 1, 0)
    return tensor_scatter_nd_update(start, expand_dims(flat, -1), rows)


def _as_rows(x: Any, indices: Any, row: Any) -> Any:
    """``x`` with the axes of its indices merged into one."""
    rank, count = len(indices.shape), indices.shape.num_elements()
    if rank == 1:
        return x
    if rank == 0:
        return expand_dims(x, 0)
    if row.is_static and (count is not None or row.num_elements()):
        return reshape(x, [-1 if count is None else count, *row])
    return reshape(x, concat([reshape(size(indices), [1]), shape(x)[rank:]], 0))


def parallel_stack(values: Sequence[Any], name: str | None = None) -> Tensor:
    """``values`` along a new first axis: :func:`dualflow.stack` with TensorFlow's other name.

    Args:
        values: a list of tensors of one shape.

    Returns:
        A tensor of one axis more, of size ``len(values)``, with the common dtype.

    Raises:
        InvalidArgumentError: the list is empty, or the shapes differ.

    >>> import dualflow as df
    >>> df.parallel_stack([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    return stack(list(values), axis=0)
