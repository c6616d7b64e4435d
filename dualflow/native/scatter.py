"""Rows put where integers say: one routine for each dtype, which goes through the rows in order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.core.dtypes import DType
from dualflow.graph.scalars import LOOP_KINDS
from dualflow.native.llvm import BOOL, I64, PTR, VOID, Module, Type
from dualflow.ops.forms import Scatter

_ARGUMENTS = (
    ("table", PTR),
    ("out", PTR),
    ("indices", PTR),
    ("rows", PTR),
    ("status", PTR),
    ("failure", I64),
)


def scatters(form: Scatter, dtype: DType) -> bool:
    """Whether the routine works on elements of ``dtype``."""
    if form.add and dtype.kind == "b":
        return False
    return dtype.kind in LOOP_KINDS and dtype.size > (dtype.kind == "f") * 2


def table(shape: Sequence[int], axis: int, depth: int, count: int) -> list[int]:
    """What the routine reads, for positions on ``depth`` axes from ``axis`` on.

    How many times it goes through the positions, their number, the length of a row, the distance between
    turns, and the sizes and distances of positions.

    >>> table((4, 5, 6), 0, 2, 10)
    [1, 10, 6, 120, 4, 5, 5, 1]
    >>> table((4, 5, 6), 1, 1, 10)
    [4, 10, 6, 30, 5, 1]
    """
    sizes, length = shape[axis : axis + depth], math.prod(shape[axis + depth :])
    distances = [math.prod(sizes[i + 1 :]) for i in range(depth)]
    return [math.prod(shape[:axis]), count, length, math.prod(sizes) * length, *sizes, *distances]


def routine(module: Module, element: DType, index: DType, depth: int, add: bool, lanes: int) -> str:
    """The name of ``void f(table, out, indices, rows, status, failure)``, written at the first call.

    A row whose position is outside is left out, and ``failure`` noted in the status.
    """
    name = f"scatter_{element.name}_{index.name}_{depth}{'_add' if add else ''}"
    if name in module.functions:
        return name
    function = module.function(name, VOID, _ARGUMENTS, internal=True)
    b = function.builder
    numbers, out, indices, rows, status, failure = function.args
    turns, count, length, distance, *rest = [b.load(numbers, i, I64) for i in range(4 + 2 * depth)]
    sizes, distances = rest[:depth], rest[depth:]
    vector = Type.of_dtype(element.dtype).vector(lanes)
    with b.loop(0, turns) as turn, b.loop(0, count) as row:
        inside, place = b.constant(BOOL, True), b.constant(I64, 0)
        for i in range(depth):
            at = b.load(indices, row.index * depth + i, Type.of_dtype(index.dtype)).cast(I64)
            inside = inside & (at >= 0) & (at < sizes[i])
            place = place + at * distances[i]
        with b.if_then(inside), b.loop(0, length, lanes) as part:
            mask = b.first_lanes(length - part.index, lanes)
            target = turn.index * distance + place * length + part.index
            new = b.load(rows, (turn.index * count + row.index) * length + part.index, vector, mask)
            b.store(b.load(out, target, vector, mask) + new if add else new, out, target, mask)
        with b.if_then(~inside):
            b.store(failure, status, 0)
    b.ret()
    return name
