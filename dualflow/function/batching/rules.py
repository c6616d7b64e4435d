"""An op for all rows at once, by its form: on inputs that have one more axis, the first, where rows differ.

Forms say how elements, folds, products, picks and scatters change; for views, assemblies and library calls
the op's record does (:mod:`dualflow.ops.batching_rules`). What neither says is computed row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.dtypes import int64
from dualflow.function.batching.batched_value import (
    BatchedValue,
    UnbatchableError,
    moved_axis,
    with_common_rank,
)
from dualflow.function.control.row_loop import repeat
from dualflow.ops.arrangement import reshape
from dualflow.ops.batching_rules import ALONG, BatchingRule
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.joining import concat
from dualflow.ops.op_kinds import Decompose, Elementwise, Gather, MatMul, Reduce, Scatter
from dualflow.ops.positions import iota
from dualflow.ops.record import Op
from dualflow.ops.scattering import scatter_nd, tensor_scatter_nd_add

Attrs = dict[str, Any]


def over_rows(op: Op, inputs: Sequence[BatchedValue], attrs: Attrs, count: int) -> list[Any]:
    """The outputs of ``op`` for each of ``count`` rows, stacked.

    Some of its inputs differ from row to row, or it draws random numbers.
    """
    match op.kind:
        case _ if op.batching_rule is not None and op.batching_rule.apart:
            return _one_by_one(op, inputs, attrs, count)
        case Elementwise() if op.batching_rule is None:
            return _run(op, [x.tensor for x in with_common_rank(inputs)], attrs)
        case MatMul():
            return _product(op, inputs, attrs)
        case Reduce():
            return _run(op, [x.tensor for x in inputs], ALONG.attributes(attrs, count))
        case Gather():
            params, indices = inputs
            return _take(op, params, indices, count, **attrs)
        case Scatter() if op.batching_rule is None and "axis" in attrs:
            return _scatter(op, inputs, attrs, count)
        case _ if op.batching_rule is not None:
            return _by_record(op, op.batching_rule, inputs, attrs, count)
        case Decompose():
            raise UnbatchableError(
                f"{op.name} gives results whose sizes the values tell, which may differ from row to row; "
                "take one row after another with df.map_fn, or mask elements in place of leaving them out."
            )
        case _:
            return _one_by_one(op, inputs, attrs, count)


def _run(op: Op, tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
    found = dispatch.current().apply(op, tuple(tensors), attrs)
    return list(found) if isinstance(found, tuple) else [found]


def _by_record(
    op: Op, rows: BatchingRule, inputs: Sequence[BatchedValue], attrs: Attrs, count: int
) -> list[Any]:
    if rows.merged:
        return _merged(op, inputs, attrs, count)
    if rows.broadcasts:
        stacks = [BatchedValue(x.stacked(count), True) for x in inputs]
        inputs = with_common_rank(stacks, max([len(attrs[name]) for name in rows.sizes], default=0))
    tensors = [
        _positions(x, count) if i == rows.positions else x.stacked(count) for i, x in enumerate(inputs)
    ]
    return _run(op, tensors, rows.attributes(attrs, count))


def _merged(op: Op, inputs: Sequence[BatchedValue], attrs: Attrs, count: int) -> list[Any]:
    """The rows of all rows one below another."""
    tensors = [x.stacked(count) for x in inputs]
    found = _run(op, [reshape(x, (-1, *x.shape[2:])) for x in tensors], attrs)
    return [reshape(y, (count, -1, *y.shape[1:])) for y in found]


def _one_by_one(op: Op, inputs: Sequence[BatchedValue], attrs: Attrs, count: int) -> list[Any]:
    def step(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        given = iter(row)
        return [], _run(op, [next(given) if x.by_row else x.tensor for x in inputs], attrs)

    return repeat(step, [], [x.tensor for x in inputs if x.by_row], count, False)[1]


def _product(op: Op, inputs: Sequence[BatchedValue], attrs: Attrs) -> list[Any]:
    """Rows times what they share are one larger product."""
    if len(inputs) == 2:
        a, b = inputs
        first, second = bool(attrs.get("transpose_a")), bool(attrs.get("transpose_b"))
        if a.by_row and not b.by_row and b.rank == 2 and not first and a.tensor.shape[1:].is_static:
            return [_rows_times(a.tensor, b.tensor, second)]
        column = (
            b.by_row and not a.by_row and a.rank == b.rank == 2 and b.tensor.shape[1 if second else 2] == 1
        )
        if column:
            row = reshape(b.tensor, (-1, 1, b.tensor.shape[2 if second else 1]))
            return [moved_axis(_rows_times(row, a.tensor, not first), 1, 2)]
    return _run(op, [x.tensor for x in with_common_rank(inputs)], attrs)


def _rows_times(x: Any, matrix: Any, transpose: bool) -> Any:
    """The matrices of ``x``, one below another, times one matrix."""
    *lead, width = x.shape
    found = matmul(reshape(x, (-1, width)), matrix, transpose_b=transpose)
    return reshape(found, (*lead, found.shape[-1]))


def _take(
    op: Op, params: BatchedValue, indices: BatchedValue, count: int, axis: int, batch_dims: int = 0
) -> list[Any]:
    if batch_dims == 0 and not indices.by_row:
        return _run(op, [params.tensor, indices.tensor], {"axis": axis + 1})
    if batch_dims == 0 and not params.by_row:
        (found,) = _run(op, [params.tensor, indices.tensor], {"axis": axis})
        return [moved_axis(found, axis, 0)]
    tensors = [params.stacked(count), indices.stacked(count)]
    return _run(op, tensors, {"axis": axis + 1, "batch_dims": batch_dims + 1})


def _scatter(op: Op, inputs: Sequence[BatchedValue], attrs: Attrs, count: int) -> list[Any]:
    *onto, indices, updates = inputs
    if not indices.by_row:
        tensors = [*[x.stacked(count) for x in onto], indices.tensor, updates.stacked(count)]
        return _run(op, tensors, ALONG.attributes(attrs, count))
    if attrs["axis"] != 0:
        return _one_by_one(op, inputs, attrs, count)
    rows = updates.stacked(count)
    places = _positions(BatchedValue(indices.tensor[..., None], True), count)
    if onto:
        return [tensor_scatter_nd_add(onto[0].stacked(count), places, rows)]
    slices = rows.shape[len(indices.tensor.shape) :]
    return [scatter_nd(places, rows, (count, attrs["size"], *slices))]


def _positions(indices: BatchedValue, count: int) -> Any:
    """Positions in each row, with the number of the row first."""
    places = cast(indices.stacked(count), int64)
    shape = (*places.shape[:-1], 1)
    numbers = iota((count, *(1,) * (len(shape) - 1)), 0, int64)
    return concat([broadcast_to(numbers, shape), places], -1)
