"""Rows put where integers say: one routine for each dtype, which goes through the rows in order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.text import BOOL, I64, PTR, VOID, Builder, Module, Type, Value
from dualflow.core.dtypes import DType
from dualflow.graph.axes import sizes
from dualflow.graph.ir import Node
from dualflow.graph.scalars import LOOP_KINDS
from dualflow.ops.forms import Check, Scatter
from dualflow.ops.record import Effect, Op

OUTSIDE = "an index is out of range for the axis that it names a place on"
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


BOUNDS = Op(
    name="bounds",
    doc="Stops the program unless all positions of the node ``scatter`` are inside; reads its integers.",
    infer=lambda indices, scatter: (),
    kernel=lambda indices, scatter: (),
    form=Check(),
    outputs=None,
    effect=Effect.CHECK,
)


def bounds_node(scatter: Node) -> Node:
    """The check of the integers of ``scatter``."""
    return Node(BOUNDS, scatter.inputs[-2:-1], {"scatter": scatter}, [], scatter.origin, scatter.also)


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
    extents, length = shape[axis : axis + depth], math.prod(shape[axis + depth :])
    distances = [math.prod(extents[i + 1 :]) for i in range(depth)]
    return [math.prod(shape[:axis]), count, length, math.prod(extents) * length, *extents, *distances]


def depth_of(node: Node) -> int:
    """How many axes a position of a scatter names."""
    return 1 if "axis" in node.attrs else sizes(node.inputs[-2])[-1]


def table_of(node: Node) -> list[int]:
    """The table for a scatter."""
    positions = sizes(node.inputs[-2])
    count = math.prod(positions if "axis" in node.attrs else positions[:-1])
    return table(sizes(node.output), node.attrs.get("axis", 0), depth_of(node), count)


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
    vector = Type.of_dtype(element.dtype).vector(lanes)
    with b.loop(0, turns) as turn, b.loop(0, count) as row:
        inside, place = _position(b, indices, index, row.index, rest[:depth], rest[depth:])
        with b.if_then(inside), b.loop(0, length, lanes) as part:
            mask = b.first_lanes(length - part.index, lanes)
            target = turn.index * distance + place * length + part.index
            new = b.load(rows, (turn.index * count + row.index) * length + part.index, vector, mask)
            b.store(b.load(out, target, vector, mask) + new if add else new, out, target, mask)
        with b.if_then(~inside):
            note_failure(b, status, failure)
    b.ret()
    return name


def bounds_routine(module: Module, index: DType, depth: int) -> str:
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
    b: Builder, indices: Value, index: DType, row: Value, extents: Sequence[Value], distances: Sequence[Value]
) -> tuple[Value, Value]:
    """Whether the position of ``row`` is inside, and which place it names."""
    inside, place = b.constant(BOOL, True), b.constant(I64, 0)
    for i, (size, distance) in enumerate(zip(extents, distances, strict=True)):
        at = b.load(indices, row * len(extents) + i, Type.of_dtype(index.dtype)).cast(I64)
        inside = inside & (at >= 0) & (at < size)
        place = place + at * distance
    return inside, place
