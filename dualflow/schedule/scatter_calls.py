"""Scatters in a plan: nodes that check their indices first, and the parameters of the scatter routine."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node
from dualflow.graph.loop_dtypes import in_loops
from dualflow.graph.views import sizes
from dualflow.ops.op_kinds import Check, Scatter
from dualflow.ops.record import Effect, Op
from dualflow.schedule.nest import Layout

BOUNDS = Op(
    name="bounds",
    doc="Stops the program unless all indices of the node ``scatter`` are in bounds; reads the indices.",
    infer=lambda indices, scatter: (),
    kernel=lambda indices, scatter: (),
    kind=Check(),
    outputs=None,
    effect=Effect.CHECK,
)


class ScatterIndices(NamedTuple):
    """The indices of a scatter.

    Attributes:
        layout, dtype: of the integers.
        depth: the number of integers of one index.
        table: the result of :func:`table`.
    """

    layout: Layout
    dtype: DType
    depth: int
    table: tuple[int, ...]

    @property
    def iterations(self) -> int:
        """The number of iterations over all indices."""
        return self.table[0]

    @property
    def num_indices(self) -> int:
        """The number of indices."""
        return self.table[1]

    @property
    def row_length(self) -> int:
        """The number of elements of a row."""
        return self.table[2]

    @property
    def distance(self) -> int:
        """The distance between iterations, in elements of the output."""
        return self.table[3]

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The sizes of the indexed axes."""
        return self.table[4 : 4 + self.depth]

    @property
    def axis_strides(self) -> tuple[int, ...]:
        """The strides of the indexed axes, in rows."""
        return self.table[4 + self.depth :]


def bounds_node(scatter: Node) -> Node:
    """The bounds check of the indices of ``scatter``."""
    return Node(
        BOUNDS, scatter.inputs[-2:-1], {"scatter": scatter}, [], scatter.origin, scatter.merged_origins
    )


def is_scatter_supported(kind: Scatter, dtype: DType) -> bool:
    """Whether the routine for scatters supports elements of ``dtype``."""
    return in_loops(dtype) and not dtype.is_complex and (kind.join == "put" or not dtype.is_bool)


def table(shape: Sequence[int], axis: int, depth: int, count: int) -> list[int]:
    """The parameters of the scatter routine, for indices along ``depth`` axes from ``axis`` on.

    These are the number of iterations over all indices, the number of indices, the length of a row, the
    distance between iterations, and the sizes and strides of the indexed axes.

    >>> table((4, 5, 6), 0, 2, 10)
    [1, 10, 6, 120, 4, 5, 5, 1]
    >>> table((4, 5, 6), 1, 1, 10)
    [4, 10, 6, 30, 5, 1]
    """
    extents, length = shape[axis : axis + depth], math.prod(shape[axis + depth :])
    distances = [math.prod(extents[i + 1 :]) for i in range(depth)]
    return [math.prod(shape[:axis]), count, length, math.prod(extents) * length, *extents, *distances]


def join_of(node: Node) -> str:
    """The op that combines a scatter's rows with the old ones: see :class:`dualflow.ops.op_kinds.Scatter`."""
    assert isinstance(node.op.kind, Scatter)
    return node.op.kind.join or node.attrs["join"]


def depth_of(node: Node) -> int:
    """The number of axes that an index of a scatter has."""
    return 1 if "axis" in node.attrs else sizes(node.inputs[-2])[-1]


def table_of(node: Node) -> list[int]:
    """The parameters of the routine for a scatter; see :func:`table`."""
    shape = sizes(node.inputs[-2])
    count = math.prod(shape if "axis" in node.attrs else shape[:-1])
    return table(sizes(node.output), node.attrs.get("axis", 0), depth_of(node), count)


def indices_of(scatter: Node, layout: Layout) -> ScatterIndices:
    """The indices of a scatter, which have ``layout``."""
    dtype = scatter.inputs[-2].spec.dtype
    return ScatterIndices(layout, dtype, depth_of(scatter), tuple(table_of(scatter)))
