"""Rows put where integers say: one routine for each dtype, which goes through the rows in order."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.maths import Maths
from dualflow.backends.llvm.text import BOOL, I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.dtypes import DType

_LANES = 16
"""So many indices are checked at once."""
_ARGUMENTS = (
    ("table", PTR),
    ("out", PTR),
    ("indices", PTR),
    ("rows", PTR),
    ("status", PTR),
    ("failure", I64),
)


def routine(module: LlvmModule, element: DType, index: DType, depth: int, join: str, lanes: int) -> str:
    """The name of ``void f(table, out, indices, rows, status, failure)``, written at the first call.

    A row whose position is outside is left out, and ``failure`` noted in the status.
    """
    name = f"scatter_{element.name}_{index.name}_{depth}_{join}"
    if name in module.functions:
        return name
    function = module.function(name, VOID, _ARGUMENTS, internal=True)
    b = function.builder
    numbers, out, indices, rows, status, failure = function.args
    turns, count, length, distance, *rest = [b.load(numbers, i, I64) for i in range(4 + 2 * depth)]
    vector, maths = Type.of_dtype(element.dtype).vector(lanes), Maths(module)
    with b.loop(0, turns) as turn, b.loop(0, count) as row:
        inside, place = _position(b, indices, index, row.index, rest[:depth], rest[depth:])
        with b.if_then(inside), b.loop(0, length, lanes) as part:
            mask = b.first_lanes(length - part.index, lanes)
            target = turn.index * distance + place * length + part.index
            new = b.load(rows, (turn.index * count + row.index) * length + part.index, vector, mask)
            if join != "put":
                new = _joined(maths, join, b.load(out, target, vector, mask), new)
            b.store(new, out, target, mask)
        with b.if_then(~inside):
            note_failure(b, status, failure)
    b.ret()
    return name


def _joined(m: Maths, join: str, old: EmittedValue, new: EmittedValue) -> EmittedValue:
    """What stays of two elements: their sum or product, or what a function of ``m`` makes of them."""
    if join == "add":
        return old + new
    if join == "multiply":
        return old * new
    found: EmittedValue = getattr(m, join)(old, new)
    return found


def bounds_routine(module: LlvmModule, index: DType, depth: int) -> str:
    """The name of ``void f(table, indices, status, failure)``, which notes a position that is outside."""
    name = f"bounds_{index.name}_{depth}"
    if name in module.functions:
        return name
    arguments = [a for a in _ARGUMENTS if a[0] not in ("out", "rows")]
    function = module.function(name, VOID, arguments, internal=True)
    b = function.builder
    numbers, indices, status, failure = function.args
    turns, count, _, _, *rest = [b.load(numbers, i, I64) for i in range(4 + 2 * depth)]
    lanes = _LANES if depth == 1 else 1
    with b.if_then(turns > 0), b.loop(0, count, lanes) as row:
        if depth == 1:
            mask = b.first_lanes(count - row.index, lanes)
            at = b.load(indices, row.index, Type.of_dtype(index.dtype).vector(lanes), mask)
            at = at.cast(I64.vector(lanes))
            outside = (((at < 0) | (at >= rest[0].splat(lanes))) & mask).any()
        else:
            outside = ~_position(b, indices, index, row.index, rest[:depth], rest[depth:])[0]
        with b.if_then(outside):
            note_failure(b, status, failure)
    b.ret()
    return name


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
