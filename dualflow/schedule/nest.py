"""Loop nests: plain data between a fused node and the statements of its kernel.

Loops are in order, the outermost first: the parallel loops, then the reduction loops. The last axis of the
iteration space in memory order is the vector loop. Loop extents, strides and offsets are launch parameters:
one kernel serves every size. The code depends only on which strides are 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple, dataclass
from dualflow.graph.capabilities import CPU_CACHES
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.fused import Axes
from dualflow.graph.ir import Node, Value


class Layout(NamedTuple):
    """The layout of a value: elements ``offset + sum(index * strides)`` of buffer ``buffer``."""

    buffer: int
    offset: int
    strides: tuple[int, ...]


def contiguous_strides(shape: Sequence[int | None]) -> tuple[int, ...]:
    """Element strides of a C-contiguous array of a static shape.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    sizes = [1 if d is None or d == 0 else d for d in shape]
    return tuple([math.prod(sizes[i + 1 :]) for i in range(len(sizes))])


class NestLoop(NamedTuple):
    """A loop of a nest: parallel, or a reduction loop if ``reduced``."""

    extent: int
    reduced: bool


class Access(NamedTuple):
    """The element of a buffer that an iteration accesses: ``offset + sum(index * strides)``.

    There is a stride for each loop; it is 0 if the element doesn't depend on the loop.
    """

    buffer: int
    offset: int
    strides: tuple[int, ...]
    dtype: DType


class GatherAxis(NamedTuple):
    """The axis of a gather along which elements are selected: its size and stride."""

    extent: int
    stride: int


@dataclass(frozen=True, slots=True, eq=False)
class NestOperand:
    """An operand of a step: the result of an earlier step, an access, or a literal; exactly one is set.

    Operands compare by identity, since literals of several dtypes would be equal.
    """

    value: Value | None = None
    access: Access | None = None
    literal: object = None


@dataclass(frozen=True, slots=True, eq=False)
class NestStep:
    """One node of the body, in the nest.

    Attributes:
        node: the node.
        axis_loops: for each of its axes the loop that runs along it; None for an axis of size 1.
        operands: its operands.
        reduces: whether it reduces over loops; a reduction over axes of size 1 does not.
        depth: the number of loops around it.
        stage: the stage that it runs in.
        gather_axis: the axis of its first operand that a gather selects along.
    """

    node: Node
    axis_loops: Axes
    operands: tuple[NestOperand, ...]
    reduces: bool
    depth: int
    stage: int
    gather_axis: GatherAxis | None = None


class NestStore(NamedTuple):
    """A value that is written to memory."""

    value: Value
    access: Access
    depth: int
    stage: int


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """The loop nest of a fused node.

    Attributes:
        name: the ops it fuses.
        loops: outermost first, parallel loops before reduction loops.
        num_parallel: the number of parallel loops.
        vector: the number of the loop that is vectorised; None for a nest of scalars.
        steps: the body in order.
        stores: the values that are written to memory.
        stages: how often the reduction loops run, one after another. A step that reads a finished reduction
            is in the next stage.
        cost: the work of one iteration of the innermost loop, in additions.
        forwards: whether no stride is negative, as those of reversed axes are.
        scratch_values: values inside the reduction loops that a later stage loads from scratch memory instead
            of recomputing them, numbered.
        costs: the cost model by which its kernel is written.
        near_bytes: the size of the nearest cache.
        reduces_columns: whether it reduces over columns; see :mod:`dualflow.graph.column_reductions`.
        repeated: nodes that another kernel computes as well.
    """

    name: str
    loops: tuple[NestLoop, ...]
    num_parallel: int
    vector: int | None
    steps: tuple[NestStep, ...]
    stores: tuple[NestStore, ...]
    stages: int
    cost: float
    forwards: bool
    scratch_values: Mapping[Value, int]
    costs: CostModel = CPU
    near_bytes: int = CPU_CACHES.near
    reduces_columns: bool = False
    repeated: frozenset[Node] = frozenset()

    @property
    def is_full_reduction(self) -> bool:
        """Whether all loops are reduction loops.

        Then chunks give partial results, which are combined at the end.
        """
        return bool(self.loops) and self.num_parallel == 0

    @property
    def has_scratch_per_iteration(self) -> bool:
        """Whether scratch memory is for one iteration of the parallel loops, not for a vector of them.

        It is if the vector loop is a reduction loop.
        """
        return self.vector == len(self.loops) - 1
