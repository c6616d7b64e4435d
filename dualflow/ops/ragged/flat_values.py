"""Functions of the innermost values of ragged tensors: elementwise ops and ``map_flat_values``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tree import flatten, unflatten
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.equal_sizes import with_rows_of
from dualflow.ops.joining import stack
from dualflow.ops.ragged.dense_rows import coordinates
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.row_partitions import have_same_rows, size_along
from dualflow.ops.record import Op
from dualflow.ops.reduction import reduce_all
from dualflow.ops.scattering import gather_nd
from dualflow.ops.static import shape_of, static_value

DIFFERENT_ROWS: Final = "ragged tensors in one operation have the same row lengths; slice or pad them."


def in_same_rows(tensors: Sequence[RaggedRows]) -> tuple[RaggedRows, list[Any]]:
    """The first of ragged tensors, and the innermost values of each, which are checked to have the same rows.

    Its row splits are checked as the values are, since a function may read either of them alone.

    Raises:
        InvalidArgumentError: the partitions differ in number or, eagerly, in row lengths; a compiled function
            checks the lengths when it runs.
    """
    first, *others = tensors
    values: list[Any] = [first.flat_values]
    nested_splits: Sequence[Any] = first.nested_row_splits
    for x in others:
        conditions = _have_rows_of(x, first)
        flat_values = with_rows_of(x.flat_values, first.flat_values, DIFFERENT_ROWS)
        values.append(functools.reduce(_required, conditions, flat_values))
        nested_splits = [
            splits if static_value(same) is not None else _required(splits, same)
            for splits, same in zip(nested_splits, conditions, strict=True)
        ]
    return _with_row_splits(first, nested_splits) if others else first, values


def _have_rows_of(x: RaggedRows, rows: RaggedRows) -> list[Any]:
    """For each ragged axis whether ``x`` has the rows of ``rows``; True if the row splits are one tensor."""
    if x.ragged_rank != rows.ragged_rank:
        raise InvalidArgumentError(
            f"A ragged tensor with {rows.ragged_rank} ragged axes can't be combined with one with "
            f"{x.ragged_rank}; give tensors of the same ragged axes."
        )
    return [
        True if splits is other else have_same_rows(splits, other, DIFFERENT_ROWS)
        for splits, other in zip(x.nested_row_splits, rows.nested_row_splits, strict=True)
    ]


def _required(x: Any, same: Any) -> Any:
    return x if same is True else required(x, same, DIFFERENT_ROWS)


def _with_row_splits(rows: RaggedRows, nested_splits: Sequence[Any]) -> RaggedRows:
    """``rows`` with other row splits of the same values."""
    splits, *inner_splits = nested_splits
    values = _with_row_splits(rows.values, inner_splits) if inner_splits else rows.values
    return rows.with_parts(values, splits, rows._uniform_row_length)


def map_elements(op: Op, inputs: Any, attrs: dict[str, Any]) -> Any:
    """An elementwise op of ragged tensors of the same rows, and of tensors that broadcast to them."""
    ragged = [x for x in inputs if isinstance(x, RaggedRows)]
    rows, in_rows = in_same_rows(ragged)
    values = iter(in_rows)
    flat = [next(values) if isinstance(x, RaggedRows) else _at_values(x, ragged[0]) for x in inputs]
    return rows.with_flat_values(dispatch.current().apply(op, tuple(flat), attrs))


def _at_values(x: Any, rows: RaggedRows) -> Any:
    """``x`` broadcast to the ragged shape of ``rows``, as flat values."""
    rank = len(shape_of(x))
    inner = len(rows.flat_values.shape) - 1
    if rank <= inner:
        return x
    if rank > len(rows.shape):
        raise InvalidArgumentError(
            f"shape {shape_of(x)} does not broadcast to the ragged shape {rows.shape}: it has more axes."
        )
    dense = convert_to_tensor(x, dtype_hint=rows.dtype)
    missing = len(rows.shape) - rank
    columns = coordinates(rows)
    used = [
        columns[axis + missing] * 0 if size == 1 else _in_range(rows, columns, axis + missing, dense, axis)
        for axis, size in enumerate(dense.shape[: rank - inner])
    ]
    return gather_nd(dense, stack(used, 1))


def _in_range(rows: RaggedRows, columns: list[Any], axis: int, dense: Any, dense_axis: int) -> Any:
    """The coordinates along an axis; an error unless all rows have the size of ``dense`` there."""
    size = size_along(dense, dense_axis, rows.row_splits.dtype)
    message = (
        f"a tensor of shape {dense.shape} broadcasts to a ragged tensor of shape {rows.shape} where its "
        "sizes are 1, or those of all rows; reshape it, or pad the rows."
    )
    lengths = rows.nrows() if axis == 0 else _inner_lengths(rows, axis)
    return required(columns[axis], reduce_all(equal(lengths, size)), message)


def _inner_lengths(rows: RaggedRows, axis: int) -> Any:
    return rows.nested_row_lengths()[axis - 1]


def map_values(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``function`` of the arguments with ragged tensors replaced by their innermost values, in the same rows.

    Raises:
        InvalidArgumentError: the rows of two ragged tensors differ, or the result has another number of rows
            than the values.
    """
    leaves, structure = flatten((args, kwargs), is_leaf=lambda x: isinstance(x, RaggedRows))
    ragged = [x for x in leaves if isinstance(x, RaggedRows)]
    if not ragged:
        return function(*args, **kwargs)
    rows, in_rows = in_same_rows(ragged)
    values = iter(in_rows)
    flat = [next(values) if isinstance(x, RaggedRows) else x for x in leaves]
    positional, named = unflatten(structure, flat)
    return rows.with_flat_values(function(*positional, **named))
