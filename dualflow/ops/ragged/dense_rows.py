"""Conversions between ragged and dense tensors: padding, and rows cut from padded ones."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import as_shape
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.comparison import less
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat
from dualflow.ops.positions import range as count_up
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.row_partitions import longest, positions_in_rows, row_ids, size_along
from dualflow.ops.reduction import reduce_any
from dualflow.ops.selection import where
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_sizes

Sizes = tuple[int | None, ...]


def padded(x: RaggedRows, default: Any, shape: Any) -> Any:
    """A tensor of the rows of ``x``, padded with ``default``, and cut where ``shape`` has sizes."""
    if default is None:
        default = b"" if x.dtype.is_string else np.zeros((), x.dtype.dtype)
    fill = cast(convert_to_tensor(default, dtype_hint=x.dtype), x.dtype)
    rank = len(x.shape)
    sizes: Sizes = (None,) * rank if shape is None else tuple(as_shape(shape))
    if len(sizes) != rank:
        raise InvalidArgumentError(
            f"a shape of {len(sizes)} sizes is not that of {rank} axes; give one for each."
        )
    inner_rank = len(x.flat_values.shape) - 1
    if len(fill.shape) > inner_rank:
        raise InvalidArgumentError(
            f"default_value has shape {fill.shape}, but fills the place of values of shape "
            f"{x.flat_values.shape[1:]}; give one value."
        )
    return _padded(x, fill, sizes)


def _padded(x: RaggedRows, fill: Any, sizes: Sizes) -> Any:
    values = x.values
    dense = _padded(values, fill, (None, *sizes[2:])) if isinstance(values, RaggedRows) else values
    if not isinstance(values, RaggedRows):
        dense = _resized(dense, fill, sizes[2:])
    filler = broadcast_to(fill, [1, *axis_sizes(dense, int64)[1:]])
    starts, lengths = x.row_starts(), x.row_lengths()
    count = size_along(dense, 0, lengths.dtype)
    width = _width(x, lengths, sizes[1])
    columns = expand_dims(count_up(width), 0)
    inside = less(columns, expand_dims(lengths, 1))
    rows = gather(concat([dense, filler], 0), where(inside, expand_dims(starts, 1) + columns, count))
    return rows if sizes[0] is None else _resized(expand_dims(rows, 0), fill, (sizes[0],))[0]


def _width(x: RaggedRows, lengths: Any, size: int | None) -> Any:
    """The number of columns: ``size``, or else the length of the longest row."""
    if size is not None:
        return convert_to_tensor(size, lengths.dtype)
    if x._uniform_row_length is not None:
        return cast(convert_to_tensor(x._uniform_row_length), lengths.dtype)
    return longest(lengths)


def _resized(x: Any, fill: Any, sizes: Sizes) -> Any:
    """``x`` with its axes from the second on padded with ``fill`` or cut to ``sizes``; None keeps a size."""
    for axis, size in enumerate(sizes, 1):
        if size is None or size == x.shape[axis]:
            continue
        columns = count_up(convert_to_tensor(size, np.int64))
        inside = columns < size_along(x, axis)
        filler = broadcast_to(fill, [1 if i == axis else n for i, n in enumerate(axis_sizes(x, int64))])
        x = gather(concat([x, filler], axis), where(inside, columns, size_along(x, axis)), axis=axis)
    return x


def coordinates(x: RaggedRows) -> list[Any]:
    """For each of the innermost values its row, and its position along each ragged axis: vectors."""
    ids = row_ids(x.row_splits)
    columns = [ids, positions_in_rows(x.row_splits, ids)]
    values = x.values
    while isinstance(values, RaggedRows):
        ids = row_ids(values.row_splits)
        columns = [gather(column, ids) for column in columns]
        columns.append(positions_in_rows(values.row_splits, ids))
        values = values.values
    return columns


def lengths_without_padding(x: Any, padding: Any) -> Any:
    """The length of each row without the ``padding`` at its end: int64."""
    fill = cast(convert_to_tensor(padding, dtype_hint=x.dtype), x.dtype)
    inner = len(x.shape) - 2
    if len(fill.shape) > inner:
        raise InvalidArgumentError(
            f"padding has shape {fill.shape}, but columns have the shape {x.shape[2:]}; give one of these."
        )
    differs = x != broadcast_to(fill, axis_sizes(x, int64))
    is_used = cast(reduce_any(differs, tuple(range(2, len(x.shape)))) if inner else differs, np.int64)
    ends = is_used * expand_dims(count_up(1, size_along(x, 1) + 1), 0)
    return longest(ends, 1)


def nested_list(values: Any, splits: tuple[Any, ...]) -> Any:
    """Nested lists of the elements of an array ``values`` in rows of row splits, the outermost first."""
    rows = values.tolist()
    for ends in reversed(splits):
        rows = [rows[a:b] for a, b in pairwise(ends.tolist())]
    return rows


def array_of_rows(values: Any, splits: Any) -> Any:
    """The rows of ``values`` as one array; as an array of objects, one per row, if their lengths differ."""
    rows = [values[a:b].copy() for a, b in pairwise(splits.tolist())]
    if len({len(row) for row in rows}) > 1:
        array = np.empty(len(rows), object)
        array[:] = rows
        return array
    shape = (len(rows), len(rows[0]) if rows else 0, *values.shape[1:])
    return np.concatenate([values[:0], *rows]).reshape(shape)
