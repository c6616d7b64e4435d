"""An entry of a program: calls kernels and products in the order of its statements.

The calls are steps in the parameter table. An entry with conditionals, loops or dynamic sizes is a function,
which is created when its builder is first used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.kernel_table import KernelMemory, table
from dualflow.backends.llvm.kernel_texts import KernelText
from dualflow.backends.llvm.launches import EmittedKernel, LaunchEmitter
from dualflow.backends.llvm.parameter_table import Parameter, ParameterTable
from dualflow.backends.llvm.runtime import threads
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.scratch_memory import ScratchAllocator
from dualflow.backends.llvm.steps import (
    FUNCTION,
    RUN_STEPS,
    TIMED_STEPS,
    IntervalKind,
    StepKind,
    StepRecord,
)
from dualflow.backends.llvm.text import F64, I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple, dataclass, field
from dualflow.core.shape import MAX_ELEMENTS
from dualflow.graph import ir
from dualflow.graph.cost_model import CostModel
from dualflow.graph.ir import Node
from dualflow.graph.views import sizes
from dualflow.schedule.access_bounds import IndexRange
from dualflow.schedule.call_reports import OUT_OF_BOUNDS, OutOfMemory
from dualflow.schedule.element_ranges import ElementRange, at_least
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import OUT_OF_RANGE, For, LoopKind
from dualflow.schedule.memory_bounds import MemoryBounds
from dualflow.schedule.nest import Layout
from dualflow.schedule.operands import CallKind, kind_of
from dualflow.schedule.planned import Plan
from dualflow.schedule.program_statements import CheckBounds, CopyMemory, LaunchNest, ScatterRows
from dualflow.sizes.size_functions import largest
from dualflow.sizes.symbolic_sizes import typical

if TYPE_CHECKING:
    from dualflow.backends.llvm.interval_clock import IntervalClock

PADDING = 64
"""Bytes of padding after each buffer of dynamic size, for lanes that are masked off."""
CHECKED_PADDING = 8
"""Bytes of padding in the checked mode after a list of positions, which may be followed by one more."""
TOO_LARGE = OutOfMemory("a size is larger than memory can hold. Compute in parts.")
_NOTHING_AROUND: Final = nullcontext()
"""The context of a block that needs no code around it, as that of most statements."""
ALLOCATION_FAILED = OutOfMemory("memory for a tensor of dynamic size can't be allocated. Compute in parts.")


@dataclass(slots=True, eq=False)
class Unit:
    """The state of a program under construction, which its entries share.

    Attributes:
        plan: the plan of the program.
        threads: the number of threads that share a parallel loop.
        memory_bytes: the largest number of bytes of a buffer of dynamic size.
        module: the module with the entries that are functions.
        memory_bounds: the sizes of buffers, for bounds checks of accesses.
        compile_in_background: called with each emitted source.
        launches: emits the kernels of launches.
        scratch: the scratch memory of statements.
        table: the parameter table of the entries.
        node: the node of the statement that is being emitted.
        parent: the conditional or loop that contains it.
        messages: the checks that may fail, with their nodes.
        range_checks: the accesses that a call whose sizes follow from its arguments compares with the
            buffers.
        addresses: the external symbols, besides functions of C.
        kernels: the emitted kernels.
        routines: the indices of the addresses of routines for products and window sums, for reports.
        steps: the records of the steps, for reports.
        work_ns: an estimate of the time of a call, in nanoseconds.
        parallel: whether a loop is parallel.
        polls_signals: whether a kernel polls for signals.
        waits: whether a call waits for other workers.
        records_collectives: whether an effect log has the results of all collectives that precede a failure.
        memory_params: the indices of parameters that are ``memory_bytes`` divided by a number, with it.
        depends_on_memory: whether other parameters depend on ``memory_bytes``.
        clock: times the steps; None in a program without a clock.
    """

    plan: Plan
    threads: int
    memory_bytes: int
    module: LlvmModule
    memory_bounds: MemoryBounds
    compile_in_background: Callable[[IrSource], None]
    launches: LaunchEmitter
    scratch: ScratchAllocator
    table: ParameterTable = field(default_factory=ParameterTable)
    node: Node | None = None
    parent: Node | None = None
    messages: list[tuple[str | CheckValues, Node]] = field(default_factory=list)
    range_checks: list[tuple[ElementRange, Node]] = field(default_factory=list)
    addresses: dict[str, int] = field(default_factory=dict)
    kernels: list[EmittedKernel] = field(default_factory=list)
    routines: list[int] = field(default_factory=list)
    steps: list[StepRecord] = field(default_factory=list)
    work_ns: float = 0.0
    parallel: bool = False
    polls_signals: bool = False
    waits: bool = False
    records_collectives: bool = True
    memory_params: dict[int, int] = field(default_factory=dict)
    depends_on_memory: bool = False
    clock: IntervalClock | None = None

    @property
    def costs(self) -> CostModel:
        """The cost model of the processor."""
        return self.plan.costs

    def memory_param(self, divisor: int) -> int:
        """The index of a new parameter: ``memory_bytes`` divided by ``divisor``, which may be symbolic."""
        index = self.table.append(self.memory_bytes // divisor)
        if type(divisor) is int:
            self.memory_params[index] = divisor
        else:
            self.depends_on_memory = True
        return index

    def set_callee(self, step: int, function: IrSource) -> None:
        """Set the callee of the step at index ``step``."""
        self.set_address(step + FUNCTION, function)

    def set_address(self, index: int, function: IrSource) -> None:
        """Let the parameter ``index`` be the address of a function."""
        self.table.functions[index] = function
        self.compile_in_background(function)

    def use_threads(self) -> None:
        """Record that a loop is parallel; the code of the thread pool is compiled in the background."""
        if not self.parallel:
            self.parallel = True
            self.compile_in_background(threads.pool_source())

    def append_step(self, before: int, kind: StepKind, values: Sequence[Parameter]) -> int:
        """Append a step after the head or step at index ``before``; returns its index."""
        assert self.node is not None, "a statement is being emitted"
        index = self.table.append_step(before, kind, values)
        self.steps.append(StepRecord(index, kind, self.node, self.parent))
        return index


class EntryFunction(NamedTuple):
    """The LLVM function of an entry: its builder and its arguments.

    Attributes:
        builder: writes its body.
        buffers: its argument with the addresses of the buffers.
        params: its argument with the parameter table.
        status: its argument with the status word, to which failed checks are written.
    """

    builder: Builder
    buffers: EmittedValue
    params: EmittedValue
    status: EmittedValue


class Entry:
    """Emits the calls of one entry.

    Attributes:
        unit: the program.
        name: the name of the function, if there is one.
        function: the function; None while all calls are steps of one list.
        first_list: the index of the head of the first step list.
    """

    def __init__(self, unit: Unit, name: str) -> None:
        self.unit = unit
        self.name = name
        self.function: EntryFunction | None = None
        self.first_list: int | None = None
        self._last_step = 0
        self._list_end: tuple[object, int] | None = None

    @property
    def builder(self) -> Builder:
        """The builder of the entry's function."""
        return self._function().builder

    @property
    def buffers(self) -> EmittedValue:
        return self._function().buffers

    @property
    def params(self) -> EmittedValue:
        return self._function().params

    @property
    def status(self) -> EmittedValue:
        return self._function().status

    def read_from(self, buffers: EmittedValue) -> None:
        """Read the addresses of buffers from another table from here on."""
        self.function = self._function()._replace(buffers=buffers)

    def _function(self) -> EntryFunction:
        """The function; a new one begins with a call for the steps so far."""
        if self.function is None:
            arguments = [("buffers", PTR), ("params", PTR), ("status", PTR)]
            new = self.unit.module.function(self.name, VOID, arguments)
            self.function = EntryFunction(new.builder, *new.args)
            if self.first_list is not None:
                self._run_steps(self.first_list)
        return self.function

    @contextmanager
    def part(self, pointers: Sequence[EmittedValue]) -> Iterator[Sequence[EmittedValue]]:
        """Emit the block as a function, and its call; returns the arguments of the function for ``pointers``.

        The time in which LLVM compiles a function grows faster than the function.
        """
        outer, module = self._function(), self.unit.module
        arguments = [(name, PTR) for name in ("buffers", "params", "status")]
        arguments += [(f"pointer{i}", PTR) for i in range(len(pointers))]
        name = f"{self.name}_part{len(module.functions)}"
        new = module.function(name, VOID, arguments, "noinline", internal=True)
        outer.builder.call(name, [outer.buffers, outer.params, outer.status, *pointers])
        self.function = EntryFunction(new.builder, *new.args[:3])
        yield new.args[3:]
        new.builder.ret()
        self.function = outer

    def step(self, kind: StepKind, numbers: Sequence[Parameter] = ()) -> int:
        """Append a step, which is an interval of the clock; returns its index."""
        with self.interval(IntervalKind.STEP, kind) if kind in TIMED_STEPS else _NOTHING_AROUND:
            return self.append(kind, numbers)

    def interval(self, kind: IntervalKind, step: StepKind | None = None) -> AbstractContextManager[None]:
        """A context manager that emits an interval of the clock, if there is one; tasks have none."""
        clock = None if self.unit.scratch.task_start is not None else self.unit.clock
        return _NOTHING_AROUND if clock is None else clock.interval(self, kind, step)

    def append(self, kind: StepKind, numbers: Sequence[Parameter]) -> int:
        """Append a step; returns its index. After other instructions it begins a new step list."""
        if self.first_list is None or (self.function is not None and self._list_end != self._position()):
            self._last_step = self.unit.table.begin_steps()
            if self.first_list is None:
                self.first_list = self._last_step
            if self.function is not None:
                self._run_steps(self._last_step)
        self._last_step = self.unit.append_step(self._last_step, kind, numbers)
        return self._last_step

    def _run_steps(self, first: int) -> None:
        function = self._function()
        function.builder.symbols.declare(RUN_STEPS, VOID, [PTR, PTR, PTR])
        head = function.builder.offset(function.params, first, I64)
        function.builder.call(RUN_STEPS, [function.buffers, head, function.status])
        self._list_end = self._position()

    def _position(self) -> tuple[object, int]:
        """The insertion point of the next instruction: the block and its number of lines."""
        block = self.builder.block
        return block, len(block.lines)

    def scatter(self, scatter: ScatterRows) -> None:
        """Emit the step of a scatter."""
        node, unit, positions = scatter.node, self.unit, scatter.indices
        if scatter.onto is not None:
            self.launch(scatter.onto)
        element, bits = node.output.spec.dtype, unit.module.vector_bits
        function: IrSource = imported("dualflow.backends.llvm.scatter_kernels").routine(
            element, positions.dtype, positions.depth, scatter.join, bits
        )
        unit.messages.append((OUT_OF_RANGE, node))
        unit.work_ns += unit.costs.addition_ns * typical(math.prod(sizes(node.inputs[-1])))
        self._call_once(function, positions.table, (*scatter.outputs, positions.layout, scatter.rows))

    def check_bounds(self, check: CheckBounds) -> None:
        """Emit the bounds check of a scatter's indices."""
        positions = check.indices
        self.unit.messages.append((OUT_OF_RANGE, check.scatter))
        function: IrSource = imported("dualflow.backends.llvm.scatter_kernels").bounds_routine(
            positions.dtype, positions.depth, self.unit.module.vector_bits
        )
        self._call_once(function, positions.table, (positions.layout,))

    def _call_once(self, function: IrSource, parameters: Sequence[int], layouts: Sequence[Layout]) -> None:
        """Emit the call of a kernel that is not a loop nest; its check is the last message."""
        buffers = [number for layout in layouts for number in (layout.buffer, layout.offset)]
        self.call_kernel(function, 1, 1, [*parameters, *buffers, len(self.unit.messages)])

    def call_kernel(self, function: IrSource, total: int, chunk: int, parameters: Sequence[Parameter]) -> int:
        """Emit the call of a kernel over ``total`` iterations; parallel if there are several chunks.

        Returns the index of the function's address.
        """
        step = self.step(StepKind.KERNEL, [0, total, chunk, *parameters])
        self.unit.set_callee(step, function)
        return step + FUNCTION

    def move(self, copy: CopyMemory) -> None:
        """Emit the step of a copy."""
        spec = copy.node.output.spec
        layouts = (*copy.inputs, *copy.outputs)
        operands = [n for layout in layouts for n in (layout.buffer, layout.offset * spec.dtype.size)]
        self.step(StepKind.MOVE, [*operands, spec.nbytes])

    def pointer(self, value: ir.Value, layout: Layout) -> EmittedValue:
        """The address of a value with a layout."""
        start = self.builder.load(self.buffers, layout.buffer, PTR)
        return self.builder.offset(start, self.param(layout.offset), Type.of_dtype(value.spec.dtype.dtype))

    def launch(self, statement: LaunchNest) -> None:
        """Emit a nest and its call, parallel over the outermost loop if that is faster."""
        unit = self.unit
        _, lanes, kernels = unit.launches.emit(statement)
        unit.kernels.append(EmittedKernel(f"k{len(unit.kernels)}", statement, lanes, unit.launches))
        launch, _ = kernels[0]
        memory = unit.scratch.reserve_for_kernel(launch, lanes, unit.threads)
        partials = (0, launch.total * launch.partial_size - 1)
        allocates = unit.plan.has_dynamic_sizes and memory.starts
        with self._if_allocated(unit.scratch.nbytes, statement.node) if allocates else _NOTHING_AROUND:
            for launch, text in kernels:
                self._run(statement, launch, text, lanes, memory, partials)

    def _run(
        self,
        statement: LaunchNest,
        launch: KernelLaunch,
        kernel: KernelText,
        lanes: int,
        memory: KernelMemory,
        partials: IndexRange,
    ) -> None:
        unit = self.unit
        undecided = unit.memory_bounds.launched(statement, launch, kernel.accesses, partials)
        if unit.plan.argument_sizes and unit.parent is None:  # the bodies of branches and loops may not run
            unit.range_checks += [(elements, statement.node) for elements in undecided]
            undecided = []
        unit.polls_signals |= kernel.polls_signals
        parameters = table(launch, memory, len(unit.messages) + 1)
        unit.messages += kernel.messages(launch.kernel)
        chunk = chunk_of(launch, lanes, unit.threads, unit.costs)
        if launch.kernel.outermost is not None:
            unit.work_ns += launch.work * unit.costs.addition_ns
            if chunk != launch.total:
                unit.use_threads()
        with self.guarded(undecided, statement.node):
            self.call_kernel(kernel.source, launch.total, chunk, parameters)

    def fail_if(self, failed: EmittedValue, message: str, node: Node) -> None:
        """Emit a check that writes a failure of ``node`` if ``failed``."""
        messages = self.unit.messages
        messages.append((message, node))
        with self.builder.if_then(failed):
            note_failure(self.builder, self.status, self.builder.constant(I64, len(messages)))

    def check_size(self, shape: Sequence[int], node: Node) -> None:
        """Emit the check that a tensor of ``shape`` has no more elements than memory can hold."""
        elements = float_product(self.builder, map(self.param, shape))
        self.fail_if(elements > float(MAX_ELEMENTS), TOO_LARGE, node)

    def guarded(self, ranges: Sequence[ElementRange], node: Node) -> AbstractContextManager[None]:
        """Emit a block that runs if all ranges are inside of their buffers; else ``node`` fails."""
        return self._guarded(ranges, node) if ranges else _NOTHING_AROUND

    @contextmanager
    def _guarded(self, ranges: Sequence[ElementRange], node: Node) -> Iterator[None]:
        b, bounds = self.builder, self.unit.memory_bounds
        for elements in ranges:
            nbytes = bounds.nbytes.get(elements.buffer)
            if elements.buffer in bounds.blocks or nbytes is None:
                available = b.load(self.params, self.unit.table.block_size_param(elements.buffer), I64)
            else:
                available = self.param(nbytes)
            outside = self.param(elements.nbytes) > available
            if at_least(elements.first, 0) is not True:
                outside = outside | (self.param(elements.first) < 0)
            for count in elements.counts:
                outside = outside & (self.param(count) > 0)
            self.fail_if(outside, OUT_OF_BOUNDS, node)
        with b.if_then(b.load(self.status, 0, I64).eq(0)):
            yield

    def allocate(self, buffer: int, sizes: Sequence[int], node: Node) -> None:
        """Emit the allocation of a buffer of ``prod(sizes)`` bytes, unless it is large enough."""
        b, size_param = self.builder, self.unit.table.block_size_param(buffer)
        nbytes = self.param(math.prod(sizes))
        old = b.load(self.buffers, buffer, PTR)
        too_small = (b.load(self.params, size_param, I64) < nbytes) | old.cast(I64).eq(0)
        if len(sizes) > 1:  # the product of integers may overflow
            too_much = float_product(b, map(self.param, sizes)) > self.memory_limit.cast(F64)
        else:
            too_much = nbytes > self.memory_limit
        self.fail_if(too_much, ALLOCATION_FAILED, node)
        with b.if_then(too_small & ~too_much):
            b.call(b.symbols.declare("free", VOID, [PTR]), [old])
            null = b.constant(I64, 0).cast(PTR)
            padding = PADDING
            if self.unit.scratch.checked is not None:
                padding = CHECKED_PADDING if kind_of(node) is CallKind.POSITIONS else 0
            new = b.call(b.symbols.declare("realloc", PTR, [PTR, I64]), [null, nbytes + padding])
            b.store(new, self.buffers, buffer)
            b.store(nbytes, self.params, size_param)
            self.fail_if(new.cast(I64).eq(0), ALLOCATION_FAILED, node)

    @contextmanager
    def scratch(self, nbytes: int, node: Node) -> Iterator[tuple[int, int]]:
        """Emit a block that has scratch memory for a call: its buffer and byte offset.

        If the memory can't be allocated, the block doesn't run, and ``node`` fails.
        """
        scratch = self.unit.scratch
        start = scratch.reserve(nbytes)
        allocates = self.unit.plan.has_dynamic_sizes
        with self._if_allocated(nbytes, node) if allocates else _NOTHING_AROUND:
            yield scratch.buffer, start

    @contextmanager
    def _if_allocated(self, nbytes: int, node: Node) -> Iterator[None]:
        """Emit the allocation of ``nbytes`` of scratch memory, and a block that runs if it succeeds."""
        self.allocate(self.unit.plan.workspace, [nbytes], node)
        with self.builder.if_then(self.builder.load(self.status, 0, I64).eq(0)):
            yield

    def param(self, value: int) -> EmittedValue:
        return self.builder.load(self.params, self.unit.table.append(value), I64)

    @property
    def memory_limit(self) -> EmittedValue:
        """The bytes that a call may allocate: a parameter, since the code is shared by processes."""
        return self.builder.load(self.params, self.unit.memory_param(1), I64)


def float_product(b: Builder, sizes: Iterable[EmittedValue]) -> EmittedValue:
    """Emit the product of sizes as a float64, which does not overflow."""
    product = b.constant(F64, 1.0)
    for size in sizes:
        product = product * size.cast(F64)
    return product


def chunk_of(launch: KernelLaunch, lanes: int, threads: int, costs: CostModel) -> int:
    """The number of iterations of the outermost loop in a chunk: all if the loop is serial."""
    total, outermost = launch.total, launch.kernel.outermost
    if outermost is None:
        return total
    chunk = chunk_size(total, launch.work * costs.addition_ns, threads, costs)
    if isinstance(outermost, For) and outermost.kind is LoopKind.LANES:
        chunk += -chunk % lanes
    return total if type(total) is int and total <= chunk else chunk


def chunk_size(total: int, work_ns: float, threads: int, costs: CostModel) -> int:
    """The number of iterations that a thread claims at a time, of a loop that takes ``work_ns`` in all.

    It is ``total`` if one thread runs the loop.
    """
    if threads == 1:
        return total
    chunk = max(1, math.ceil(costs.chunk_ns * typical(total) / work_ns)) if work_ns else total
    chunk = largest(chunk, -(-total // (8 * threads)))
    return total if type(total) is int and total <= chunk else chunk
