"""Rows put where integers say: one kernel for each dtype, which goes through the rows in order."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.kernel_table import KERNEL_ARGS, Given, read
from dualflow.backends.llvm.maths import Maths
from dualflow.backends.llvm.runtime.source import IrSource, named_by_content
from dualflow.backends.llvm.text import BOOL, I64, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.dtypes import DType
from dualflow.schedule.loop_program import Argument, Kernel, Run

_LANES = 16
"""So many indices are checked at once."""
_NAME = "scatter"


@functools.cache
def routine(element: DType, index: DType, depth: int, join: str, bits: int) -> IrSource:
    """The kernel that puts rows where integers say, for registers of ``bits``.

    It reads the numbers of :func:`dualflow.schedule.scattering.table_of`. A row whose position is outside is
    left out, and noted in the status.
    """
    module = LlvmModule(bits)
    b, given = _begun(module, (element, index, element), 4 + 2 * depth)
    out, indices, rows = given.pointers
    iterations, count, length, distance, *rest = given.numbers
    lanes = bits // 8 // element.size
    vector, maths = Type.of_dtype(element.dtype).vector(lanes), Maths(module)
    full = length & -lanes
    with b.loop(0, iterations) as iteration, b.loop(0, count) as row:
        inside, place = _position(b, indices, index, row.index, rest[:depth], rest[depth:])
        source, target = (
            (iteration.index * count + row.index) * length,
            iteration.index * distance + place * length,
        )

        def put(part: EmittedValue, mask: EmittedValue | None) -> None:
            new = b.load(rows, source + part, vector, mask)
            if join != "put":
                new = _joined(maths, join, b.load(out, target + part, vector, mask), new)
            b.store(new, out, target + part, mask)

        with b.if_then(inside):
            with b.loop(0, full, lanes) as part:
                put(part.index, None)
            with b.if_then(full < length):
                put(full, b.first_lanes(length - full, lanes))
        with b.if_then(~inside):
            note_failure(b, given.status, given.first_check)
    b.ret()
    return named_by_content(module.text(), _NAME)


@functools.cache
def bounds_routine(index: DType, depth: int, bits: int) -> IrSource:
    """The kernel that notes a position that is outside."""
    module = LlvmModule(bits)
    b, given = _begun(module, (index,), 4 + 2 * depth)
    (indices,) = given.pointers
    iterations, count, _, _, *rest = given.numbers
    lanes = _LANES if depth == 1 else 1
    with b.if_then(iterations > 0), b.loop(0, count, lanes) as row:
        if depth == 1:
            mask = b.first_lanes(count - row.index, lanes)
            at = b.load(indices, row.index, Type.of_dtype(index.dtype).vector(lanes), mask)
            at = at.cast(I64.vector(lanes))
            outside = (((at < 0) | (at >= rest[0].splat(lanes))) & mask).any()
        else:
            outside = ~_position(b, indices, index, row.index, rest[:depth], rest[depth:])[0]
        with b.if_then(outside):
            note_failure(b, given.status, given.first_check)
    b.ret()
    return named_by_content(module.text(), _NAME)


def _begun(module: LlvmModule, buffers: Sequence[DType], numbers: int) -> tuple[Builder, Given]:
    """A kernel that is given so many numbers and these buffers."""
    function = module.function(_NAME, VOID, KERNEL_ARGS)
    context, _, _, slot = function.args
    kernel = Kernel(tuple(buffers), (), numbers, False, ())
    arguments = tuple([Argument(0, 0, dtype) for dtype in buffers])
    given = read(function.builder, context, slot, Run(kernel, arguments, (), (), 1, 0.0))
    return function.builder, given


def _joined(m: Maths, join: str, old: EmittedValue, new: EmittedValue) -> EmittedValue:
    """What stays of two elements: their sum or product, or what a function of ``m`` makes of them."""
    if join == "add":
        return old + new
    if join == "multiply":
        return old * new
    found: EmittedValue = getattr(m, join)(old, new)
    return found


def _position(
    b: Builder,
    indices: EmittedValue,
    index: DType,
    row: EmittedValue,
    extents: Sequence[EmittedValue],
    distances: Sequence[EmittedValue],
) -> tuple[EmittedValue, EmittedValue]:
    """Whether the position of ``row`` is inside, and which place it names."""
    inside, place = b.constant(BOOL, True), b.constant(I64, 0)
    for i, (size, distance) in enumerate(zip(extents, distances, strict=True)):
        at = b.load(indices, row * len(extents) + i, Type.of_dtype(index.dtype)).cast(I64)
        inside = inside & (at >= 0) & (at < size)
        place = place + at * distance
    return inside, place
