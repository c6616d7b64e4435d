"""Scatter kernels: one for each dtype, which stores rows in order at the positions of an integer tensor."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.kernel_table import KERNEL_ARGS, KernelArguments, load_arguments
from dualflow.backends.llvm.maths import Maths
from dualflow.backends.llvm.row_prefetch import DISTANCE, is_worth_prefetching, prefetch_row
from dualflow.backends.llvm.runtime.ir_source import IrSource, named_by_content
from dualflow.backends.llvm.text import BOOL, I64, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.dtypes import DType
from dualflow.schedule.kernel import Argument, Kernel, KernelLaunch

_LANES = 16
"""The number of indices that are checked at once."""
_NAME = "scatter"


@functools.cache
def routine(element: DType, index: DType, depth: int, join: str, bits: int) -> IrSource:
    """The scatter kernel for vectors of ``bits``.

    :func:`dualflow.schedule.scatter_calls.table_of` lists its launch parameters. Rows with a position out of
    bounds are skipped, and set the status.
    """
    module = LlvmModule(bits)
    b, arguments = _new_kernel(module, (element, index, element), 4 + 2 * depth)
    out, indices, rows = arguments.pointers
    iterations, count, length, out_stride, *axes = arguments.parameters
    lanes = bits // 8 // element.size
    vector, maths = Type.of_dtype(element.dtype).vector(lanes), Maths(module)
    full = length & -lanes
    row_bytes = length * element.size
    is_prefetched = is_worth_prefetching(out_stride * element.size, row_bytes)
    with b.loop(0, iterations) as iteration, b.loop(0, count) as row:
        inside, position = _position(b, indices, index, row.index, axes[:depth], axes[depth:])
        source = (iteration.index * count + row.index) * length
        target = iteration.index * out_stride + position * length
        with b.if_then(is_prefetched):
            later = row.index + DISTANCE
            later = (later < count).select(later, count - 1)
            _, next_place = _position(b, indices, index, later, axes[:depth], axes[depth:])
            first = b.offset(out, iteration.index * out_stride + next_place * length, vector.scalar)
            prefetch_row(b, first, row_bytes)

        def store_part(part: EmittedValue, mask: EmittedValue | None) -> None:
            new = b.load(rows, source + part, vector, mask)
            if join != "put":
                new = _joined(maths, join, b.load(out, target + part, vector, mask), new)
            b.store(new, out, target + part, mask)

        with b.if_then(inside):
            with b.loop(0, full, lanes) as part:
                store_part(part.index, None)
            with b.if_then(full < length):
                store_part(full, b.first_lanes(length - full, lanes))
        with b.if_then(~inside):
            note_failure(b, arguments.status, arguments.first_check)
    b.ret()
    return named_by_content(module.text(), _NAME)


@functools.cache
def bounds_routine(index: DType, depth: int, bits: int) -> IrSource:
    """The kernel that sets the status if a position is out of bounds."""
    module = LlvmModule(bits)
    b, arguments = _new_kernel(module, (index,), 4 + 2 * depth)
    (indices,) = arguments.pointers
    iterations, count, _, _, *axes = arguments.parameters
    lanes = _LANES if depth == 1 else 1
    with b.if_then(iterations > 0), b.loop(0, count, lanes) as row:
        if depth == 1:
            mask = b.first_lanes(count - row.index, lanes)
            at = b.load(indices, row.index, Type.of_dtype(index.dtype).vector(lanes), mask)
            at = at.cast(I64.vector(lanes))
            outside = (((at < 0) | (at >= axes[0].splat(lanes))) & mask).any()
        else:
            outside = ~_position(b, indices, index, row.index, axes[:depth], axes[depth:])[0]
        with b.if_then(outside):
            note_failure(b, arguments.status, arguments.first_check)
    b.ret()
    return named_by_content(module.text(), _NAME)


def _new_kernel(
    module: LlvmModule, buffers: Sequence[DType], parameters: int
) -> tuple[Builder, KernelArguments]:
    """A new kernel with these buffers and a number of launch parameters."""
    function = module.function(_NAME, VOID, KERNEL_ARGS)
    context, _, _, thread = function.args
    kernel = Kernel(tuple(buffers), (), parameters, is_long=False, body=())
    arguments = tuple([Argument(0, 0, dtype) for dtype in buffers])
    loaded = load_arguments(
        function.builder, context, thread, KernelLaunch(kernel, arguments, (), (), 1, 0.0)
    )
    return function.builder, loaded


def _joined(m: Maths, join: str, old: EmittedValue, new: EmittedValue) -> EmittedValue:
    """Two elements combined: their sum, their product, or the function ``join`` of ``m``."""
    if join == "add":
        return old + new
    if join == "multiply":
        return old * new
    combined: EmittedValue = getattr(m, join)(old, new)
    return combined


def _position(
    b: Builder,
    indices: EmittedValue,
    index: DType,
    row: EmittedValue,
    sizes: Sequence[EmittedValue],
    strides: Sequence[EmittedValue],
) -> tuple[EmittedValue, EmittedValue]:
    """Whether the position of ``row`` is in bounds, and its offset."""
    inside, offset = b.constant(BOOL, True), b.constant(I64, 0)
    for i, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        at = b.load(indices, row * len(sizes) + i, Type.of_dtype(index.dtype)).cast(I64)
        inside = inside & (at >= 0) & (at < size)
        offset = offset + at * stride
    return inside, offset
