"""An entry of the module: the function that calls kernels and products in the order of the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.kernel_table import KernelMemory, table
from dualflow.backends.llvm.scatter import bounds_routine, routine
from dualflow.backends.llvm.text import F64, I8, I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.backends.llvm.written import Written, write
from dualflow.core.extent import Atom, typical
from dualflow.core.size_functions import largest
from dualflow.graph import ir
from dualflow.graph.axes import sizes
from dualflow.graph.ir import Node
from dualflow.schedule.assembly import pieces
from dualflow.schedule.call_reports import OutOfMemory
from dualflow.schedule.copying import copy_elements, fill_elements
from dualflow.schedule.loop_program import For, LoopKind, Run, ScratchRow
from dualflow.schedule.lower import lower
from dualflow.schedule.nest import Layout, Nest
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import Plan, PlannedCall
from dualflow.schedule.runs import run_of
from dualflow.schedule.scattering import OUTSIDE, depth_of, join_of, table_of

ELEMENT_NS = 0.02
"""Nanoseconds of one addition's worth of work on one element, at full vector width.

Measured, for chunk sizes.
"""
CHUNK_NS = 6000.0
"""Work that is worth handing to another thread."""
PARTIAL_BYTES = 8
"""What a partial result of a whole reduction has in memory, whatever its dtype."""
ROW_ALIGNMENT = 64
PADDING = 64
"""Bytes behind each block of memory of a size that the run tells, for lanes that are off."""
NO_MEMORY = OutOfMemory("there is no memory for a tensor whose size the run has told. Compute it in parts.")
LIGHT = 24.0
"""Kernels that cost less per element run over vectors of twice the register width, to hide latencies."""


class EmittedKernel(NamedTuple):
    """One emitted loop nest, for readers and reports."""

    name: str
    nest: Nest
    lanes: int


@dataclass(slots=True)
class Code:
    """What the emitted functions need at run time.

    Integers for the parameter table, and checks that may fail.
    """

    params: list[int] = field(default_factory=list)
    messages: list[tuple[str | CheckValues, Node]] = field(default_factory=list)


@dataclass(slots=True)
class Unit:
    """A module under construction, and what its entries share."""

    plan: Plan
    threads: int
    memory_bytes: int
    module: LlvmModule
    code: Code = field(default_factory=lambda: Code([0, 0]))
    kernels: list[EmittedKernel] = field(default_factory=list)
    written: dict[Written, str] = field(default_factory=dict)
    routines: list[str] = field(default_factory=list)
    workspace_bytes: int = 0
    parallel: bool = False
    work_ns: float = 0.0
    sized: bool = False
    symbols: dict[Atom, int] = field(default_factory=dict)
    given: dict[tuple[int, int], int] = field(default_factory=dict)
    rooms: dict[int, int] = field(default_factory=dict)

    def param(self, number: int) -> int:
        """A new run-time parameter: its place."""
        self.code.params.append(number)
        return len(self.code.params) - 1

    def run(self, numbers: Sequence[int]) -> int:
        """Parameters that stand one behind another: the place of the first."""
        self.code.params.extend(numbers)
        return len(self.code.params) - len(numbers)

    def symbol_place(self, atom: Atom) -> int:
        """The place of the number that the run gives a symbol."""
        if atom not in self.symbols:
            self.symbols[atom] = self.param(0)
        return self.symbols[atom]

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

    def reserve(self, nbytes: int) -> None:
        """Memory behind the arena's values; whatever works there takes turns, and all begins at one place."""
        self.workspace_bytes = nbytes if self.sized else max(self.workspace_bytes, nbytes)

    def symbol(self, written: Written, name: str) -> str:
        """The function of a kernel in the module, where it is called ``name`` unless it has a name there."""
        if written not in self.written:
            self.module.include(written.fragment, name)
            self.written[written] = name
        return self.written[written]

    def memory(self, run: Run, lanes: int) -> KernelMemory:
        """A place for the kernel's own memory, behind the arena's values."""
        start, buffer = self.plan.arena_bytes, self.plan.arena
        if self.sized:  # a block of its own, whose size may be told by the run
            start, buffer = 0, self.plan.workspace
        if run.partials:
            each = run.total * run.each * PARTIAL_BYTES
            self.reserve(each * len(run.partials))
            return KernelMemory(buffer, tuple([start + i * each for i in range(len(run.partials))]))
        sizes = [
            _aligned((math.prod(run.numbers[n.place] for n in s.length) + lanes) * s.dtype.size)
            for s in run.kernel.body
            if isinstance(s, ScratchRow)
        ]
        self.reserve(sum(sizes) * self.threads)
        starts = tuple([start + sum(sizes[:i]) for i in range(len(sizes))])
        return KernelMemory(buffer, starts, sum(sizes))


@dataclass(slots=True)
class Entry:
    """Writes the calls of one entry.

    Attributes:
        unit: the module.
        b: fills the entry.
        context: what kernels are given: the addresses of the three below.
        buffers: the addresses of the buffers,
        params: the integers, and
        status: where a check that failed is noted.
    """

    unit: Unit
    b: Builder
    context: EmittedValue
    buffers: EmittedValue
    params: EmittedValue
    status: EmittedValue

    @classmethod
    def begin(cls, unit: Unit, name: str) -> Entry:
        """A new function."""
        function = unit.module.function(name, VOID, [("buffers", PTR), ("params", PTR), ("status", PTR)])
        b = function.builder
        context = b.alloca(PTR, 3)
        for i, argument in enumerate(function.args):
            b.store(argument, context, i)
        return cls(unit, b, context, *function.args)

    def call(self, call: PlannedCall) -> None:
        """Write one call that is no choice or loop, and no matrix product."""
        if call.kind is CallKind.KERNEL:
            self.kernel(call.node, call.inputs, call.outputs)
        elif call.kind is CallKind.ASSEMBLY:
            for node, source, target in pieces(call):
                self.kernel(node, source, (target,))
        elif call.kind is CallKind.SCATTER:
            self.scatter(call)
        elif call.kind is CallKind.BOUNDS:
            self.bounds(call)
        else:
            assert call.kind is CallKind.MOVE
            self.move(call)

    def scatter(self, call: PlannedCall) -> None:
        """Put rows where integers say, onto a copy of the first input or zeros."""
        node, b, unit = call.node, self.b, self.unit
        *onto, indices, rows = node.inputs
        (out,) = call.outputs
        shape, element = sizes(node.output), node.output.spec.dtype
        if not onto:
            self.kernel(fill_elements(shape, element, 0), (), (out,))
        elif call.inputs[0] != out:
            self.kernel(copy_elements(shape, element), call.inputs[:1], (out,))
        lanes = unit.module.vector_bits // 8 // element.size
        depth = depth_of(node)
        name = routine(unit.module, element, indices.spec.dtype, depth, join_of(node), lanes)
        unit.code.messages.append((OUTSIDE, node))
        unit.work_ns += ELEMENT_NS * typical(math.prod(sizes(rows)))
        layouts = (out, *call.inputs[-2:])
        pointers = [self.pointer(v, a) for v, a in zip((node.output, indices, rows), layouts, strict=True)]
        numbers = b.offset(self.params, unit.run(table_of(node)), I64)
        b.call(name, [numbers, *pointers, self.status, b.constant(I64, len(unit.code.messages))])

    def bounds(self, call: PlannedCall) -> None:
        """Note a failure if a position of a scatter is outside."""
        scatter, b, unit = call.node.attrs["scatter"], self.b, self.unit
        (indices,) = call.node.inputs
        unit.code.messages.append((OUTSIDE, scatter))
        name = bounds_routine(unit.module, indices.spec.dtype, depth_of(scatter))
        numbers = b.offset(self.params, unit.run(table_of(scatter)), I64)
        pointer = self.pointer(indices, call.inputs[0])
        b.call(name, [numbers, pointer, self.status, b.constant(I64, len(unit.code.messages))])

    def move(self, call: PlannedCall) -> None:
        """Copy memory."""
        b, spec = self.b, call.node.output.spec
        source, target = (self.bytes_at(layout, spec.dtype.size) for layout in (*call.inputs, *call.outputs))
        copy = b.symbols.declare("memcpy", PTR, [PTR, PTR, I64])
        b.call(copy, [target, source, self.param(spec.nbytes)])

    def bytes_at(self, layout: Layout, itemsize: int) -> EmittedValue:
        """The address of what lies at ``layout``, whatever its dtype."""
        start = self.b.load(self.buffers, layout.buffer, PTR)
        return self.b.offset(start, self.param(layout.offset * itemsize), I8)

    def pointer(self, value: ir.Value, layout: Layout) -> EmittedValue:
        """The address of a value that lies at ``layout``."""
        start = self.b.load(self.buffers, layout.buffer, PTR)
        return self.b.offset(start, self.param(layout.offset), Type.of_dtype(value.spec.dtype.dtype))

    def kernel(self, node: Node, inputs: Sequence[Layout], outputs: Sequence[Layout]) -> None:
        """Emit a nest, and call it over its outermost loop, shared between threads where that pays."""
        nest = lower(node, inputs, outputs)
        lanes = lanes_of(nest, self.unit.module.vector_bits)
        kernel = EmittedKernel(f"k{len(self.unit.kernels)}", nest, lanes)
        self.unit.kernels.append(kernel)
        run = run_of(nest, lanes)
        memory = self.unit.memory(run, lanes)
        if self.unit.sized and memory.starts:
            self.make_room(memory.buffer, [self.unit.workspace_bytes], node)
        self._run(kernel.name, run, lanes, memory)
        if run.join is not None:
            self._run(f"{kernel.name}.join", run.join, lanes, memory)

    def _run(self, name: str, run: Run, lanes: int, memory: KernelMemory) -> None:
        unit, b = self.unit, self.b
        written = write(run, lanes, unit.module.vector_bits)
        name = unit.symbol(written, name)
        numbers = table(run, memory, len(unit.code.messages) + 1)
        unit.code.messages += written.messages(run.kernel)
        b.store(b.offset(self.params, unit.run(numbers), I64), self.context, 1)
        chunk = self._chunk(run, lanes)
        n, per_chunk = self.param(run.total), self.param(chunk)

        def alone() -> list[EmittedValue]:
            b.call(name, [self.context, b.constant(I64, 0), n, b.constant(I64, 0)])
            return []

        def shared() -> list[EmittedValue]:
            function = b.address(name)
            pool, pfor = (b.load(self.params, i, I64).cast(PTR) for i in (0, 1))
            b.call_pointer(pfor, VOID, [pool, function, self.context, n, per_chunk])
            return []

        if run.kernel.outermost is None:
            alone()
        else:
            b.if_else(n <= per_chunk, alone, shared)

    def _chunk(self, run: Run, lanes: int) -> int:
        """How many turns of the outermost loop make a chunk for one thread."""
        total, outermost, threads = run.total, run.kernel.outermost, self.unit.threads
        if outermost is None:
            return total
        work = run.work * ELEMENT_NS
        self.unit.work_ns += work
        chunk = max(1, math.ceil(CHUNK_NS * typical(total) / work)) if work else total
        chunk = largest(chunk, -(-total // (8 * threads)))
        if isinstance(outermost, For) and outermost.kind is LoopKind.LANES:
            chunk += -chunk % lanes
        if threads == 1 or (type(total) is int and total <= chunk):
            return total
        self.unit.parallel = True
        return chunk

    def fail_if(self, failed: EmittedValue, message: str, node: Node) -> None:
        """Note a failure of ``node``."""
        messages = self.unit.code.messages
        messages.append((message, node))
        with self.b.if_then(failed):
            note_failure(self.b, self.status, self.b.constant(I64, len(messages)))

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
            new = b.call(b.symbols.declare("realloc", PTR, [PTR, I64]), [nothing, wanted + PADDING])
            b.store(new, self.buffers, buffer)
            b.store(wanted, self.params, place)
            self.fail_if(new.cast(I64).eq(0), NO_MEMORY, node)

    def scratch(self, nbytes: int, node: Node) -> EmittedValue:
        """Memory for a call that works there: what all of them use in turn."""
        plan, unit = self.unit.plan, self.unit
        unit.reserve(nbytes)
        if not unit.sized:
            return self.b.offset(self.b.load(self.buffers, plan.arena, PTR), self.param(plan.arena_bytes), I8)
        self.make_room(plan.workspace, [nbytes], node)
        return self.b.load(self.buffers, plan.workspace, PTR)

    def param(self, number: int) -> EmittedValue:
        return self.b.load(self.params, self.unit.param(number), I64)


def _aligned(nbytes: int) -> int:
    return nbytes + -nbytes % ROW_ALIGNMENT


def lanes_of(nest: Nest, vector_bits: int) -> int:
    """Lanes of the vector loop: a register of 4-byte elements, and twice that for light work."""
    register = vector_bits // 32
    return register * 2 if nest.cost < LIGHT else register
