"""Ragged tensors joined: one after the other, side by side in each row, stacked, and repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat as concat_tensors
from dualflow.ops.joining import stack as stack_tensors
from dualflow.ops.positions import range as count_up
from dualflow.ops.ragged.flat_values import DIFFERENT_ROWS
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.row_gathering import as_ragged, expand_rows, rows_of, take_rows
from dualflow.ops.ragged.row_partitions import (
    number_of_rows,
    require_same_rows,
    splits_of_lengths,
)
from dualflow.ops.repetition import tile as tile_tensor


def concat(tensors: Sequence[Any], axis: int) -> Any:
    """Tensors and ragged tensors of one rank joined along an axis; the result is ragged."""
    if len(tensors) == 1:
        return tensors[0]
    if not any(isinstance(x, RaggedRows) for x in tensors):
        return concat_tensors(tensors, axis)
    ragged = _with_equal_ranks(tensors)
    if axis == 0:
        return _concat_rows(ragged)
    if axis == 1:
        return _concat_within_rows(ragged)
    splits = ragged[0].row_splits
    for x in ragged[1:]:
        splits = require_same_rows(splits, x.row_splits, DIFFERENT_ROWS)
    return ragged[0].with_parts(concat([x.values for x in ragged], axis - 1), splits)


def _with_equal_ranks(tensors: Sequence[Any]) -> list[Any]:
    """The tensors as ragged tensors with one number of ragged axes, and row splits of one dtype.

    Raises:
        InvalidArgumentError: they have different ranks.
    """
    template = max((x for x in tensors if isinstance(x, RaggedRows)), key=lambda x: x.ragged_rank)
    parts = [
        x if isinstance(x, RaggedRows) else convert_to_tensor(x, dtype_hint=template.dtype) for x in tensors
    ]
    if len({len(x.shape) for x in parts}) > 1:
        shapes = ", ".join(str(x.shape) for x in parts)
        raise InvalidArgumentError(
            f"tensors to join have one number of axes, not the shapes {shapes}; expand them."
        )
    return [as_ragged(x, template, template.ragged_rank) for x in parts]


def _concat_rows(tensors: Sequence[RaggedRows]) -> Any:
    """The rows of all tensors, those of the first one first."""
    first = tensors[0]
    pieces, total = [first.row_splits], first.row_splits[-1]
    for x in tensors[1:]:
        pieces.append(x.row_splits[1:] + total)
        total = total + x.row_splits[-1]
    lengths = {x._static_row_length for x in tensors}
    uniform = lengths.pop() if len(lengths) == 1 else None
    return first.with_parts(concat([x.values for x in tensors], 0), concat_tensors(pieces, 0), uniform)


def _concat_within_rows(tensors: Sequence[RaggedRows]) -> Any:
    """Rows joined: row i is row i of the first tensor, then row i of the second, and so on."""
    first, count = tensors[0], len(tensors)
    rows = _equal_numbers_of_rows(tensors)
    one_after_the_other = _concat_rows(tensors)
    order = reshape(transpose(reshape(count_up(rows * count), [count, rows])), [-1])
    interleaved = take_rows(one_after_the_other, order)
    splits = interleaved.row_splits[::count]
    return first.with_parts(interleaved.values, splits)


def _equal_numbers_of_rows(tensors: Sequence[RaggedRows]) -> Any:
    shapes = ", ".join(str(x.shape) for x in tensors)
    message = f"tensors to join in each row have as many rows, not the shapes {shapes}; slice them."
    from_shapes = {x.shape[0] for x in tensors}
    if len(from_shapes - {None}) > 1:
        raise InvalidArgumentError(message)
    rows = number_of_rows(tensors[0].row_splits)
    if None in from_shapes:
        for x in tensors[1:]:
            rows = required(rows, equal(rows, cast(x.nrows(), rows.dtype)), message)
    return rows


def stack(tensors: Sequence[Any], axis: int, template: RaggedRows) -> Any:
    """Tensors and ragged tensors of one rank joined along a new axis; ragged as ``template``."""
    if axis == 0:
        rows = concat(tensors, 0)
        counts = stack_tensors([cast(rows_of(x), template.row_splits.dtype) for x in tensors], 0)
        return template.with_parts(rows, splits_of_lengths(counts))
    return concat([expand_rows(x, axis) for x in tensors], axis)


def tile(x: Any, multiples: Sequence[int]) -> Any:
    """``x`` repeated along each axis, a number of times for each."""
    if not isinstance(x, RaggedRows):
        return tile_tensor(x, multiples)
    rows, columns, *inner = multiples
    if inner and any(times != 1 for times in inner):
        x = x.with_parts(tile(x.values, [1, *inner]), x.row_splits, x._uniform_row_length)
    if columns == 0:
        x = x.with_parts(take_rows(x.values, count_up(0)), x.row_splits * 0)
    elif columns > 1:
        x = _concat_within_rows([x] * columns)
    if rows == 1:
        return x
    return take_rows(x, tile_tensor(count_up(number_of_rows(x.row_splits)), [rows]))


def reverse(x: Any, axes: Sequence[int]) -> Any:
    """``x`` with the elements along some axes in reverse order."""
    for axis in axes:
        key = [slice(None)] * axis + [slice(None, None, -1)]
        x = x[tuple(key)]
    return x
