"""Batching rules: apply an op to inputs with a batch axis (the first), or without one.

:func:`apply_batched` takes the first row that applies. A rule is that of the op's record
(:mod:`dualflow.ops.batching_rules`):

====================================== ==================================================================
op                                     applied to a batch as
====================================== ==================================================================
with integers of attributes as inputs  the op with these integers, which must be the same for all elements
with a rule ``per_element``            a loop over the batch elements
``Elementwise`` without a rule         the same op, on inputs of one rank, which broadcast
``MatMul``                             one larger product, if one matrix has no batch axis; else batched
``Reduce``                             the same reduction, over axes shifted by one
``Gather``                             the same gather along the shifted axis, or with one more batch axis
``Scatter`` along an axis, no rule     the same scatter along the shifted axis, or a scatter of positions
with a rule                            the same op, with the attributes that the rule changes
``Decompose``                          an error: the sizes of results may differ between elements
any other                              a loop over the batch elements
====================================== ==================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.dtypes import int64
from dualflow.core.shape import Dim, Shape
from dualflow.function.batching.batched_value import (
    BatchedValue,
    UnbatchableError,
    moved_axis,
    with_common_rank,
)
from dualflow.function.control.scan_loop import scan_loop
from dualflow.ops.arrangement import reshape
from dualflow.ops.batching_rules import ALONG, BatchingRule
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.joining import concat
from dualflow.ops.op_kinds import Decompose, Elementwise, Gather, MatMul, Reduce, Scatter
from dualflow.ops.operand_attributes import OperandForm, apply_sized
from dualflow.ops.positions import iota
from dualflow.ops.record import Op
from dualflow.ops.scattering import scatter_nd, tensor_scatter_nd_add
from dualflow.sizes.symbolic_sizes import is_static

Attrs = dict[str, Any]


def apply_batched(op: Op, inputs: Sequence[BatchedValue], attrs: Attrs, count: int) -> list[Any]:
    """The outputs of ``op``, each with a batch axis of ``count`` elements.

    Some of its inputs are batched, or it draws random numbers.
    """
    match op.kind:
        case _ if isinstance(op, OperandForm):
            return _with_operands(op, inputs, attrs, count)
        case _ if op.batching_rule is not None and op.batching_rule.per_element:
            return _per_element(op, inputs, attrs, count)
        case Elementwise() if op.batching_rule is None:
            return _run(op, [x.tensor for x in with_common_rank(inputs)], attrs)
        case MatMul():
            return _product(op, inputs, attrs)
        case Reduce():
            return _run(op, [x.tensor for x in inputs], ALONG.attributes(attrs, count))
        case Gather():
            params, indices = inputs
            return _gather(op, params, indices, count, **attrs)
        case Scatter() if op.batching_rule is None and "axis" in attrs:
            return _scatter(op, inputs, attrs, count)
        case _ if op.batching_rule is not None:
            return _by_rule(op, op.batching_rule, inputs, attrs, count)
        case Decompose():
            raise _sizes_differ(op)
        case _:
            return _per_element(op, inputs, attrs, count)


def _sizes_differ(op: Op) -> UnbatchableError:
    return UnbatchableError(
        f"the sizes of the results of {op.name} depend on values, and may differ between batch "
        "elements; use df.map_fn, or mask entries instead of removing them."
    )


def _with_operands(form: OperandForm, inputs: Sequence[BatchedValue], attrs: Attrs, count: int) -> list[Any]:
    """The outputs of an operand form, whose operands are the same for all batch elements."""
    record, operands, settings = form.applied([x.tensor for x in inputs], attrs)
    if any(x.is_batched for x in inputs[len(operands) :]):
        raise _sizes_differ(form)
    return apply_batched(record, inputs[: len(operands)], settings, count)


def _run(op: Op, tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
    apply = dispatch.current().apply if op.operand_attributes is None else apply_sized
    outputs = apply(op, tuple(tensors), attrs)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def _by_rule(
    op: Op, rule: BatchingRule, inputs: Sequence[BatchedValue], attrs: Attrs, count: int
) -> list[Any]:
    if rule.merged:
        return _merged(op, inputs, attrs, count)
    if rule.broadcasts:
        stacks = [BatchedValue(x.with_batch_axis(count), is_batched=True) for x in inputs]
        inputs = with_common_rank(stacks, max([len(attrs[name]) for name in rule.sizes], default=0))
    tensors = [
        _positions(x, count) if i == rule.positions else x.with_batch_axis(count)
        for i, x in enumerate(inputs)
    ]
    return _run(op, tensors, rule.attributes(attrs, count))


def _merged(op: Op, inputs: Sequence[BatchedValue], attrs: Attrs, count: int) -> list[Any]:
    """The op on the data of all elements at once, with the batch axis merged into the first axis."""
    tensors = [x.with_batch_axis(count) for x in inputs]
    outputs = _run(op, [reshape(x, (_merged_size(x.shape), *x.shape[2:])) for x in tensors], attrs)
    return [reshape(y, (count, _size_of_each(y.shape[0], count), *y.shape[1:])) for y in outputs]


def _merged_size(shape: Shape) -> int:
    """The size of the first two axes as one, for ``reshape``."""
    return -1 if None in shape[:2] else math.prod(shape[:2])


def _size_of_each(size: Dim, count: int) -> int:
    """The size for ``reshape`` of an axis without the batch axis merged into it; -1 if it is dynamic."""
    return -1 if size is None or is_static((size, count)) else size // count


def _per_element(op: Op, inputs: Sequence[BatchedValue], attrs: Attrs, count: int) -> list[Any]:
    def step(carry: list[Any], element: list[Any]) -> tuple[list[Any], list[Any]]:
        slices = iter(element)
        return [], _run(op, [next(slices) if x.is_batched else x.tensor for x in inputs], attrs)

    return scan_loop(step, [], [x.tensor for x in inputs if x.is_batched], count, reverse=False)[1]


def _product(op: Op, inputs: Sequence[BatchedValue], attrs: Attrs) -> list[Any]:
    """A batched matrix times a shared one is one larger product."""
    if len(inputs) == 2:
        a, b = inputs
        first, second = bool(attrs.get("transpose_a")), bool(attrs.get("transpose_b"))
        if a.is_batched and not b.is_batched and b.rank == 2 and not first and a.tensor.shape[1:].is_static:
            return [_rows_times(a.tensor, b.tensor, second)]
        column = (
            b.is_batched
            and not a.is_batched
            and a.rank == b.rank == 2
            and b.tensor.shape[1 if second else 2] == 1
        )
        if column:
            row = reshape(b.tensor, (-1, 1, b.tensor.shape[2 if second else 1]))
            return [moved_axis(_rows_times(row, a.tensor, not first), 1, 2)]
    return _run(op, [x.tensor for x in with_common_rank(inputs)], attrs)


def _rows_times(x: Any, matrix: Any, transpose: bool) -> Any:
    """Each matrix of the batch ``x`` times one shared matrix, as one larger product."""
    *lead, width = x.shape
    product = matmul(reshape(x, (-1, width)), matrix, transpose_b=transpose)
    return reshape(product, (*lead, product.shape[-1]))


def _gather(
    op: Op, params: BatchedValue, indices: BatchedValue, count: int, axis: int, batch_dims: int = 0
) -> list[Any]:
    if batch_dims == 0 and not indices.is_batched:
        return _run(op, [params.tensor, indices.tensor], {"axis": axis + 1})
    if batch_dims == 0 and not params.is_batched:
        (slices,) = _run(op, [params.tensor, indices.tensor], {"axis": axis})
        return [moved_axis(slices, axis, 0)]
    tensors = [params.with_batch_axis(count), indices.with_batch_axis(count)]
    return _run(op, tensors, {"axis": axis + 1, "batch_dims": batch_dims + 1})


def _scatter(op: Op, inputs: Sequence[BatchedValue], attrs: Attrs, count: int) -> list[Any]:
    *onto, indices, updates = inputs
    if not indices.is_batched:
        tensors = [*[x.with_batch_axis(count) for x in onto], indices.tensor, updates.with_batch_axis(count)]
        return _run(op, tensors, ALONG.attributes(attrs, count))
    if attrs["axis"] != 0:
        return _per_element(op, inputs, attrs, count)
    slices = updates.with_batch_axis(count)
    positions = _positions(BatchedValue(indices.tensor[..., None], is_batched=True), count)
    if onto:
        return [tensor_scatter_nd_add(onto[0].with_batch_axis(count), positions, slices)]
    slice_shape = slices.shape[len(indices.tensor.shape) :]
    return [scatter_nd(positions, slices, (count, attrs["size"], *slice_shape))]


def _positions(indices: BatchedValue, count: int) -> Any:
    """``indices`` with the number of the batch element as a further, first index."""
    positions = cast(indices.with_batch_axis(count), int64)
    shape = (*positions.shape[:-1], 1)
    numbers = iota((count, *(1,) * (len(shape) - 1)), 0, int64)
    return concat([broadcast_to(numbers, shape), positions], -1)
