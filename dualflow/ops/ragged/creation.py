"""Ragged tensors from lists, ranges, stacked tensors, masks, and partitions of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import as_shape, normalize_axis
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.checks import required
from dualflow.ops.comparison import not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import stack as stack_tensors
from dualflow.ops.ragged.flat_values import map_values
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.ragged_spec import splits_dtype
from dualflow.ops.ragged.ragged_tensor import RaggedTensor
from dualflow.ops.ragged.row_gathering import as_ragged, masked_rows, masked_values, take_rows
from dualflow.ops.ragged.row_joining import stack as stack_op
from dualflow.ops.ragged.row_partitions import (
    as_partition,
    positions_in_rows,
    row_ids,
    size_along,
    splits_of_lengths,
    splits_of_ranges,
    splits_of_row_ids,
)
from dualflow.ops.record import promote_together
from dualflow.ops.reduction import reduce_all
from dualflow.ops.rounding import ceil
from dualflow.ops.segments.rows import check_leading
from dualflow.ops.sorting import argsort
from dualflow.ops.static import shape_of, static_int
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _default_template() -> RaggedTensor:
    """A ragged tensor without rows, from which others take the class and the dtype of row splits."""
    return RaggedTensor.from_row_splits(convert_to_tensor([0.0])[:0], [0], validate=False)


@entry
def constant(
    pylist: object,
    dtype: DTypeLike | None = None,
    ragged_rank: int | None = None,
    inner_shape: ShapeLike | None = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = int64,
) -> Any:
    """A ragged tensor of nested lists.

    Args:
        pylist: nested lists of numbers or strings, whose lengths may differ.
        dtype: the dtype of the values; None for that of the numbers.
        ragged_rank: the number of ragged axes; None for all but the first axis, or but those of
            ``inner_shape``.
        inner_shape: the shape of each of the innermost values; None for scalars, or for what ``ragged_rank``
            leaves.
        row_splits_dtype: int64 or int32.

    Returns:
        A RaggedTensor; a tensor if ``ragged_rank`` is 0, or ``pylist`` a list of scalars or a scalar.

    Raises:
        InvalidArgumentError: scalars and lists are at one depth, ``ragged_rank`` is too large, or values have
            different shapes.
        DTypeError: an element is neither a number nor a string.

    >>> import dualflow as df
    >>> df.ragged.constant([[1, 2], [3]])
    <tf.RaggedTensor [[1, 2], [3]]>
    """
    rows: Any = pylist.tolist() if isinstance(pylist, np.ndarray) else pylist
    depth = _depth(rows)
    if ragged_rank is not None and not _has_scalars(rows):
        depth = max(depth, ragged_rank + 1)
    inner = None if inner_shape is None else tuple(as_shape(inner_shape))
    if ragged_rank is None:
        ragged_rank = max(0, depth - 1 - (0 if inner is None else len(inner)))
    if depth and ragged_rank >= depth:
        raise InvalidArgumentError(
            f"ragged_rank {ragged_rank} is not less than the number of axes of pylist, {depth}; leave it out."
        )
    splits = []
    for _ in range(ragged_rank):
        lengths = [len(row) for row in rows]
        splits.append(np.cumsum([0, *lengths]))
        rows = [item for row in rows for item in row]
    values = _flat(rows, dtype, depth - ragged_rank, inner)
    if not ragged_rank:
        return values
    partitions = [convert_to_tensor(s, splits_dtype(row_splits_dtype)) for s in splits]
    return RaggedTensor.from_nested_row_splits(values, partitions, validate=False)


def _depth(rows: Any) -> int:
    """The number of axes of nested lists.

    Raises:
        InvalidArgumentError: scalars and lists are at one depth.
    """
    if not isinstance(rows, list | tuple):
        return np.ndim(rows)
    depths = {_depth(row) for row in rows if not (isinstance(row, list | tuple) and not len(row))}
    empty = [row for row in rows if isinstance(row, list | tuple) and not len(row)]
    if len(depths) > 1 or (empty and 0 in depths):
        raise InvalidArgumentError(
            f"Scalars and lists at one depth can't make a ragged tensor: {rows!r}; nest them alike."
        )
    return 1 + max([*depths, *([1] if empty else [])], default=0)


def _has_scalars(rows: Any) -> bool:
    """Whether nested lists hold a scalar, which determines their number of axes."""
    return not isinstance(rows, list | tuple) or any(_has_scalars(row) for row in rows)


def _flat(rows: Any, dtype: Any, depth: int, inner: tuple[Any, ...] | None) -> Any:
    """The innermost values of nested lists, of which ``depth`` axes are left."""
    if isinstance(rows, list) and not rows:
        sizes = (0,) * depth if inner is None else (0, *inner)
        return reshape(convert_to_tensor([], dtype), sizes)
    values = convert_to_tensor(rows, dtype)
    return values if inner is None or not len(values.shape) else reshape(values, [-1, *inner])


@entry
def ragged_range(
    starts: TensorLike,
    limits: TensorLike | None = None,
    deltas: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = int64,
) -> RaggedTensor:
    """Rows of numbers from ``starts`` up to ``limits``, in steps of ``deltas``.

    Args:
        starts: the first number of each row, a scalar or a vector; the limits if ``limits`` is None.
        limits: the end of each row, which is excluded.
        deltas: the step of each row, not 0.
        dtype: the dtype of the numbers; None for their common one.
        row_splits_dtype: int64 or int32.

    Returns:
        A RaggedTensor with a row for each element of the vectors; scalars are for all rows.

    Raises:
        InvalidArgumentError: the vectors have different sizes.
        DTypeError: numbers are not real.

    >>> import dualflow as df
    >>> df.ragged.range([3, 5, 2])
    <tf.RaggedTensor [[0, 1, 2], [0, 1, 2, 3, 4], [0, 1]]>
    """
    if limits is None:
        starts, limits = 0, starts
    numbers = [
        x if dtype is None else cast(convert_to_tensor(x), dtype)
        for x in promote_together(starts, limits, deltas)
    ]
    sizes = {shape_of(x)[0] for x in numbers if len(x.shape)}
    if any(len(x.shape) > 1 for x in numbers) or len(sizes - {None}) > 1:
        raise InvalidArgumentError(
            "starts, limits and deltas are scalars, or vectors of one size; reshape them."
        )
    vectors = [x for x in numbers if len(x.shape)]
    rows = size_along(vectors[0], 0) if vectors else 1
    first, last, step = (broadcast_to(x, [rows]) for x in numbers)
    splits = cast(_splits_of_ranges(first, last, step), splits_dtype(row_splits_dtype))
    ids = row_ids(splits)
    indices = cast(positions_in_rows(splits, ids), first.dtype)
    return RaggedTensor.from_row_splits(
        gather(first, ids) + indices * gather(step, ids), splits, validate=False
    )


def _splits_of_ranges(first: Any, last: Any, step: Any) -> Any:
    step = required(step, reduce_all(not_equal(step, 0)), "deltas are not 0, or a range would never end.")
    if step.dtype.is_integer:
        return splits_of_ranges(first, last, step)
    counts = ceil((last - first) / step)
    return splits_of_lengths(cast(maximum(counts, 0), int64))


@entry
def stack(values: Sequence[Any], axis: int = 0, name: str | None = None) -> Any:
    """Tensors and ragged tensors of one rank, whose sizes may differ, joined along a new axis.

    Args:
        values: a list of tensors and ragged tensors.
        axis: the position of the new axis; the first by default.

    Returns:
        A RaggedTensor of one axis more; of one scalar or more, a tensor.

    Raises:
        InvalidArgumentError: the list is empty, the ranks differ, or ``axis`` is out of range.

    >>> import dualflow as df
    >>> df.ragged.stack([[1, 2], [3]])
    <tf.RaggedTensor [[1, 2], [3]]>
    """
    tensors = [x if isinstance(x, RaggedRows) else convert_to_tensor(x) for x in values]
    if not tensors:
        raise InvalidArgumentError("stack takes one tensor or more, but the list is empty; give one.")
    ranks = {len(x.shape) for x in tensors}
    if len(ranks) > 1:
        shapes = ", ".join(str(x.shape) for x in tensors)
        raise InvalidArgumentError(
            f"tensors to stack have one number of axes, not the shapes {shapes}; reshape them."
        )
    at = normalize_axis(static_int(axis, "axis"), ranks.pop() + 1)
    if not len(tensors[0].shape):
        return stack_tensors(tensors, at)
    rank = len(tensors[0].shape) - 1
    if not rank:  # rows of vectors are no rows of rows yet
        return stack_op(tensors, at, _default_template())
    return stack_op([as_ragged(x, _default_template(), rank) for x in tensors], at, _default_template())


@entry
def boolean_mask(data: TensorLike, mask: TensorLike, name: str | None = None) -> Any:
    """The elements of ``data`` where ``mask`` holds, in the rows that they were in.

    Args:
        data: a tensor or a ragged tensor.
        mask: bools whose shape is that of the first axes of ``data``; ragged where these are.

    Returns:
        A RaggedTensor of the number of axes of ``data``; a tensor for a mask of one axis over a tensor.

    Raises:
        InvalidArgumentError: the row lengths of the two differ.
        DTypeError: ``mask`` doesn't hold bools.

    >>> import dualflow as df
    >>> df.ragged.boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, False]])
    <tf.RaggedTensor [[1, 3], []]>
    """
    x = data if isinstance(data, RaggedRows) else convert_to_tensor(data)
    bools = mask if isinstance(mask, RaggedRows) else convert_to_tensor(mask)
    if not bools.dtype.is_bool:
        raise DTypeError(f"a mask is of bools, not {bools.dtype.name}; write a comparison such as x > 0.")
    rank = len(bools.shape)
    if not rank or rank > len(x.shape):
        raise InvalidArgumentError(
            f"a mask of shape {bools.shape} does not fit the first axes of shape {x.shape}; their sizes "
            "must be equal."
        )
    if rank == 1:
        return masked_rows(x, bools)
    template = next((t for t in (x, bools) if isinstance(t, RaggedRows)), _default_template())
    return masked_values(as_ragged(x, template, rank - 1), as_ragged(bools, template, rank - 1))


@entry
def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``op`` applied to the innermost values of ragged tensors.

    Args:
        op: a function of tensors whose result has as many rows as the values.
        args: its arguments; ragged tensors, also in lists and dicts, are replaced by their ``flat_values``.
        kwargs: its arguments with names.

    Returns:
        A RaggedTensor with the rows of the arguments; the result of ``op`` if no argument is ragged.

    Raises:
        InvalidArgumentError: ragged tensors have different rows, or the result another number of rows.

    >>> import dualflow as df
    >>> df.ragged.map_flat_values(lambda x: x * x + 1, df.ragged.constant([[1, 2], [3]]))
    <tf.RaggedTensor [[2, 5], [10]]>
    """
    return map_values(op, *args, **kwargs)


@entry
def row_splits_to_segment_ids(
    splits: TensorLike, name: str | None = None, out_type: DTypeLike | None = None
) -> Tensor:
    """The row of each value, of rows that begin and end at ``splits``.

    Args:
        splits: row splits: ascending integers from 0.
        out_type: int32 or int64; None for the dtype of the splits.

    Returns:
        A vector of integers.

    Raises:
        InvalidArgumentError: ``splits`` is no vector, or empty.
        DTypeError: it doesn't hold integers.

    >>> import dualflow as df
    >>> df.ragged.row_splits_to_segment_ids([0, 3, 3, 5]).numpy()
    array([0, 0, 0, 2, 2])
    """
    partition = as_partition(splits, "splits")
    if partition.shape[0] == 0:
        raise InvalidArgumentError("splits can't be empty: without rows they are [0].")
    ids: Tensor = cast(row_ids(partition), partition.dtype if out_type is None else splits_dtype(out_type))
    return ids


@entry
def segment_ids_to_row_splits(
    segment_ids: TensorLike,
    num_segments: IntLike | None = None,
    out_type: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The row splits of values with these segment ids.

    Args:
        segment_ids: the row of each value: integers from 0 in ascending order.
        num_segments: the number of rows; None for one more than the last id.
        out_type: int32 or int64; None for the dtype of the ids.

    Returns:
        A vector of integers, one more than there are rows.

    Raises:
        InvalidArgumentError: ``segment_ids`` is no vector.
        DTypeError: it doesn't hold integers.

    >>> import dualflow as df
    >>> df.ragged.segment_ids_to_row_splits([0, 0, 0, 2, 2]).numpy()
    array([0, 3, 3, 5])
    """
    ids = as_partition(segment_ids, "segment_ids", None if out_type is None else splits_dtype(out_type))
    rows = None if num_segments is None else cast(convert_to_tensor(num_segments), ids.dtype)
    splits: Tensor = splits_of_row_ids(ids, rows)
    return splits


@entry
def stack_dynamic_partitions(
    data: TensorLike, partitions: TensorLike, num_partitions: IntLike, name: str | None = None
) -> RaggedTensor:
    """The rows of ``data`` of each partition, in order.

    Args:
        data: a tensor or a ragged tensor.
        partitions: the number of the partition of each row of ``data``, a vector of integers.
        num_partitions: the number of partitions.

    Returns:
        A RaggedTensor with a row for each partition.

    Raises:
        InvalidArgumentError: a number is negative, or ``num_partitions`` or more, or is missing.
        DTypeError: ``partitions`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.ragged.stack_dynamic_partitions([10, 20, 30], [1, 0, 1], 2)
    <tf.RaggedTensor [[20], [10, 30]]>
    """
    x = data if isinstance(data, RaggedRows) else convert_to_tensor(data)
    numbers = as_partition(partitions, "partitions")
    check_leading(x, numbers.shape, "partitions")
    order = argsort(numbers, stable=True)
    rows = cast(convert_to_tensor(num_partitions), numbers.dtype)
    return RaggedTensor.from_value_rowids(take_rows(x, order), gather(numbers, order), rows)
