"""Scatters in a plan: their positions' check as a node of its own, and the numbers that describe one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.core.dtypes import DType
from dualflow.graph.axes import sizes
from dualflow.graph.ir import Node
from dualflow.graph.loop_dtypes import in_loops
from dualflow.ops.op_kinds import Check, Scatter
from dualflow.ops.record import Effect, Op

OUTSIDE = "an index is out of range for the axis that it names a place on"

BOUNDS = Op(
    name="bounds",
    doc="Stops the program unless all positions of the node ``scatter`` are inside; reads its integers.",
    infer=lambda indices, scatter: (),
    kernel=lambda indices, scatter: (),
    kind=Check(),
    outputs=None,
    effect=Effect.CHECK,
)


def bounds_node(scatter: Node) -> Node:
    """The check of the integers of ``scatter``."""
    return Node(BOUNDS, scatter.inputs[-2:-1], {"scatter": scatter}, [], scatter.origin, scatter.also)


def scatters(kind: Scatter, dtype: DType) -> bool:
    """Whether the routine works on elements of ``dtype``."""
    return in_loops(dtype) and not dtype.is_complex and (kind.join == "put" or not dtype.is_bool)


def table(shape: Sequence[int], axis: int, depth: int, count: int) -> list[int]:
    """What the routine reads, for positions on ``depth`` axes from ``axis`` on.

    How many times it goes through the positions, their number, the length of a row, the distance between
    iterations, and the sizes and distances of positions.

    >>> table((4, 5, 6), 0, 2, 10)
    [1, 10, 6, 120, 4, 5, 5, 1]
    >>> table((4, 5, 6), 1, 1, 10)
    [4, 10, 6, 30, 5, 1]
    """
    extents, length = shape[axis : axis + depth], math.prod(shape[axis + depth :])
    distances = [math.prod(extents[i + 1 :]) for i in range(depth)]
    return [math.prod(shape[:axis]), count, length, math.prod(extents) * length, *extents, *distances]


def join_of(node: Node) -> str:
    """How a scatter's rows meet what is there: see :class:`dualflow.ops.op_kinds.Scatter`."""
    assert isinstance(node.op.kind, Scatter)
    return node.op.kind.join or node.attrs["join"]


def depth_of(node: Node) -> int:
    """How many axes a position of a scatter names."""
    return 1 if "axis" in node.attrs else sizes(node.inputs[-2])[-1]


def table_of(node: Node) -> list[int]:
    """The table for a scatter."""
    positions = sizes(node.inputs[-2])
    count = math.prod(positions if "axis" in node.attrs else positions[:-1])
    return table(sizes(node.output), node.attrs.get("axis", 0), depth_of(node), count)
