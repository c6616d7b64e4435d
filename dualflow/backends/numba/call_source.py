"""The calls of a plan as lines of source: what Python and compiled functions write alike."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dualflow.backends.numba.kernel_source import KernelSource, source
from dualflow.backends.numba.notes import NotedLines
from dualflow.backends.numba.parameters import dtype_name
from dualflow.core.dtypes import DType
from dualflow.graph.axes import sizes
from dualflow.graph.control import memory_message
from dualflow.graph.control_spec import loop_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.schedule.assembly import pieces
from dualflow.schedule.copying import copy_elements, fill_elements
from dualflow.schedule.loop_program import Argument, Run
from dualflow.schedule.lower import lower
from dualflow.schedule.nest import Layout
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import Plan, PlannedBody, PlannedCall, StackRow, Turns
from dualflow.schedule.runs import run_of
from dualflow.schedule.scattering import OUTSIDE, depth_of, join_of, table_of

LANES = 16
"""So many turns of a lane loop the blocks of long sums are made for."""
FIRST_ROWS = 64
"""For so many turns a stack that grows has room at first; then for twice as many each time."""
NO_KERNEL = "kernels for Numba hold no float16 and no complex numbers"
"""Why a loop nest runs through NumPy."""
_ARRAYS = "?bBhHiIlLqQfdFD"
"""The characters of the dtypes that Numba's arrays have."""

Reads = Sequence[tuple[Layout, Value]]
"""What a check's error is made of, and where it lies."""
Lowered = tuple[Node, Sequence[Layout], Sequence[Layout]]
"""A fused node, and where its inputs and outputs lie."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramCheck:
    """What has failed where a program tells a number: a message; a check node has none."""

    node: Node
    message: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NumbaNest:
    """A loop nest of a call: its kernel with what it is given, None if Numba can't compute it."""

    node: Node
    inputs: Sequence[Layout]
    outputs: Sequence[Layout]
    run: Run | None
    nodes: tuple[Node, ...] = ()


@dataclass(slots=True)
class Shelf:
    """What the parts of a program share.

    Attributes:
        plan: what the program does.
        names: of the buffers.
        kernels: each different kernel's source, by the name that programs call it by.
        runs: the kernels in the order of their calls, with the nodes that each computes there.
    """

    plan: Plan
    names: list[str]
    kernels: dict[str, KernelSource] = field(default_factory=dict)
    runs: list[tuple[str, tuple[Node, ...]]] = field(default_factory=list)
    _known: dict[str, str] = field(default_factory=dict)
    _nests: dict[PlannedCall, tuple[NumbaNest, ...]] = field(default_factory=dict)

    def kernel(self, run: Run, nodes: tuple[Node, ...]) -> tuple[str, KernelSource]:
        """The kernel of ``run``, and its name; equal kernels are one."""
        made = source(run.kernel)
        name = self._known.setdefault(made.function("kernel"), f"k{len(self._known)}")
        self.kernels.setdefault(name, made)
        if nodes:
            self.runs.append((name, nodes))
        return name, made

    def nests(self, call: PlannedCall) -> tuple[NumbaNest, ...]:
        """The loop nests that a call runs."""
        found = self._nests.get(call)
        if found is None:
            found = self._nests[call] = tuple([_nest(*lowered) for lowered in _nests_of(call)])
        return found

    def bounded(self, scatter: Node) -> bool:
        """Whether a call of its own looks at the positions of a scatter."""
        return any(c.kind is CallKind.BOUNDS and c.node.attrs["scatter"] is scatter for c in self.plan.walk())


def renders(node: Node) -> bool:
    """Whether a fused node can be a kernel: those for Numba hold no floats of 16 bits or complex numbers."""
    body: Graph = node.attrs["body"]
    values = (*body.inputs, *(v for n in body.nodes for v in n.outputs))
    return all(v.spec.dtype.char not in "eFD" and not v.spec.dtype.narrow for v in values)


def has_arrays(node: Node) -> bool:
    """Whether Numba has arrays of all that a node reads and makes."""
    return all(v.spec.dtype.char in _ARRAYS for v in (*node.inputs, *node.outputs))


def _nest(node: Node, inputs: Sequence[Layout], outputs: Sequence[Layout]) -> NumbaNest:
    if not renders(node):
        return NumbaNest(node, inputs, outputs, None)
    nest = lower(node, inputs, outputs)
    return NumbaNest(node, inputs, outputs, run_of(nest, LANES), tuple([step.node for step in nest.steps]))


def _nests_of(call: PlannedCall) -> Iterator[Lowered]:
    """The fused nodes of a call; what a product is added to, or a scatter writes onto, is copied first."""
    if call.kind is CallKind.KERNEL:
        yield call.node, call.inputs, call.outputs
    elif call.kind is CallKind.ASSEMBLY:
        for node, inputs, target in pieces(call):
            yield node, inputs, (target,)
    elif call.kind in (CallKind.PRODUCT, CallKind.SCATTER):
        value, onto = call.node.output, call.inputs[2:] if call.kind is CallKind.PRODUCT else call.inputs[:-2]
        if onto and onto[0] != call.outputs[0]:
            yield copy_elements(sizes(value), value.spec.dtype), onto, call.outputs
        elif not onto and call.kind is CallKind.SCATTER:
            yield fill_elements(sizes(value), value.spec.dtype, 0), (), call.outputs


class CallWriter(ABC):
    """Writes calls in order.

    Attributes:
        shelf: what all parts of the program share.
        lines: what has been written.
        routines: the names of the routines that the lines call.
    """

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.lines = NotedLines()
        self.routines: set[str] = set()

    # What differs between Python and compiled functions

    @abstractmethod
    def buffer(self, buffer: int, dtype: DType) -> str:
        """A buffer as a flat array of ``dtype``."""

    @abstractmethod
    def number(self, number: int) -> str:
        """An integer that is known before the program runs."""

    @abstractmethod
    def literal(self, number: Any) -> str:
        """A NumPy scalar."""

    @abstractmethod
    def rows_within(self, nbytes: int) -> str:
        """How many rows of so many bytes fit into memory."""

    @abstractmethod
    def turns_of(self, loop: int) -> str:
        """The name of the number of turns of a loop."""

    @abstractmethod
    def require(self, condition: str, check: ProgramCheck, reads: Reads = ()) -> None:
        """Stop unless a condition holds."""

    @abstractmethod
    def launch(self, name: str, run: Run, given: str, nodes: Sequence[Node]) -> None:
        """PlannedCall a kernel."""

    @abstractmethod
    def settle(self, checks: Sequence[ProgramCheck], nodes: Sequence[Node]) -> None:
        """Stop if a kernel has left the number of one of its checks in the status."""

    @abstractmethod
    def unrendered(self, nest: NumbaNest) -> None:
        """A loop nest that Numba can't compute."""

    @abstractmethod
    def multiply(self, call: PlannedCall) -> None:
        """A matrix product, onto what has been copied to its place."""

    @abstractmethod
    def host(self, call: PlannedCall) -> None:
        """A node as its op's own kernel."""

    # Calls

    def calls(self, calls: Sequence[PlannedCall]) -> None:
        for call in calls:
            self._call_of(call.kind)(call)

    def _call_of(self, kind: CallKind) -> Callable[[PlannedCall], None]:
        """What writes a call of that kind; see :func:`dualflow.schedule.operands.kind_of`."""
        return {
            CallKind.KERNEL: self.nests,
            CallKind.ASSEMBLY: self.nests,
            CallKind.PRODUCT: self.product,
            CallKind.SCATTER: self.scatter,
            CallKind.BOUNDS: self.bounds,
            CallKind.MOVE: self.move,
            CallKind.CHECK: self.check,
            CallKind.CONTROL: self.control,
            CallKind.POSITIONS: self.host,
            CallKind.FOURIER: self.host,
            CallKind.HOST: self.host,
        }[kind]

    def nests(self, call: PlannedCall) -> None:
        """The loop nests of a call."""
        for nest in self.shelf.nests(call):
            if nest.run is None:
                self.unrendered(nest)
            else:
                self._nest(nest.run, nest.nodes)

    def _nest(self, run: Run, nodes: tuple[Node, ...]) -> None:
        partials = []
        for i, dtype in enumerate(run.partials):
            partials.append(f"part{i}")
            self.lines.add(f"part{i} = np.empty({self.number(run.total * run.each)}, {dtype_name(dtype)})")
        self._run(run, partials, nodes)
        if run.join is not None:
            self._run(run.join, partials, ())

    def _run(self, run: Run, partials: Sequence[str], nodes: tuple[Node, ...]) -> None:
        if not run.total:
            return
        name, made = self.shelf.kernel(run, nodes)
        given = [
            *(self._argument(a) for a in run.buffers),
            *partials,
            *map(self.literal, run.scalars),
            *map(self.number, run.numbers),
            "status",
        ]
        self.launch(name, run, ", ".join(given), nodes)
        self.settle([ProgramCheck(at, message) for message, at in made.checks], nodes)

    def _argument(self, argument: Argument) -> str:
        """A buffer of a kernel, from where it begins."""
        buffer = self.buffer(argument.buffer, argument.dtype)
        return f"{buffer}[{self.number(argument.offset)}:]" if argument.offset else buffer

    def product(self, call: PlannedCall) -> None:
        """A matrix product; what it is added to is copied first."""
        self.nests(call)
        self.multiply(call)

    def scatter(self, call: PlannedCall) -> None:
        """Rows put where integers say, onto a copy of the first input or zeros."""
        if not has_arrays(call.node):
            self.host(call)
            return
        self.nests(call)
        node, (out,) = call.node, call.outputs
        dtype = node.output.spec.dtype
        if not self.shelf.bounded(node):
            self._require_inside(node, call.inputs[-2])
        turns, count, length, *_ = table_of(node)
        name = f"scatter_{join_of(node)}"
        self.routines.add(name)
        places = [
            f"{self.buffer(layout.buffer, d)}, {self.number(layout.offset)}"
            for layout, d in zip(
                (out, *call.inputs[-2:]), (dtype, node.inputs[-2].spec.dtype, dtype), strict=True
            )
        ]
        given = [*places, *map(self.number, (turns, count, length)), self._limits(node)]
        self.lines.add(f"{name}({', '.join(given)})", (node,))

    def bounds(self, call: PlannedCall) -> None:
        """The positions of a scatter, before anything is written."""
        self._require_inside(call.node.attrs["scatter"], call.inputs[0])

    def _require_inside(self, node: Node, positions: Layout) -> None:
        self.routines.add("scatter_inside")
        _, count, *_ = table_of(node)
        buffer = self.buffer(positions.buffer, node.inputs[-2].spec.dtype)
        given = f"{buffer}, {self.number(positions.offset)}, {self.number(count)}, {self._limits(node)}"
        self.require(f"scatter_inside({given})", ProgramCheck(node, OUTSIDE))

    def _limits(self, node: Node) -> str:
        """The sizes of the axes that a scatter's positions name, and how many they are: none is one place."""
        depth = depth_of(node)
        sizes = table_of(node)[4 : 4 + depth] or [1]
        return f"({', '.join(map(self.number, sizes))},), {depth}"

    def move(self, call: PlannedCall) -> None:
        """Elements that lie one behind another, copied as they are."""
        value = call.node.output
        source, target = (self._stretch(x, value) for x in (*call.inputs, *call.outputs))
        self.lines.add(f"{target} = {source}", (call.node,))

    def _stretch(self, layout: Layout, value: Value) -> str:
        """The elements of a value that lie one behind another."""
        begin, count = self.number(layout.offset), self.number(math.prod(sizes(value)))
        return f"{self.buffer(layout.buffer, value.spec.dtype)}[{begin} : {begin} + {count}]"

    def check(self, call: PlannedCall) -> None:
        """A check in its own right: its error is made of what it reads."""
        condition, *reads = zip(call.inputs, call.node.inputs, strict=True)
        self.require(self._element(condition[0], condition[1].spec.dtype), ProgramCheck(call.node), reads)

    def _element(self, layout: Layout, dtype: DType) -> str:
        return f"{self.buffer(layout.buffer, dtype)}[{self.number(layout.offset)}]"

    # Choices and loops

    def control(self, call: PlannedCall) -> None:
        """A choice or a loop around calls of this level."""
        if call.turns is not None:
            self._loop(call, call.turns)
        else:
            self._choice(call)

    def _choice(self, call: PlannedCall) -> None:
        index = self._element(call.inputs[0], call.node.inputs[0].spec.dtype)
        *first, last = call.blocks
        for number, block in enumerate(first):
            with self.lines.block(f"{'elif' if number else 'if'} {index} == {number}:"):
                self.calls(block.calls)
        if not first:
            self.calls(last.calls)
            return
        with self.lines.block("else:"):
            self.calls(last.calls)

    def _loop(self, call: PlannedCall, turns: Turns) -> None:
        node, loop, turn = call.node, loop_of(call.node), self.begin_turns(turns.counter)
        rows = list(zip(turns.rows, row_dtypes(node), strict=True))
        self.calls(turns.start)
        for row, dtype in rows:
            if row in turns.grown:
                self.lines.add(f"{self.begin_stack(row)} = np.empty(0, {dtype_name(dtype)})")
        self.lines.add(f"{turn} = 0", (node,))
        limit = self._limit(loop.length, turns)
        with self.lines.block("while True:" if limit is None else f"while {turn} < {limit}:"):
            if loop.condition is not None:
                self._tested(call.blocks[0], loop.condition.outputs[0].spec.dtype)
            backwards = loop.reverse and limit is not None
            for row, dtype in rows:
                if row in turns.grown and row.nbytes:
                    self._grow(node, row, dtype, turn, turns)
                self._point(row, dtype, f"({limit} - 1 - {turn})" if backwards else turn)
            self.calls(call.blocks[-1].calls)
            self.lines.add(f"{turn} += 1")
            self.end_turn(call, turn)

    def _limit(self, length: int | None, turns: Turns) -> str | None:
        if turns.counted is not None:
            return self.turns_of(turns.counted)
        return None if length is None else self.number(length)

    def begin_turns(self, loop: int) -> str:
        """The name of a loop's counter, which the next line makes."""
        return f"turn{loop}"

    def begin_stack(self, row: StackRow) -> str:
        """The name of a stack that grows, which the next line makes."""
        return self.shelf.names[row.stack.buffer]

    def begin_row(self, row: StackRow) -> str:
        """The name of a row, which the next line makes."""
        return self.shelf.names[row.slot]

    @abstractmethod
    def end_turn(self, call: PlannedCall, turn: str) -> None:
        """What stands at the end of a turn."""

    def _tested(self, test: PlannedBody, dtype: DType) -> None:
        self.calls(test.calls)
        with self.lines.block(f"if not {self._element(test.results[0], dtype)}:"):
            self.lines.add("break")

    def _grow(self, node: Node, row: StackRow, dtype: DType, turn: str, turns: Turns) -> None:
        """Room for the row of this turn."""
        self.routines.add("grown")
        stack, count = self.buffer(row.stack.buffer, dtype), row.nbytes // row.itemsize
        each = sum(r.nbytes for r in turns.grown)
        with self.lines.block(f"if {turn} * {self.number(count)} == len({stack}):"):
            most = f"max({FIRST_ROWS}, 2 * {turn}) <= {self.rows_within(each)}"
            self.require(f"({most})", ProgramCheck(node, memory_message(each)))
            self.lines.add(f"{stack} = grown({stack}, {self.number(FIRST_ROWS * count)})")

    def _point(self, row: StackRow, dtype: DType, turn: str) -> None:
        """The row of this turn: a stretch of its stack."""
        stack, count = self.buffer(row.stack.buffer, dtype), self.number(row.nbytes // row.itemsize)
        begin = f"{turn} * {count}" + (f" + {self.number(row.stack.offset)}" if row.stack.offset else "")
        self.lines.add(f"{self.begin_row(row)} = {stack}[{begin} : {begin} + {count}]")


def row_dtypes(loop: Node) -> list[DType]:
    """The dtypes of the rows of a loop, in the order of its plan."""
    carried, mapped = loop_of(loop).carried, loop_of(loop).mapped
    return [v.spec.dtype for v in (*loop.inputs[carried : carried + mapped], *loop.outputs[carried:])]
