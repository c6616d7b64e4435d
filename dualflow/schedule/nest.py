"""A loop nest: what one kernel does, as plain data between the fused node and the machine code.

Loops stand outermost first: the kept ones, then the reduced ones. One of them, the last of the domain in
memory order, is the vector loop. Sizes, strides and offsets are run-time parameters of the code, so that one
kernel serves every size; what the code does depend on is which of them are absent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple, dataclass
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.fused import Axes
from dualflow.graph.ir import Node, Value


class Layout(NamedTuple):
    """Where a value is at run time: elements ``offset + sum(index * strides)`` of buffer ``buffer``."""

    buffer: int
    offset: int
    strides: tuple[int, ...]


def contiguous_strides(shape: Sequence[int | None]) -> tuple[int, ...]:
    """Element strides of a C-contiguous array of a static shape.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    sizes = [1 if d is None or d == 0 else d for d in shape]
    return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


class NestLoop(NamedTuple):
    """One loop; a reduced one is folded by the nest's reductions."""

    extent: int
    reduced: bool


class Access(NamedTuple):
    """An element of a buffer for each iteration of the loops.

    A stride of 0 stands for a loop it does not follow.
    """

    buffer: int
    offset: int
    strides: tuple[int, ...]
    dtype: DType


class GatherAxis(NamedTuple):
    """The axis of a ``take`` along which positions are looked up: its size and stride."""

    extent: int
    stride: int


@dataclass(frozen=True, slots=True, eq=False)
class NestOperand:
    """What a step reads: the result of an earlier step, an access, or a literal; exactly one is set.

    Each equals itself alone: literals of several dtypes would be equal.
    """

    value: Value | None = None
    access: Access | None = None
    literal: object = None


@dataclass(frozen=True, slots=True, eq=False)
class NestStep:
    """One node of the body: its operands, and the loops that its index follows (by dim).

    ``reduces`` says whether it folds loops; a reduction over axes of size 1 has none to fold.
    """

    node: Node
    own: Axes
    operands: tuple[NestOperand, ...]
    reduces: bool
    level: int
    stage: int
    gather_axis: GatherAxis | None = None


class NestStore(NamedTuple):
    """A value written to memory."""

    value: Value
    access: Access
    level: int
    stage: int


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """One kernel before emission.

    Attributes:
        name: the ops it fuses.
        loops: outermost first, kept before reduced.
        vector: which loop runs over lanes; None for a nest of scalars.
        steps: the body in order.
        stores: what leaves it.
        stages: how often the reduced loops run: what needs a finished reduction waits for the next stage.
        cached: values of the whole domain that a later stage loads from scratch rows instead of computing
            them again, numbered.
        repeated: nodes that another kernel computes as well.
        costs: the figures by which its kernel is written.
        columns: whether the folds are of columns; see :mod:`dualflow.graph.column_folds`.
    """

    name: str
    loops: tuple[NestLoop, ...]
    vector: int | None
    steps: tuple[NestStep, ...]
    stores: tuple[NestStore, ...]
    stages: int
    cached: Mapping[Value, int]
    costs: CostModel = CPU
    columns: bool = False
    repeated: frozenset[Node] = frozenset()

    @property
    def num_parallel(self) -> int:
        """How many loops are not reduced."""
        return sum(not loop.reduced for loop in self.loops)

    @property
    def is_full_reduction(self) -> bool:
        """Whether every loop is reduced: partial results of blocks are then joined at the end."""
        return bool(self.loops) and self.num_parallel == 0

    @property
    def has_scratch_per_iteration(self) -> bool:
        """Whether a scratch row is of one iteration of the kept loops: the vector loop is a reduced one.

        Otherwise it is of one vector of them.
        """
        return self.vector == len(self.loops) - 1

    @property
    def cost(self) -> float:
        """Work of one element of the domain, in additions."""
        reads = sum(o.access is not None for s in self.steps for o in s.operands)
        return sum(getattr(s.node.op.kind, "cost", 1.0) for s in self.steps) + 2 * (reads + len(self.stores))
