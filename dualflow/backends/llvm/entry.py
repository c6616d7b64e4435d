"""An entry of a program: what calls kernels and products in the order of its statements.

Such calls are steps in the table of integers. Around conditionals, loops and sizes that the run tells an
entry is a function, which is written from the first time on that its builder is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.kernel_table import KernelMemory, table
from dualflow.backends.llvm.runtime.source import IrSource
from dualflow.backends.llvm.scatter import bounds_routine, routine
from dualflow.backends.llvm.steps import BEGINNING, LINK, WALK, StepKind, StepRecord
from dualflow.backends.llvm.text import F64, I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.backends.llvm.written import write
from dualflow.core.records import NamedTuple, dataclass, field
from dualflow.core.size_functions import largest
from dualflow.core.symbolic_sizes import SizeVariable, typical
from dualflow.graph import ir
from dualflow.graph.axes import sizes
from dualflow.graph.cost_model import CostModel
from dualflow.graph.ir import Node
from dualflow.schedule.access_bounds import Region
from dualflow.schedule.call_reports import OUT_OF_BOUNDS, OutOfMemory
from dualflow.schedule.lanes import lanes_of
from dualflow.schedule.loop_program import For, LoopKind, Run, ScratchBuffer
from dualflow.schedule.lower import lower
from dualflow.schedule.memory_bounds import MemoryBounds
from dualflow.schedule.nest import Layout, Nest
from dualflow.schedule.operands import CallKind, kind_of
from dualflow.schedule.planned import Plan
from dualflow.schedule.runs import run_of
from dualflow.schedule.scattering import OUTSIDE
from dualflow.schedule.short_rows import has_short_rows, runs_side_by_side
from dualflow.schedule.spans import Span, at_least
from dualflow.schedule.statements import CheckBounds, CopyMemory, Launch, ScatterRows

if TYPE_CHECKING:
    from dualflow.backends.llvm.runtime.checked_memory import Workspace

PARTIAL_BYTES = 8
"""What a partial result of a whole reduction has in memory, whatever its dtype."""
ROW_ALIGNMENT = 64
PADDING = 64
"""Bytes behind each block of memory of a size that the run tells, for lanes that are off."""
CHECKED_PADDING = 8
"""The same in the checked mode, behind positions of elements: one too many may be written."""
NO_MEMORY = OutOfMemory("there is no memory for a tensor whose size the run has told. Compute it in parts.")


class EmittedKernel(NamedTuple):
    """One emitted loop nest, for readers and reports."""

    name: str
    nest: Nest
    lanes: int


@dataclass(slots=True, eq=False)
class Unit:
    """A program under construction, and what its entries share.

    Attributes:
        module: the entries that are functions.
        bounds: the sizes of buffers, with which accesses are compared.
        begin: is told sources as they are written.
        params: the table of integers that they read, and
        messages: the checks that may fail.
        functions: what each step calls, by the place of its address in the table.
        products: the places of those that multiply matrices.
        addresses: what the functions call beside each other and C's functions.
        asks: whether some kernel may run so long that it looks for signals.
        steps: what the table has of them, for reports.
        node: that of the statement being written, and
        around: the conditional or loop that it is in.
        workspace: scratch memory, a block for each statement, where memory is checked; else None.
    """

    plan: Plan
    threads: int
    memory_bytes: int
    module: LlvmModule
    bounds: MemoryBounds
    begin: Callable[[IrSource], None]
    params: list[int] = field(default_factory=lambda: [*BEGINNING])
    messages: list[tuple[str | CheckValues, Node]] = field(default_factory=list)
    kernels: list[EmittedKernel] = field(default_factory=list)
    functions: dict[int, IrSource] = field(default_factory=dict)
    products: list[int] = field(default_factory=list)
    addresses: dict[str, int] = field(default_factory=dict)
    asks: bool = False
    workspace_bytes: int = 0
    parallel: bool = False
    work_ns: float = 0.0
    sized: bool = False
    variable_places: dict[SizeVariable, int] = field(default_factory=dict)
    given: dict[tuple[int, int], int] = field(default_factory=dict)
    rooms: dict[int, int] = field(default_factory=dict)
    steps: list[StepRecord] = field(default_factory=list)
    node: Node | None = None
    around: Node | None = None
    workspace: Workspace | None = None

    @property
    def costs(self) -> CostModel:
        """The figures of the processor."""
        return self.plan.costs

    def param(self, number: int) -> int:
        """A new run-time parameter: its place."""
        self.params.append(number)
        return len(self.params) - 1

    def run(self, numbers: Sequence[int]) -> int:
        """Parameters that stand one behind another: the place of the first."""
        self.params.extend(numbers)
        return len(self.params) - len(numbers)

    def calls(self, step: int, function: IrSource) -> None:
        """Note what a step calls."""
        self.functions[step + 2] = function
        self.begin(function)

    def variable_place(self, variable: SizeVariable) -> int:
        """The place of a size variable in the table of integers."""
        if variable not in self.variable_places:
            self.variable_places[variable] = self.param(0)
        return self.variable_places[variable]

    def given_place(self, axis: tuple[int, int]) -> int:
        """The place of the size that a call gives an axis of an input."""
        if axis not in self.given:
            self.given[axis] = self.param(0)
        return self.given[axis]

    def room(self, buffer: int) -> int:
        """The place of the number of bytes that a buffer of run-time size has."""
        if buffer not in self.rooms:
            self.rooms[buffer] = self.param(0)
        return self.rooms[buffer]

    def reserve(self, nbytes: int) -> int:
        """The place of memory behind the arena's values, or in a buffer of its own where sizes are learnt.

        Whatever works there takes turns, and all begins at one place, unless memory is checked.
        """
        if self.sized:
            self.workspace_bytes = nbytes
            return 0
        if self.workspace is not None:
            return self.workspace.block(nbytes)
        self.workspace_bytes = max(self.workspace_bytes, nbytes)
        return self.plan.arena_bytes

    def stretch(self) -> int:
        """The place of the head of a new stretch: the table's beginning for the first."""
        place = len(self.params)
        return self.run([place, 0]) if place > len(BEGINNING) else 0

    def follow(self, before: int, kind: StepKind, numbers: Sequence[int]) -> int:
        """A step behind the head or step at ``before``: its place."""
        place = self.run([kind, 0, *numbers])
        assert self.node is not None, "a statement is being written"
        self.steps.append(StepRecord(place, kind, self.node, self.around))
        self.params[before + LINK] = place - before
        return place

    def memory(self, run: Run, lanes: int) -> KernelMemory:
        """A place for the kernel's own memory, behind the arena's values."""
        buffer = self.plan.workspace if self.sized else self.plan.arena
        if run.partials:
            each = run.total * run.partial_size * PARTIAL_BYTES
            start = self.reserve(each * len(run.partials))
            return KernelMemory(buffer, tuple([start + i * each for i in range(len(run.partials))]))
        sizes = [
            _aligned((math.prod(run.parameters[n.number] for n in s.length) + lanes) * s.dtype.size)
            for s in run.kernel.body
            if isinstance(s, ScratchBuffer)
        ]
        if not sizes:
            return KernelMemory(buffer)
        start = self.reserve(sum(sizes) * self.threads)
        starts = tuple([start + sum(sizes[:i]) for i in range(len(sizes))])
        return KernelMemory(buffer, starts, sum(sizes))


class EntryFunction(NamedTuple):
    """An entry that is a function.

    Attributes:
        b: fills it.
        buffers: the addresses of the buffers,
        params: the integers, and
        status: where a check that failed is noted.
    """

    b: Builder
    buffers: EmittedValue
    params: EmittedValue
    status: EmittedValue


class Entry:
    """Writes the calls of one entry.

    Attributes:
        unit: the program.
        name: of the function, if it becomes one.
        function: what is written beside steps; None as long as there are steps only.
        first: the head of the first stretch.
    """

    def __init__(self, unit: Unit, name: str) -> None:
        self.unit = unit
        self.name = name
        self.function: EntryFunction | None = None
        self.first: int | None = None
        self._last = 0
        self._behind: tuple[object, int] | None = None

    @property
    def b(self) -> Builder:
        """The builder of the entry's function."""
        return self._written().b

    @property
    def buffers(self) -> EmittedValue:
        return self._written().buffers

    @property
    def params(self) -> EmittedValue:
        return self._written().params

    @property
    def status(self) -> EmittedValue:
        return self._written().status

    def read_from(self, buffers: EmittedValue) -> None:
        """Take the addresses of buffers from another table from here on."""
        self.function = self._written()._replace(buffers=buffers)

    def _written(self) -> EntryFunction:
        """The function, which begins with the steps that there are already."""
        if self.function is None:
            arguments = [("buffers", PTR), ("params", PTR), ("status", PTR)]
            made = self.unit.module.function(self.name, VOID, arguments)
            self.function = EntryFunction(made.builder, *made.args)
            if self.first is not None:
                self._walk(self.first)
        return self.function

    def step(self, kind: StepKind, numbers: Sequence[int] = ()) -> int:
        """One more step: its place. It belongs to the last stretch unless instructions have come between."""
        if self.first is None or (self.function is not None and self._behind != self._here()):
            self._last = self.unit.stretch()
            if self.first is None:
                self.first = self._last
            if self.function is not None:
                self._walk(self._last)
        self._last = self.unit.follow(self._last, kind, numbers)
        return self._last

    def _walk(self, stretch: int) -> None:
        function = self._written()
        function.b.symbols.declare(WALK, VOID, [PTR, PTR, PTR])
        head = function.b.offset(function.params, stretch, I64)
        function.b.call(WALK, [function.buffers, head, function.status])
        self._behind = self._here()

    def _here(self) -> tuple[object, int]:
        """The place in the function where the next instruction will be."""
        block = self.b.block
        return block, len(block.lines)

    def scatter(self, scatter: ScatterRows) -> None:
        """Put rows where integers say."""
        node, unit, positions = scatter.node, self.unit, scatter.indices
        if scatter.onto is not None:
            self.launch(scatter.onto)
        element, bits = node.output.spec.dtype, unit.module.vector_bits
        function = routine(element, positions.dtype, positions.depth, scatter.join, bits)
        unit.messages.append((OUTSIDE, node))
        unit.work_ns += unit.costs.addition_ns * typical(math.prod(sizes(node.inputs[-1])))
        self._once(function, positions.table, (*scatter.outputs, positions.layout, scatter.rows))

    def bounds(self, check: CheckBounds) -> None:
        """Note a failure if a position of a scatter is outside."""
        positions = check.indices
        self.unit.messages.append((OUTSIDE, check.scatter))
        function = bounds_routine(positions.dtype, positions.depth, self.unit.module.vector_bits)
        self._once(function, positions.table, (positions.layout,))

    def _once(self, function: IrSource, numbers: Sequence[int], layouts: Sequence[Layout]) -> None:
        """Call a kernel that is no loop nest, whose one check is the last that there is."""
        places = [number for layout in layouts for number in (layout.buffer, layout.offset)]
        self.call_kernel(function, 1, 1, [*numbers, *places, len(self.unit.messages)])

    def call_kernel(self, function: IrSource, total: int, chunk: int, numbers: Sequence[int]) -> int:
        """Call a kernel over ``total`` iterations of its outermost loop, shared by chunks if there are more.

        Returns the place of the function's address.
        """
        place = self.step(StepKind.KERNEL, [0, total, chunk, *numbers])
        self.unit.calls(place, function)
        return place + 2

    def move(self, copy: CopyMemory) -> None:
        """Copy memory."""
        spec = copy.node.output.spec
        layouts = (*copy.inputs, *copy.outputs)
        places = [n for layout in layouts for n in (layout.buffer, layout.offset * spec.dtype.size)]
        self.step(StepKind.MOVE, [*places, spec.nbytes])

    def pointer(self, value: ir.Value, layout: Layout) -> EmittedValue:
        """The address of a value that lies at ``layout``."""
        start = self.b.load(self.buffers, layout.buffer, PTR)
        return self.b.offset(start, self.param(layout.offset), Type.of_dtype(value.spec.dtype.dtype))

    def launch(self, launch: Launch) -> None:
        """Emit a nest, and call it over its outermost loop, shared between threads where that pays."""
        nest = lower(*launch, self.unit.costs)
        lanes = lanes_of(nest, self.unit.module.vector_bits)
        kernel = EmittedKernel(f"k{len(self.unit.kernels)}", nest, lanes)
        self.unit.kernels.append(kernel)
        run = run_of(nest, lanes, rows_of(nest, lanes, self.unit.module.vector_bits))
        memory = self.unit.memory(run, lanes)
        if self.unit.sized and memory.starts:
            self.make_room(memory.buffer, [self.unit.workspace_bytes], launch.node)
        partials = (0, run.total * run.partial_size - 1)
        self._run(launch, run, lanes, memory, partials)
        if run.join is not None:
            self._run(launch, run.join, lanes, memory, partials)

    def _run(self, launch: Launch, run: Run, lanes: int, memory: KernelMemory, partials: Region) -> None:
        unit = self.unit
        written = write(run, lanes, unit.module.vector_bits)
        undecided = unit.bounds.launched(launch, run, written.accesses, partials)
        unit.asks |= written.asks
        numbers = table(run, memory, len(unit.messages) + 1)
        unit.messages += written.messages(run.kernel)
        chunk = chunk_of(run, lanes, unit.threads, unit.costs)
        if run.kernel.outermost is not None:
            unit.work_ns += run.work * unit.costs.addition_ns
            unit.parallel |= chunk != run.total
        with self.inside(undecided, launch.node):
            self.call_kernel(written.source, run.total, chunk, numbers)

    def fail_if(self, failed: EmittedValue, message: str, node: Node) -> None:
        """Note a failure of ``node``."""
        messages = self.unit.messages
        messages.append((message, node))
        with self.b.if_then(failed):
            note_failure(self.b, self.status, self.b.constant(I64, len(messages)))

    @contextmanager
    def inside(self, spans: Sequence[Span], node: Node) -> Iterator[None]:
        """A block that runs if all these elements are inside of their buffers; else ``node`` has failed."""
        if not spans:
            yield
            return
        b, bounds = self.b, self.unit.bounds
        for span in spans:
            nbytes = bounds.nbytes.get(span.buffer)
            if span.buffer in bounds.blocks or nbytes is None:
                room = b.load(self.params, self.unit.room(span.buffer), I64)
            else:
                room = self.param(nbytes)
            outside = self.param(span.nbytes) > room
            if at_least(span.first, 0) is not True:
                outside = outside | (self.param(span.first) < 0)
            for count in span.counts:
                outside = outside & (self.param(count) > 0)
            self.fail_if(outside, OUT_OF_BOUNDS, node)
        with b.if_then(b.load(self.status, 0, I64).eq(0)):
            yield

    def make_room(self, buffer: int, sizes: Sequence[int], node: Node) -> None:
        """Memory of as many bytes as ``sizes`` make for a buffer; a block that is large enough stays."""
        b, place = self.b, self.unit.room(buffer)
        wanted = self.param(math.prod(sizes))
        old = b.load(self.buffers, buffer, PTR)
        missing = (b.load(self.params, place, I64) < wanted) | old.cast(I64).eq(0)
        if len(sizes) > 1:  # the product of integers may be more than an integer holds
            product = b.constant(F64, 1.0)
            for size in sizes:
                product = product * self.param(size).cast(F64)
            too_much = product > float(self.unit.memory_bytes)
        else:
            too_much = wanted > self.unit.memory_bytes
        self.fail_if(too_much, NO_MEMORY, node)
        with b.if_then(missing & ~too_much):
            b.call(b.symbols.declare("free", VOID, [PTR]), [old])
            nothing = b.constant(I64, 0).cast(PTR)
            padding = PADDING
            if self.unit.workspace is not None:
                padding = CHECKED_PADDING if kind_of(node) is CallKind.POSITIONS else 0
            new = b.call(b.symbols.declare("realloc", PTR, [PTR, I64]), [nothing, wanted + padding])
            b.store(new, self.buffers, buffer)
            b.store(wanted, self.params, place)
            self.fail_if(new.cast(I64).eq(0), NO_MEMORY, node)

    def scratch(self, nbytes: int, node: Node) -> tuple[int, int]:
        """Memory for a call that works there, what all of them use in turn: its buffer and bytes into it."""
        plan, unit = self.unit.plan, self.unit
        start = unit.reserve(nbytes)
        if not unit.sized:
            return plan.arena, start
        self.make_room(plan.workspace, [nbytes], node)
        return plan.workspace, start

    def param(self, number: int) -> EmittedValue:
        return self.b.load(self.params, self.unit.param(number), I64)


def _aligned(nbytes: int) -> int:
    return nbytes + -nbytes % ROW_ALIGNMENT


def rows_of(nest: Nest, lanes: int, vector_bits: int) -> int:
    """How many rows run side by side where each fits into one register: as many as hide latencies.

    0 for longer rows, whose kernel serves all lengths. A batch of any size has the same kernel.
    """
    if not has_short_rows(nest, min(lanes, vector_bits // 32)):
        return 0
    if not runs_side_by_side(nest):
        return 1
    extent = nest.loops[nest.num_parallel - 1].extent
    widest = max(8 * v.spec.dtype.size for step in nest.steps for v in step.node.outputs)
    registers = nest.costs.row_registers * (2 if nest.cost < nest.costs.light_kernel else 1)
    rows = max(1, registers * vector_bits // (max(widest, 32) * lanes))
    while nest.num_parallel > 1 and type(extent) is int and rows > extent:
        rows //= 2
    return rows


def chunk_of(run: Run, lanes: int, threads: int, costs: CostModel) -> int:
    """How many iterations of the outermost loop make a chunk for one thread: all where it is not shared."""
    total, outermost, work = run.total, run.kernel.outermost, run.work * costs.addition_ns
    if outermost is None or threads == 1:
        return total
    chunk = max(1, math.ceil(costs.chunk_ns * typical(total) / work)) if work else total
    chunk = largest(chunk, -(-total // (8 * threads)))
    if isinstance(outermost, For) and outermost.kind is LoopKind.LANES:
        chunk += -chunk % lanes
    return total if type(total) is int and total <= chunk else chunk


def shared_chunk(unit: Unit, total: int, work: float) -> int:
    """How many of ``total`` iterations make a chunk for one thread, where all take ``work`` additions
    together."""
    ns = work * unit.costs.addition_ns
    unit.work_ns += ns
    if unit.threads == 1:
        return total
    chunk = min(total, max(math.ceil(unit.costs.chunk_ns * total / ns), -(-total // (8 * unit.threads))))
    unit.parallel |= chunk < total
    return chunk
