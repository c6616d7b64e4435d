"""The loop program: what a kernel does, as frozen statements that a renderer walks.

    kernel(lo, hi, buffers, numbers, status):
        For loop0 in lo .. hi
            ReduceInit r0
            For loop1 in 0 .. number 3
                Load r1 = buffer 0 [loop0 * number 4 + loop1]
                Compute r2 = exp(r1)
                ReduceUpdate r0, r2
            ReduceFinalize r3 = r0
            Store buffer 1 [loop0] = r3

A kernel names its own buffers, and numbers that are known at run time only (sizes, strides), by place:
kernels of graphs that differ in sizes alone are the same statements. What a statement computes for one
element is a scalar function (:mod:`dualflow.scalar`). The last field of a statement that has a ``node`` is
its source, which errors and listings name; it is no part of what the kernel does.

A loop of kind ``LANES`` may run several iterations at once. Every accumulator of a kernel that has such a
loop then has an element for each lane. ``ReduceHorizontal`` combines them if that loop is a reduction loop.

Statements are named tuples: the first call waits for their definitions, each trace for thousands of them, and
frozen dataclasses take three times as long to define and twice to make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TypeGuard

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node
from dualflow.graph.scalar_functions import ReductionFunctions
from dualflow.scalar import ScalarFunction
from dualflow.schedule.loop_ids import Level, LoopId


class LoopKind(Enum):
    """How a loop may run.

    Attributes:
        SERIAL: one iteration at a time.
        LANES: several neighbouring iterations at once, in the lanes of a vector.
        SPECULATIVE: as ``LANES``, by code that is right for nearly all operands; if it was wrong for one, the
            loop runs again by exact code. Its iterations read nothing that they write.
    """

    SERIAL = "serial"
    LANES = "lanes"
    SPECULATIVE = "speculative"


class Register(NamedTuple):
    """A value of one element: the result of a statement, written once, or the accumulator of a fold."""

    number: int
    dtype: DType


class LaunchParameter(NamedTuple):
    """A number that the caller gives at run time, by its place."""

    number: int


class Scalar(NamedTuple):
    """A number of some dtype that the caller gives at run time, as an operand of element code."""

    number: int
    dtype: DType


class LiteralScalar(NamedTuple):
    """A number or truth value that is part of the kernel."""

    value: np.generic


Operand = Register | Scalar | LiteralScalar


class End(Enum):
    """An end of the kernel's own range, or 0."""

    ZERO = "0"
    LOW = "lo"
    HIGH = "hi"


class Edge(NamedTuple):
    """The beginning, or the ``end``, of the present block of a loop that runs by blocks."""

    loop: LoopId
    level: Level
    end: bool


Bound = LaunchParameter | End | Edge


class Place(NamedTuple):
    """An element of a buffer: for each loop it follows, ``index * stride``; None is 1.

    ``gathered`` adds a register, which holds a position, times a stride, and ``offset`` is where the first
    element of loops lies that walk backwards. ``begin`` is subtracted: the place is counted from there.
    """

    buffer: int
    terms: tuple[tuple[LoopId, LaunchParameter | None], ...]
    gathered: tuple[Register, LaunchParameter] | None = None
    offset: LaunchParameter | None = None
    begins: tuple[Edge, ...] = ()


class For(NamedTuple):
    """``body`` for each index of ``loop`` from ``begin`` to ``end``, the latter excluded."""

    loop: LoopId
    begin: Bound
    end: Bound
    kind: LoopKind
    body: tuple[Statement, ...]


class Blocks(NamedTuple):
    """``body`` for each chunk of ``size`` iterations of ``loop`` between two bounds, the last one cut
    short.

    Inside, the chunk is from one :class:`Edge` of this loop and level to the other.
    """

    loop: LoopId
    level: int
    begin: Bound
    end: Bound
    size: LaunchParameter
    body: tuple[Statement, ...]


class StripMinedLoop(NamedTuple):
    """``body`` for each chunk of ``width`` iterations of a lane loop, the last one cut short.

    Inside, the chunk is from one :class:`Edge` of level ``STRIP`` to the other. This statement,
    :class:`StackScratch`, :class:`Lanes` and :class:`ReduceLanes` are for renderers that ask for strips
    (:mod:`dualflow.schedule.strip_mining`); a nest's own kernel has none.
    """

    loop: LoopId
    begin: Bound
    end: Bound
    width: int
    body: tuple[Statement, ...]


class Lanes(NamedTuple):
    """``body`` for each of ``width`` accumulators that stand side by side: loop ``LANES``."""

    width: int
    body: tuple[Statement, ...]


class Chunks(NamedTuple):
    """``body`` for each chunk of ``size`` iterations of ``loop`` whose number the kernel's range has.

    The number is the index of loop ``CHUNKS``; the chunk is from one :class:`Edge` of level ``CHUNK`` to the
    other, and ends at ``extent``.
    """

    loop: int
    size: LaunchParameter
    extent: LaunchParameter
    body: tuple[Statement, ...]


class RowGroups(NamedTuple):
    """``body`` for each index of ``loop`` between two bounds, ``width`` neighbouring ones at once.

    Each value has a copy for each of them, side by side in one vector: the loops inside are :class:`Once`.
    The last index may run several times, to fill the last vector, and stores the same values each time.
    """

    loop: int
    begin: Bound
    end: Bound
    width: int
    body: tuple[Statement, ...]


class Once(NamedTuple):
    """``body`` for all indices of ``loop`` at once, 0 to ``extent``: there are no more than a vector's lanes.

    They fill the vector if it is ``full``. What ``body`` computes is in registers behind it.
    """

    loop: int
    extent: LaunchParameter
    full: bool
    body: tuple[Statement, ...]


class Compute(NamedTuple):
    """The result of a scalar function of one result.

    ``positions`` has for each axis of the output the loop that runs along it, None for an axis of size 1.
    """

    register: Register
    function: ScalarFunction
    operands: tuple[Operand, ...]
    positions: tuple[int | None, ...]
    node: Node


class Branch(NamedTuple):
    """Statements of scalars, and what they result in."""

    body: tuple[Statement, ...]
    results: tuple[Operand, ...]


class Choose(NamedTuple):
    """``registers`` are the results of branch number ``selector``, of the last one beyond their number."""

    registers: tuple[Register, ...]
    selector: Operand
    branches: tuple[Branch, ...]


class Repeat(NamedTuple):
    """A loop over scalars: ``body`` makes the registers of the next iteration while ``condition`` holds.

    They are ``starts`` in the first iteration, and stay what they are behind the last one. There are no more
    than ``limit`` iterations, where there is a limit. ``node`` is the loop of the graph, which a signal ends.
    """

    registers: tuple[Register, ...]
    starts: tuple[Operand, ...]
    condition: Branch
    body: Branch
    limit: LaunchParameter | None
    node: Node


class Load(NamedTuple):
    """An element of a buffer."""

    register: Register
    place: Place


class Store(NamedTuple):
    """An element written to a buffer, converted to the buffer's dtype."""

    place: Place
    value: Operand


class BoundsCheck(NamedTuple):
    """``position`` as an index of an axis of size ``extent``; outside of it a check fails.

    ``inside`` holds whether it is inside.
    """

    register: Register
    inside: Register
    position: Operand
    extent: LaunchParameter
    node: Node


class MaskedLoad(NamedTuple):
    """A load that is 0 where ``inside`` does not hold: there is nothing to read."""

    load: Load
    inside: Register


class TransposedTile(NamedTuple):
    """A tile of a buffer in a row of the kernel's own, with its two axes exchanged.

    The tile is of the present chunks of two loops, from one :class:`Edge` to the other. Neighbours along
    ``down`` are neighbours at ``place``; in buffer ``row``, ``side`` elements apart, while those along
    ``across`` are neighbours.
    """

    row: int
    place: Place
    down: tuple[Edge, Edge]
    across: tuple[Edge, Edge]
    side: LaunchParameter


class ReduceInit(NamedTuple):
    """The accumulator of a fold at its beginning, one register for each of its elements."""

    accumulator: tuple[Register, ...]
    reduction: ReductionFunctions
    node: Node


class ReduceUpdate(NamedTuple):
    """One more element for a fold, at its place in the ``reduced`` loops, outermost first with extents."""

    accumulator: tuple[Register, ...]
    reduction: ReductionFunctions
    value: Operand
    reduced: tuple[tuple[int, LaunchParameter], ...]
    node: Node


class ReduceCombine(NamedTuple):
    """An accumulator combined with another one."""

    accumulator: tuple[Register, ...]
    reduction: ReductionFunctions
    other: tuple[Register, ...]
    node: Node


class ReduceLanes(NamedTuple):
    """``width`` accumulators side by side in ``slots`` combined into one, halves first.

    There is a buffer for each register of the accumulator, and ``width`` is a power of two.
    """

    accumulator: tuple[Register, ...]
    reduction: ReductionFunctions
    slots: tuple[int, ...]
    width: int
    node: Node


class ReduceHorizontal(NamedTuple):
    """The lanes of an accumulator combined into one, halves first: the lane loop was a reduction loop."""

    accumulator: tuple[Register, ...]
    reduction: ReductionFunctions
    node: Node


class ReduceFinalize(NamedTuple):
    """The result of a reduction."""

    register: Register
    reduction: ReductionFunctions
    accumulator: tuple[Register, ...]
    node: Node


class ScratchBuffer(NamedTuple):
    """Memory of the kernel's own for ``length`` elements, as a buffer that only it sees."""

    buffer: int
    dtype: DType
    length: tuple[LaunchParameter, ...]


class StackScratch(NamedTuple):
    """Memory of the kernel's own for an element of each of ``width`` iterations, as a buffer that only it
    sees."""

    buffer: int
    dtype: DType
    width: int


Statement = (
    For
    | Blocks
    | StripMinedLoop
    | Lanes
    | Chunks
    | RowGroups
    | Once
    | Compute
    | Choose
    | Repeat
    | Load
    | Store
    | BoundsCheck
    | MaskedLoad
    | TransposedTile
    | ReduceInit
    | ReduceUpdate
    | ReduceCombine
    | ReduceLanes
    | ReduceHorizontal
    | ReduceFinalize
    | ScratchBuffer
    | StackScratch
)


class Kernel(NamedTuple):
    """Statements that run for the indices ``lo`` to ``hi`` of the outermost loop, or of its blocks.

    Attributes:
        buffers: the dtype of each buffer, by place; those the kernel makes for itself are not among them.
        scalars: the dtype of each number of element code, by place.
        parameters: how many other numbers it is given.
        is_long: whether it has so many ops that its code is kept short.
    """

    buffers: tuple[DType, ...]
    scalars: tuple[DType, ...]
    parameters: int
    is_long: bool
    body: tuple[Statement, ...]

    @property
    def lane_loop(self) -> LoopId | None:
        """The number of the loop that may run by lanes."""
        return next((s.loop for s in walk(self.body) if _runs_by_lanes(s)), None)

    @property
    def reduces_lanes(self) -> bool:
        """Whether the loop that may run by lanes is a reduction loop, whose lanes are combined at the end."""
        return any(isinstance(statement, ReduceHorizontal) for statement in walk(self.body))

    @property
    def outermost(self) -> For | Chunks | RowGroups | None:
        """The loop that runs over the kernel's range; None for a kernel of scalars, which runs once."""
        for statement in self.body:
            if isinstance(statement, Chunks) or (
                isinstance(statement, For | RowGroups) and statement.begin is End.LOW
            ):
                return statement
        return None


class Argument(NamedTuple):
    """A buffer of the program from element ``offset`` on, as a kernel sees it: elements of ``dtype``."""

    buffer: int
    offset: int
    dtype: DType


class Run(NamedTuple):
    """A kernel with what it is given: ``total`` iterations of its outermost loop, or blocks, of ``work`` in
    all.

    ``join`` is run once after it, over the partial results of ``total`` blocks, each of ``each`` elements;
    ``work`` is in additions.
    """

    kernel: Kernel
    buffers: tuple[Argument, ...]
    scalars: tuple[np.generic, ...]
    parameters: tuple[int, ...]
    total: int
    work: float
    partials: tuple[DType, ...] = ()
    join: Run | None = None
    partial_size: int = 1


def walk(statements: Sequence[Statement]) -> Iterator[Statement]:
    """All statements, those inside loops and branches too, in order."""
    for statement in statements:
        yield statement
        for body in _inside(statement):
            yield from walk(body)


def _inside(statement: Statement) -> Iterator[tuple[Statement, ...]]:
    if isinstance(statement, For | Blocks | StripMinedLoop | Lanes | Chunks | RowGroups | Once):
        yield statement.body
    elif isinstance(statement, Choose):
        yield from (branch.body for branch in statement.branches)
    elif isinstance(statement, Repeat):
        yield statement.condition.body
        yield statement.body.body


def _runs_by_lanes(statement: Statement) -> TypeGuard[For | Once]:
    return isinstance(statement, Once) or (isinstance(statement, For) and statement.kind is LoopKind.LANES)


def carried(body: Sequence[Statement]) -> tuple[Register, ...]:
    """The accumulators that a loop with this body carries between iterations: folded in it, begun before."""
    folded: dict[Register, None] = {}
    begun: set[Register] = set()
    for statement in walk(body):
        if isinstance(statement, ReduceInit):
            begun.update(statement.accumulator)
        elif isinstance(statement, ReduceUpdate | ReduceCombine):
            folded.update(dict.fromkeys(statement.accumulator))
    return tuple([r for r in folded if r not in begun])
