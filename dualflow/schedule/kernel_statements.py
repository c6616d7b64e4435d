"""The statements of a kernel, which renderers write as code.

    kernel(lo, hi, buffers, parameters, status):
        For loop0 in lo .. hi
            ReduceInit r0
            For loop1 in 0 .. parameter 3
                Load r1 = buffer 0 [loop0 * parameter 4 + loop1]
                Compute r2 = exp(r1)
                ReduceUpdate r0, r2
            ReduceFinalize r3 = r0
            Store buffer 1 [loop0] = r3

Statements refer to buffers and to launch parameters (sizes, strides, offsets) by number, so the kernels of
graphs that differ in sizes alone are equal. What a statement computes for one element is a scalar function
(:mod:`dualflow.scalar`). If the last field of a statement is ``node``, it is the source node, which errors
and listings name; it doesn't affect the code.

A loop of kind ``LANES`` may run several iterations at once. Every accumulator of a kernel that has such a
loop then has an element for each lane. ``ReduceHorizontal`` combines them if that loop is a reduction loop.

Statements are named tuples, since the first call defines their classes, and each trace makes thousands of
them: frozen dataclasses take three times as long to define and twice as long to make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node
from dualflow.graph.scalar_functions import ReductionFunctions
from dualflow.scalar import ScalarFunction
from dualflow.schedule.loop_ids import Level, LoopId

OUT_OF_RANGE: Final = (
    "an index is out of range for its axis; it must be from 0 to the size of the axis less 1."
)
"""The error of a failed bounds check."""


class LoopKind(Enum):
    """The ways in which the iterations of a loop may run.

    Attributes:
        SERIAL: one iteration at a time.
        LANES: several consecutive iterations at once, in the lanes of a vector.
        GUARDED: as ``LANES``, by fast code that is valid for nearly all operands. If its guard fails for one
            lane, the loop runs again by exact code. So its iterations read nothing that they write.
    """

    SERIAL = "serial"
    LANES = "lanes"
    GUARDED = "guarded"


class Register(NamedTuple):
    """A scalar variable of the kernel: the result of a statement, written once, or an accumulator."""

    number: int
    dtype: DType


class LaunchParameter(NamedTuple):
    """An integer argument of the kernel, such as a size or stride, by its number among them."""

    number: int


class Scalar(NamedTuple):
    """A scalar argument of the kernel, an operand of scalar functions, by its number among them."""

    number: int
    dtype: DType


class LiteralScalar(NamedTuple):
    """A scalar constant that is part of the kernel."""

    value: np.generic


Operand = Register | Scalar | LiteralScalar


class End(Enum):
    """A bound of a loop: 0, or the begin or end of the kernel's range of iterations."""

    ZERO = "0"
    LOW = "lo"
    HIGH = "hi"


class Edge(NamedTuple):
    """An edge of the current block of a loop: its first iteration, or its exclusive ``end``."""

    loop: LoopId
    level: Level
    end: bool


def edges_of(loop: LoopId, level: Level) -> tuple[Edge, Edge]:
    """Both edges of the current block of a loop."""
    return Edge(loop, level, end=False), Edge(loop, level, end=True)


Bound = LaunchParameter | End | Edge


class ElementAccess(NamedTuple):
    """The access of a buffer's element at an affine index: the sum of ``loop index * stride`` over the terms.

    Attributes:
        buffer: the kernel's buffer.
        terms: loops and strides; None is a stride of 1.
        gather_index: a register with an index along an axis, and the axis's stride: their product is added.
        offset: added; None is 0. An access with a negative stride has one.
        block_starts: for buffers that hold one block: where it begins, subtracted from the loops' indices.
    """

    buffer: int
    terms: tuple[tuple[LoopId, LaunchParameter | None], ...]
    gather_index: tuple[Register, LaunchParameter] | None = None
    offset: LaunchParameter | None = None
    block_starts: tuple[Edge, ...] = ()


class For(NamedTuple):
    """``body`` for each index of ``loop`` from ``begin`` to ``end``, exclusive."""

    loop: LoopId
    begin: Bound
    end: Bound
    kind: LoopKind
    body: tuple[KernelStatement, ...]


class Blocks(NamedTuple):
    """``body`` for each block of ``size`` iterations of ``loop`` between two bounds; the last may be shorter.

    In the body, the block is from one :class:`Edge` of this loop and level to the other.
    """

    loop: LoopId
    level: int
    begin: Bound
    end: Bound
    size: LaunchParameter
    body: tuple[KernelStatement, ...]


class StripMinedLoop(NamedTuple):
    """``body`` for each strip of ``width`` iterations of a lane loop; the last strip may be shorter.

    In the body, the strip is from one :class:`Edge` of level ``STRIP`` to the other. Only
    :mod:`dualflow.schedule.strip_mining` writes this statement, :class:`StackScratch`, :class:`Lanes` and
    :class:`ReduceLanes`.
    """

    loop: LoopId
    begin: Bound
    end: Bound
    width: int
    body: tuple[KernelStatement, ...]


class Lanes(NamedTuple):
    """Runs ``body`` for each of the ``width`` lanes of a strip; loop ``LANES`` has the number of the lane."""

    width: int
    body: tuple[KernelStatement, ...]


class Chunks(NamedTuple):
    """``body`` for each chunk of ``size`` iterations of ``loop`` whose number is in the kernel's range.

    The number is the index of loop ``CHUNKS``. The chunk is from one :class:`Edge` of level ``CHUNK`` to the
    other; the last one ends at ``extent``.
    """

    loop: int
    size: LaunchParameter
    extent: LaunchParameter
    body: tuple[KernelStatement, ...]


class RowGroups(NamedTuple):
    """``body`` for the indices of ``loop`` between two bounds, ``width`` consecutive ones at once.

    A vector holds a value of each of them; the loops inside are :class:`Once`. The last index may run several
    times, to fill the last vector, and stores the same values each time.
    """

    loop: int
    begin: Bound
    end: Bound
    width: int
    body: tuple[KernelStatement, ...]


class Once(NamedTuple):
    """``body`` for all indices of a short ``loop`` at once, in the lanes of one vector.

    ``extent`` is at most the number of lanes, and equal to it if ``full``. The values of ``body`` are in
    registers afterwards.
    """

    loop: int
    extent: LaunchParameter
    full: bool
    body: tuple[KernelStatement, ...]


class Compute(NamedTuple):
    """Calls a scalar function with one result, and writes it to a register.

    ``positions`` has for each axis of the output the loop that runs along it; None for an axis of size 1.
    """

    register: Register
    function: ScalarFunction
    operands: tuple[Operand, ...]
    positions: tuple[int | None, ...]
    node: Node


class Branch(NamedTuple):
    """Statements on scalars, and their results."""

    body: tuple[KernelStatement, ...]
    results: tuple[Operand, ...]


class Choose(NamedTuple):
    """Runs branch number ``selector``, or the last one if it is out of range.

    Its results are in ``registers``.
    """

    registers: tuple[Register, ...]
    selector: Operand
    branches: tuple[Branch, ...]


class Repeat(NamedTuple):
    """A while loop over scalars: ``body`` computes the next ``registers`` while ``condition`` holds.

    The registers are ``starts`` in the first iteration. The loop ends after ``limit`` iterations, unless that
    is None. ``node`` is the loop of the graph; a signal can interrupt it.
    """

    registers: tuple[Register, ...]
    starts: tuple[Operand, ...]
    condition: Branch
    body: Branch
    limit: LaunchParameter | None
    node: Node


class Load(NamedTuple):
    """Reads an element of a buffer."""

    register: Register
    access: ElementAccess


class Store(NamedTuple):
    """Writes an element of a buffer, converted to the buffer's dtype."""

    access: ElementAccess
    value: Operand


class BoundsCheck(NamedTuple):
    """Checks that ``position`` is in bounds of an axis of size ``extent``.

    ``register`` is the position as an index, and ``inside`` whether it is in bounds; if not, the check fails.
    """

    register: Register
    inside: Register
    position: Operand
    extent: LaunchParameter
    node: Node


class MaskedLoad(NamedTuple):
    """A load that reads memory only if ``inside`` holds; else the value is 0."""

    load: Load
    inside: Register


class TransposedTile(NamedTuple):
    """Copies a tile of a buffer, transposed, to scratch buffer ``tile``.

    The tile is of the current blocks of two loops, each from one :class:`Edge` to the other. At
    ``access`` the tile is contiguous along ``down``. In the scratch buffer it is contiguous along ``across``,
    and ``down`` has a stride of ``side``.
    """

    tile: int
    access: ElementAccess
    down: tuple[Edge, Edge]
    across: tuple[Edge, Edge]
    side: LaunchParameter


class ReduceInit(NamedTuple):
    """Initialises the accumulator of a reduction, which has one or more registers."""

    accumulator: tuple[Register, ...]
    reduction: ReductionFunctions
    node: Node


class ReduceUpdate(NamedTuple):
    """Accumulates an element; ``reduced`` are the reduction loops, outermost first, with loop extents."""

    accumulator: tuple[Register, ...]
    reduction: ReductionFunctions
    value: Operand
    reduced: tuple[tuple[int, LaunchParameter], ...]
    node: Node


class ReduceCombine(NamedTuple):
    """Combines an accumulator with another one."""

    accumulator: tuple[Register, ...]
    reduction: ReductionFunctions
    other: tuple[Register, ...]
    node: Node


class ReduceLanes(NamedTuple):
    """Combines the ``width`` accumulators in ``buffers`` into one, halves first.

    There is a buffer for each register of the accumulator, and ``width`` is a power of two.
    """

    accumulator: tuple[Register, ...]
    reduction: ReductionFunctions
    buffers: tuple[int, ...]
    width: int
    node: Node


class ReduceHorizontal(NamedTuple):
    """Combines the lanes of an accumulator into one, halves first, after a lane loop over a reduction."""

    accumulator: tuple[Register, ...]
    reduction: ReductionFunctions
    node: Node


class ReduceFinalize(NamedTuple):
    """Computes the result of a reduction from its accumulator."""

    register: Register
    reduction: ReductionFunctions
    accumulator: tuple[Register, ...]
    node: Node


class ScratchBuffer(NamedTuple):
    """Allocates scratch memory for ``length`` elements, as a buffer of the kernel."""

    buffer: int
    dtype: DType
    length: tuple[LaunchParameter, ...]


class StackScratch(NamedTuple):
    """Allocates stack scratch, as a buffer of the kernel: an element for each of ``width`` iterations."""

    buffer: int
    dtype: DType
    width: int


KernelStatement = (
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


def walk_kernel(statements: Sequence[KernelStatement]) -> Iterator[KernelStatement]:
    """All statements in program order, including those inside loops and branches."""
    for statement in statements:
        yield statement
        for body in _inside(statement):
            yield from walk_kernel(body)


def _inside(statement: KernelStatement) -> Iterator[tuple[KernelStatement, ...]]:
    if isinstance(statement, For | Blocks | StripMinedLoop | Lanes | Chunks | RowGroups | Once):
        yield statement.body
    elif isinstance(statement, Choose):
        yield from (branch.body for branch in statement.branches)
    elif isinstance(statement, Repeat):
        yield statement.condition.body
        yield statement.body.body


def carried(body: Sequence[KernelStatement]) -> tuple[Register, ...]:
    """The accumulators that a loop with this body carries: it updates them, and doesn't initialise them."""
    updated: dict[Register, None] = {}
    initialised: set[Register] = set()
    for statement in walk_kernel(body):
        if isinstance(statement, ReduceInit):
            initialised.update(statement.accumulator)
        elif isinstance(statement, ReduceUpdate | ReduceCombine):
            updated.update(dict.fromkeys(statement.accumulator))
    return tuple([r for r in updated if r not in initialised])
