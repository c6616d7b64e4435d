"""A plan becomes one module of LLVM IR: a kernel for each loop nest, and an entry that calls them in order.

    void entry(ptr buffers, ptr params, ptr status)

The text is the same for all sizes; the integers it reads from ``params`` are listed beside it. A plan with
host calls has an entry for each native part between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.graph.axes import sizes
from dualflow.graph.ir import Node
from dualflow.native import product
from dualflow.native.copying import copy_elements, fill_elements
from dualflow.native.emit import Emitter
from dualflow.native.frame import Code
from dualflow.native.gemm import gemm
from dualflow.native.gemm_kernel import Field
from dualflow.native.llvm import I8, I64, PTR, VOID, Builder, Module, Value
from dualflow.native.lower import lower
from dualflow.native.nest import Layout, Nest
from dualflow.native.plan import Call, Plan
from dualflow.native.product import Batch, Product
from dualflow.native.target import vector_bits
from dualflow.native.workspace import Workspace, workspace
from dualflow.ops.forms import Assemble

HEAVY_NS = 0.02
"""Nanoseconds of one addition's worth of work on one element, at full vector width.

Measured, for chunk sizes.
"""
FLOP_NS = 0.01
"""Nanoseconds of one multiplication and addition of a matrix product."""
CHUNK_NS = 6000.0
"""Work that is worth handing to another thread."""
LIGHT = 24.0
"""Kernels that cost less per element run over vectors of twice the register width, to hide latencies."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One emitted loop nest, for readers and reports."""

    name: str
    nest: Nest
    lanes: int


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A run of the plan: an entry of the module, or one host call."""

    entry: str | None
    host: Call | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The emitted module and what it needs at run time.

    Attributes:
        text: LLVM IR.
        parts: what to call, in order.
        params: the integers that the code reads; the first is the address of the thread pool, the second that
            of its parallel for (0 and 0 where no loop is long enough to share).
        messages: what each check number means, with the node it belongs to.
        routines: what the text calls to multiply matrices.
        arena_bytes: the size of the arena, workspaces included.
        kernels: the loop nests, for readers.
        parallel: whether some loop is long enough to share between threads.
        heavy: whether a call is long enough to let other Python threads run meanwhile.
    """

    text: str
    parts: tuple[Part, ...]
    params: tuple[int, ...]
    messages: tuple[tuple[str, Node], ...]
    routines: tuple[str, ...]
    arena_bytes: int
    kernels: tuple[Kernel, ...]
    parallel: bool
    heavy: bool


def write(plan: Plan, threads: int) -> Program:
    """The program of ``plan``, with workspaces for ``threads`` threads."""
    return _Writer(plan, threads).write()


@dataclass(slots=True)
class _Writer:
    plan: Plan
    threads: int
    module: Module = field(default_factory=lambda: Module(vector_bits()))
    code: Code = field(default_factory=lambda: Code([0, 0]))
    kernels: list[Kernel] = field(default_factory=list)
    routines: list[str] = field(default_factory=list)
    workspace_bytes: int = 0
    parallel: bool = False
    work_ns: float = 0.0

    def write(self) -> Program:
        parts: list[Part] = []
        run: list[Call] = []
        for call in self.plan.calls:
            if call.kind == "host":
                parts += self._entry(run, len(parts))
                parts.append(Part(None, call))
                run = []
            else:
                run.append(call)
        parts += self._entry(run, len(parts))
        return Program(
            text=self.module.text(),
            parts=tuple(parts),
            params=tuple(self.code.params),
            messages=tuple(self.code.messages),
            routines=tuple(dict.fromkeys(self.routines)),
            arena_bytes=self.plan.arena_bytes + self.workspace_bytes,
            kernels=tuple(self.kernels),
            parallel=self.parallel,
            heavy=self.work_ns > 20_000,
        )

    def _entry(self, calls: Sequence[Call], number: int) -> list[Part]:
        if not calls:
            return []
        name = f"entry{number}"
        function = self.module.function(name, VOID, [("buffers", PTR), ("params", PTR), ("status", PTR)])
        b = function.builder
        context = b.alloca(PTR, 3)
        for i, argument in enumerate(function.args):
            b.store(argument, context, i)
        entry = _Entry(self, b, context, *function.args[:2])
        for call in calls:
            if call.kind == "kernel":
                entry.kernel(call.node, call.inputs, call.outputs)
            elif call.kind == "assembly":
                for node, source, target in pieces(call):
                    entry.kernel(node, source, (target,))
            else:
                entry.product(call)
        b.ret()
        return [Part(name)]

    def param(self, number: int) -> int:
        self.code.params.append(number)
        return len(self.code.params) - 1

    def run(self, numbers: Sequence[int]) -> int:
        """Parameters that stand one behind another: the place of the first."""
        self.code.params.extend(numbers)
        return len(self.code.params) - len(numbers)

    def reserve(self, nbytes: int) -> None:
        """Memory behind the arena's values; whatever works there takes turns, and all begins at one place."""
        self.workspace_bytes = max(self.workspace_bytes, nbytes)

    def workspace(self, nest: Nest, lanes: int) -> Workspace:
        """The memory of one nest."""
        found = workspace(nest, lanes)
        self.reserve(found.nbytes(self.threads))
        return found.placed(self.plan.arena, self.plan.arena_bytes)


@dataclass(slots=True)
class _Entry:
    """Writes the calls of one entry."""

    writer: _Writer
    b: Builder
    context: Value
    buffers: Value
    table: Value

    def kernel(self, node: Node, inputs: Sequence[Layout], outputs: Sequence[Layout]) -> None:
        """Emit a nest, and call it over its outermost loop, shared between threads where that pays."""
        writer, b = self.writer, self.b
        nest = lower(node, inputs, outputs)
        lanes = _lanes(nest)
        space = writer.workspace(nest, lanes)
        name = f"k{len(writer.kernels)}"
        Emitter(writer.module, nest, name, lanes, space, writer.code).emit()
        writer.kernels.append(Kernel(name, nest, lanes))
        total, chunk = self._shares(nest, lanes, space)
        n, per_chunk = self._param(total), self._param(chunk)

        def alone() -> list[Value]:
            b.call(name, [self.context, b.constant(I64, 0), n, b.constant(I64, 0)])
            return []

        def shared() -> list[Value]:
            function = b.address(name)
            pool, pfor = (b.load(self.table, i, I64).cast(PTR) for i in (0, 1))
            b.call_pointer(pfor, VOID, [pool, function, self.context, n, per_chunk])
            return []

        if nest.loops:
            b.if_else(n <= per_chunk, alone, shared)
        else:
            alone()
        if nest.whole:
            b.call(f"{name}.join", [self.context, b.constant(I64, 0), n, b.constant(I64, 0)])

    def _shares(self, nest: Nest, lanes: int, space: Workspace) -> tuple[int, int]:
        """How many turns the shared loop has, and how many make a chunk for one thread."""
        if not nest.loops:
            return 1, 1
        total = space.blocks if nest.whole else nest.loops[0].extent
        elements = math.prod(loop.extent for loop in nest.loops)
        work = elements * nest.cost * HEAVY_NS
        self.writer.work_ns += work
        chunk = max(1, math.ceil(CHUNK_NS * total / work)) if work else total
        chunk = max(chunk, -(-total // (8 * self.writer.threads)))
        if nest.vector == 0 and not nest.whole:
            chunk += -chunk % lanes
        if self.writer.threads > 1 and total > chunk:
            self.writer.parallel = True
            return total, chunk
        return total, total

    def _param(self, number: int) -> Value:
        return self.b.load(self.table, self.writer.param(number), I64)

    def product(self, call: Call) -> None:
        """Call a routine for each matrix of the batch.

        A third input, to which the product is added, is copied first.
        """
        node = call.node
        x, y, *addend = call.inputs
        (out,) = call.outputs
        if addend and addend[0] != out:
            self.kernel(copy_elements(sizes(node.output), node.output.spec.dtype), addend, (out,))
        if node.attrs.get("transpose_a"):
            x = _swapped(x)
        if node.attrs.get("transpose_b"):
            y = _swapped(y)
        *batch, rows, columns = sizes(node.output)
        inner = sizes(node.inputs[0])[-2 if node.attrs.get("transpose_a") else -1]
        if 0 in (*batch, rows, columns):
            return
        self.writer.work_ns += FLOP_NS * math.prod((*batch, rows, columns, inner))
        values = (*node.inputs[:2], node.output)
        layouts = [_batched(i, sizes(v), batch) for i, v in zip((x, y, out), values, strict=True)]
        char, scale = node.output.spec.dtype.char, node.attrs.get("scale", 1.0)
        x, y, out = layouts
        products = Batch(char, (rows, columns, inner), tuple(batch), (x, y, out), scale, bool(addend))
        calls = Product(self.writer.module, self.b, self.buffers, self._param)
        self.writer.routines.append(product.routine(char))
        if product.own():
            calls.call_own(products, *self._shared_product(products))
        else:
            calls.call_blas(products)

    def _shared_product(self, products: Batch) -> tuple[Value, Value, Value, Value]:
        """What our own routine needs: its table, scratch memory, the pool, and the parallel for."""
        writer, b = self.writer, self.b
        table = products.table(writer.threads)
        writer.parallel |= writer.threads > 1 and table[Field.BLOCKS] > 1
        writer.reserve(gemm(products.char).scratch_bytes(table, writer.threads))
        arena, place = b.load(self.buffers, writer.plan.arena, PTR), self._param(writer.plan.arena_bytes)
        pool, pfor = (b.load(self.table, i, PTR) for i in (0, 1))
        return b.offset(self.table, writer.run(table), I64), b.offset(arena, place, I8), pool, pfor


def pieces(call: Call) -> list[tuple[Node, tuple[Layout, ...], Layout]]:
    """The copies that put an output together: a node, where its source lies, and where it goes."""
    form = call.node.op.form
    assert isinstance(form, Assemble)
    values = (call.node.output, *call.node.inputs)
    layouts = (*call.outputs, *call.inputs)
    arrays = [
        as_strided(np.zeros(1, np.int8), sizes(v), layout.strides)
        for v, layout in zip(values, layouts, strict=True)
    ]
    starts = [a.__array_interface__["data"][0] for a in arrays]
    owners = {id(_owner(a)): i for i, a in enumerate(arrays)}

    def layout_of(view: Any) -> Layout:
        i = owners[id(_owner(view))]
        offset = view.__array_interface__["data"][0] - starts[i] if view.size else 0
        return Layout(layouts[i].buffer, layouts[i].offset + offset, view.strides)

    dtype = call.node.output.spec.dtype
    found: list[tuple[Node, tuple[Layout, ...], Layout]] = []
    for target, source in form.pieces(*arrays, **call.node.attrs):
        if isinstance(source, np.ndarray):
            spread = _spread(layout_of(source), source.shape, target.shape)
            found.append((copy_elements(target.shape, dtype), (spread,), layout_of(target)))
        else:
            found.append((fill_elements(target.shape, dtype, source), (), layout_of(target)))
    return found


def _owner(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _swapped(layout: Layout) -> Layout:
    return Layout(
        layout.buffer, layout.offset, (*layout.strides[:-2], layout.strides[-1], layout.strides[-2])
    )


def _spread(layout: Layout, shape: Sequence[int], target: Sequence[int]) -> Layout:
    """``layout`` of elements of ``shape`` broadcast to ``target``: a stride of 0 repeats them."""
    strides = [0 if size == 1 else stride for size, stride in zip(shape, layout.strides, strict=True)]
    return Layout(layout.buffer, layout.offset, (0,) * (len(target) - len(shape)) + tuple(strides))


def _batched(layout: Layout, shape: Sequence[int], batch: Sequence[int]) -> Layout:
    """``layout`` of matrices with one stride for each axis of ``batch``, to which its own broadcast."""
    spread = _spread(layout, (*shape[:-2], 2, 2), (*batch, 2, 2))
    return Layout(layout.buffer, layout.offset, spread.strides)


def _lanes(nest: Nest) -> int:
    """Lanes of the vector loop: a register of 4-byte elements, and twice that for light work."""
    register = vector_bits() // 32
    return register * 2 if nest.cost < LIGHT else register
