"""A plan as a Python function: kernels, products and copies in order, choices and loops as Python's own.

The function takes an array for each input of the graph and for each constant, and returns the outputs. What
it calls beside kernels is ``array`` (a strided view), ``row`` (a stretch of a stack), ``scatter_add`` and
``scatter_put``, ``fail`` (raises the error of a check), ``mark`` (is told of the loop that runs), and a
function for each node that has no kernel.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dualflow.backends.llvm.text import Type
from dualflow.backends.numba.kernel_source import KernelSource, source
from dualflow.backends.numba.values import Lines, type_name
from dualflow.core.dtypes import DType
from dualflow.core.spec import TensorSpec
from dualflow.graph.axes import sizes
from dualflow.graph.control_spec import loop_of
from dualflow.graph.ir import Graph, Node
from dualflow.ops.forms import Choice, Loop, Scatter
from dualflow.schedule.assembly import pieces
from dualflow.schedule.copying import copy_elements, fill_elements
from dualflow.schedule.kernels import run_of
from dualflow.schedule.loop_program import For, LoopKind, Run
from dualflow.schedule.lower import lower
from dualflow.schedule.nest import Layout, contiguous_strides
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import Plan, PlannedBody, PlannedCall, StackRow, Turns
from dualflow.schedule.scattering import OUTSIDE, depth_of, table_of

SHARED_WORK = 5e6
"""Additions' worth of work from which on a kernel's range is shared between threads."""
LANES = 16
"""So many turns of a lane loop the blocks of long sums are made for."""
FIRST_ROWS = 64
"""For so many turns a stack that grows has room at first; then for twice as many each time."""
SHARES = 8
"""So many shares for each kernel that is shared, however many threads there are."""
ALIGNED = 64
"""Shares of a loop with lanes are multiples of so many turns."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramCheck:
    """What has failed where the program calls ``fail`` with a number: a message; a check node has none."""

    node: Node
    message: str | None = None


@dataclass(slots=True)
class ProgramSource:
    """A program under construction, and then its parts.

    Attributes:
        names: of the buffers.
        kernels: each different kernel's source, by the name that the program calls it by.
        checks: what the numbers mean with which the program calls ``fail``, from 1 on.
        hosts: the calls that run as their op's own kernel, in the order of ``host0``, ``host1``, ...
        runs: the kernels in the order of their calls, with the nodes that each computes there.
        shared: the kernels that share their range between threads somewhere.
        marks: the outermost loops, in the order of ``mark(0)``, ``mark(1)``, ...
    """

    plan: Plan
    names: list[str]
    lines: Lines = field(default_factory=Lines)
    kernels: dict[str, KernelSource] = field(default_factory=dict)
    checks: list[ProgramCheck] = field(default_factory=list)
    hosts: list[PlannedCall] = field(default_factory=list)
    runs: list[tuple[str, tuple[Node, ...]]] = field(default_factory=list)
    shared: set[str] = field(default_factory=set)
    marks: list[Node] = field(default_factory=list)
    _inside: int = 0
    _known: dict[str, str] = field(default_factory=dict)
    _arena: dict[DType, str] = field(default_factory=dict)

    @property
    def parameters(self) -> list[str]:
        """The names of the inputs and constants, which the function takes."""
        return self.names[: self.plan.first_output]

    def text(self, name: str) -> str:
        """The program as a function of that name."""
        plan, names = self.plan, self.names
        given = self.parameters
        made = list(
            zip(names[plan.first_output : plan.arena], (*plan.outputs, *plan.temporaries), strict=True)
        )
        results = names[plan.first_output : plan.first_temporary]
        lines = [f"def {name}({', '.join(given)}):"]
        if given:
            lines.append(f"    {', '.join(given)} = {', '.join(f'{n}.reshape(-1)' for n in given)}")
        lines += [f"    {n} = np.empty({_count(s)}, {_name(s.dtype)})" for n, s in made]
        if self._arena:
            lines.append(f"    arena = np.empty({plan.arena_bytes + -plan.arena_bytes % 8}, u8)")
        lines += [f"    {n} = arena.view({_name(d)})" for d, n in self._arena.items()]
        lines += ["    status = np.zeros(1, i64)", *self.lines.text]
        shaped = [
            n if None in s.shape else f"{n}.reshape({tuple(s.shape)})"
            for n, s in zip(results, plan.outputs, strict=True)
        ]
        return "\n".join([*lines, f"    return [{', '.join(shaped)}]", ""])

    def listing(self, name: str) -> str:
        """The kernels and the program, as a person reads them."""
        kernels = [kernel.function(k) for k, kernel in self.kernels.items()]
        return "\n\n".join([*kernels, self.text(name)])

    # Calls

    def calls(self, calls: Sequence[PlannedCall]) -> None:
        for call in calls:
            if call.turns is not None:
                self._loop(call, call.turns)
            elif isinstance(call.node.op.form, Choice) and call.kind is CallKind.CONTROL:
                self._choice(call)
            else:
                _CALLS[call.kind](self, call)

    def kernel(self, node: Node, inputs: Sequence[Layout], outputs: Sequence[Layout]) -> None:
        """A loop nest, in one range or shared between threads."""
        if not renders(node):
            self._host(PlannedCall(node, tuple(inputs), tuple(outputs)), whole=False)
            return
        nest = lower(node, inputs, outputs)
        run, nodes = run_of(nest, LANES), tuple([step.node for step in nest.steps])
        partials = []
        for i, dtype in enumerate(run.partials):
            partials.append(f"part{i}")
            self.lines.add(f"part{i} = np.empty({run.total}, {_name(dtype)})")
        self._run(run, partials, nodes)
        if run.join is not None:
            self._run(run.join, partials, ())

    def _run(self, run: Run, partials: Sequence[str], nodes: tuple[Node, ...]) -> None:
        if not run.total:
            return
        made = source(run.kernel)
        body = made.function("kernel")
        name = self._known.setdefault(body, f"k{len(self._known)}")
        self.kernels.setdefault(name, made)
        if nodes:
            self.runs.append((name, nodes))
        given = [
            *(self._buffer(a.buffer, a.dtype) + (f"[{a.offset}:]" if a.offset else "") for a in run.buffers),
            *partials,
            *(scalar(x) for x in run.scalars),
            *map(str, run.numbers),
            "status",
        ]
        shared = run.work >= SHARED_WORK and run.total > 1
        chunk = _chunk(run)
        if shared:
            self.shared.add(name)
        head = f"{name}_parallel({run.total}, {chunk}" if shared else f"{name}(0, {run.total}"
        loop = next((n for n in nodes if isinstance(n.op.form, Loop)), None)
        if loop is not None and not self._inside:
            self._mark(loop)
        self.lines.add(f"{head}, {', '.join(given)})")
        if loop is not None and not self._inside:
            self.lines.add("mark(-1)")
        if made.checks:
            first = len(self.checks)
            self.checks += [ProgramCheck(at, message) for message, at in made.checks]
            with self.lines.block("if status[0]:"):
                self.lines.add(f"fail({first} + status[0])" if first else "fail(status[0])")

    def _kernel_call(self, call: PlannedCall) -> None:
        self.kernel(call.node, call.inputs, call.outputs)

    def _assembly(self, call: PlannedCall) -> None:
        for node, inputs, target in pieces(call):
            self.kernel(node, inputs, (target,))

    def _product(self, call: PlannedCall) -> None:
        """A matrix product; a third input, to which it is added, is copied first."""
        node, (out,) = call.node, call.outputs
        a, b, *addend = call.inputs
        shape = sizes(node.output)
        if addend and addend[0] != out:
            self.kernel(copy_elements(shape, node.output.spec.dtype), addend, (out,))
        left, right = (
            self._array(layout, sizes(v), v.spec.dtype)
            + (".mT" if node.attrs.get(f"transpose_{side}") else "")
            for layout, v, side in zip((a, b), node.inputs, "ab", strict=False)
        )
        target = self._array(out, shape, node.output.spec.dtype)
        scale = node.attrs.get("scale", 1.0)
        product = f"np.matmul({left}, {right})" + (
            "" if scale == 1.0 else f" * {_name(node.output.spec.dtype)}({scale!r})"
        )
        if addend:
            self.lines.add(f"{target}[...] += {product}")
        elif scale == 1.0:
            self.lines.add(f"np.matmul({left}, {right}, out={target})")
        else:
            self.lines.add(f"{target}[...] = {product}")

    def _scatter(self, call: PlannedCall) -> None:
        """Rows put where integers say, onto a copy of the first input or zeros."""
        node, (out,) = call.node, call.outputs
        form = node.op.form
        assert isinstance(form, Scatter)
        onto = node.inputs[:-2]
        shape, dtype = sizes(node.output), node.output.spec.dtype
        if not onto:
            self.kernel(fill_elements(shape, dtype, 0), (), (out,))
        elif call.inputs[0] != out:
            self.kernel(copy_elements(shape, dtype), call.inputs[:1], (out,))
        turns, count, length, distance, *_ = table_of(node)
        positions = self._positions(node, call.inputs[-2])
        if not self._bounded(call):
            self._require_inside(node, positions)
        target = self._whole(out, (turns, distance // max(length, 1), length), dtype)
        rows = self._whole(call.inputs[-1], (turns, count, length), dtype)
        function = "scatter_add" if form.add else "scatter_put"
        self.lines.add(f"{function}({target}, {positions}, {rows}, {_limits(node)})")

    def _bounds(self, call: PlannedCall) -> None:
        """The positions of a scatter, before anything is written."""
        scatter = call.node.attrs["scatter"]
        self._require_inside(scatter, self._positions(scatter, call.inputs[0]))

    def _bounded(self, call: PlannedCall) -> bool:
        """Whether a call before this one looks at the scatter's positions."""
        return any(
            c.kind is CallKind.BOUNDS and c.node.attrs["scatter"] is call.node for c in self.plan.calls
        )

    def _positions(self, node: Node, layout: Layout) -> str:
        _, count, *_ = table_of(node)
        return self._whole(layout, (count, depth_of(node)), node.inputs[-2].spec.dtype)

    def _require_inside(self, node: Node, positions: str) -> None:
        self.checks.append(ProgramCheck(node, OUTSIDE))
        with self.lines.block(f"if not scatter_inside({positions}, {_limits(node)}):"):
            self.lines.add(f"fail({len(self.checks)})")

    def _move(self, call: PlannedCall) -> None:
        """Elements that lie one behind another, copied as they are."""
        spec = call.node.output.spec
        shape = (math.prod(sizes(call.node.output)),)
        source, target = (self._whole(x, shape, spec.dtype) for x in (*call.inputs, *call.outputs))
        self.lines.add(f"{target}[...] = {source}")

    def _check(self, call: PlannedCall) -> None:
        """A check in its own right: its error is made of what it reads."""
        self.checks.append(ProgramCheck(call.node))
        with self.lines.block(f"if not {self._scalar(call.inputs[0], call.node.inputs[0].spec.dtype)}:"):
            reads = zip(call.inputs[1:], call.node.inputs[1:], strict=True)
            arrays = [self._array(layout, sizes(v), v.spec.dtype) for layout, v in reads]
            self.lines.add(f"fail({', '.join([str(len(self.checks)), *arrays])})")

    def _host(self, call: PlannedCall, *, whole: bool = True) -> None:
        """The op's own kernel, on views of the buffers; ``whole`` results become the buffers themselves."""
        number = len(self.hosts)
        self.hosts.append(call)
        given = [
            self.names[layout.buffer] if None in v.spec.shape else self._array(layout, sizes(v), v.spec.dtype)
            for layout, v in zip(call.inputs, call.node.inputs, strict=True)
        ]
        made = [f"made{i}" for i in range(len(call.outputs))]
        left = f"[{', '.join(made)}] = " if made else ""
        self.lines.add(f"{left}host{number}({', '.join(given)})  # {call.node.op.name}")
        for name, layout, value in zip(made, call.outputs, call.node.outputs, strict=True):
            if not whole or layout.buffer < self.plan.inputs or layout.buffer >= self.plan.arena:
                self.lines.add(f"{self._array(layout, sizes(value), value.spec.dtype)}[...] = {name}")
            else:
                flat = name if None in value.spec.shape else f"{name}.reshape(-1)"
                self.lines.add(f"{self.names[layout.buffer]} = {flat}")

    # Choices and loops

    def _choice(self, call: PlannedCall) -> None:
        index = self._scalar(call.inputs[0], call.node.inputs[0].spec.dtype)
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
        """A loop of Python; while the outermost one runs, the program says which it is."""
        outermost = not self._inside
        if outermost:
            self._mark(call.node)
        self._inside += 1
        self._turns(call, turns)
        self._inside -= 1
        if outermost:
            self.lines.add("mark(-1)")

    def _mark(self, node: Node) -> None:
        self.lines.add(f"mark({len(self.marks)})")
        self.marks.append(node)

    def _turns(self, call: PlannedCall, turns: Turns) -> None:
        self.calls(turns.start)
        loop, turn = loop_of(call.node), f"turn{turns.counter}"
        limit = f"turn{turns.counted}" if turns.counted is not None else loop.length
        for row in turns.grown:
            self.lines.add(f"{self.names[row.stack.buffer]} = np.empty(0, u8)")
        self.lines.add(f"{turn} = 0")
        with self.lines.block("while True:" if limit is None else f"while {turn} < {limit}:"):
            if loop.condition is not None:
                self._tested(call.blocks[0], loop.condition.outputs[0].spec.dtype)
            backwards = loop.reverse and limit is not None
            for row in turns.rows:
                self._point(row, row in turns.grown, turn, f"{limit} - 1 - {turn}" if backwards else turn)
            self.calls(call.blocks[-1].calls)
            self.lines.add(f"{turn} += 1")

    def _tested(self, test: PlannedBody, dtype: DType) -> None:
        self.calls(test.calls)
        with self.lines.block(f"if not {self._scalar(test.results[0], dtype)}:"):
            self.lines.add("break")

    def _point(self, row: StackRow, grown: bool, turn: str, index: str) -> None:
        """The row of this turn: a stretch of its stack."""
        stack = self.names[row.stack.buffer]
        count = row.nbytes // row.itemsize
        if grown:
            with self.lines.block(f"if {turn} * {row.nbytes} == len({stack}):"):
                more = f"np.empty(max({row.nbytes * FIRST_ROWS}, len({stack})), u8)"
                self.lines.add(f"{stack} = np.concatenate(({stack}, {more}))")
        start = f"({index}) * {count}" + (f" + {row.stack.offset}" if row.stack.offset else "")
        self.lines.add(f"{self.names[row.slot]} = row({stack}, {start}, {count}, {row.itemsize})")

    # Operands

    def _buffer(self, buffer: int, dtype: DType) -> str:
        """A buffer as a flat array of ``dtype``."""
        if buffer == self.plan.arena:
            return self._arena.setdefault(dtype, f"arena_{_name(dtype)}")
        name = self.names[buffer]
        return f"{name}.view({_name(dtype)})" if buffer > self.plan.arena else name

    def _array(self, layout: Layout, shape: Sequence[int], dtype: DType) -> str:
        buffer = self._buffer(layout.buffer, dtype)
        return f"array({buffer}, {layout.offset}, {tuple(shape)}, {layout.strides})"

    def _whole(self, layout: Layout, shape: Sequence[int], dtype: DType) -> str:
        """Elements that lie one behind another, under another shape."""
        return self._array(replace(layout, strides=contiguous_strides(shape)), shape, dtype)

    def _scalar(self, layout: Layout, dtype: DType) -> str:
        return f"{self._buffer(layout.buffer, dtype)}[{layout.offset}]"


def _chunk(run: Run) -> int:
    """Turns of one share: whole vectors of them where the outermost loop has lanes."""
    chunk = -(-run.total // SHARES)
    lanes = any(isinstance(s, For) and s.kind is LoopKind.LANES for s in run.kernel.body)
    return chunk + -chunk % ALIGNED if lanes else chunk


def renders(node: Node) -> bool:
    """Whether a fused node can be a kernel: Numba computes with no float16."""
    body: Graph = node.attrs["body"]
    values = (*body.inputs, *(v for n in body.nodes for v in n.outputs))
    return all(v.spec.dtype.char != "e" for v in values)


def program(plan: Plan, names: Sequence[str]) -> ProgramSource:
    """``plan`` as source; ``names`` are those of its inputs."""
    made = ProgramSource(plan, list(_buffer_names(plan, names)))
    made.calls(plan.calls)
    return made


def _buffer_names(plan: Plan, names: Sequence[str]) -> Iterator[str]:
    """A name for each buffer of the plan, those of the inputs by their own."""
    taken: set[str] = set()
    for i, name in enumerate(names):
        plain = re.sub(r"\W", "_", name.removesuffix(":0"))
        good = plain.isidentifier() and not keyword.iskeyword(plain) and not _RESERVED.fullmatch(plain)
        found = plain if good and plain not in taken else f"in{i}"
        taken.add(found)
        yield found
    yield from (f"const{i}" for i in range(len(plan.constants)))
    yield from (f"out{i}" for i in range(len(plan.outputs)))
    yield from (f"temp{i}" for i in range(len(plan.temporaries)))
    yield "arena"
    yield from (f"row{i}" for i in range(plan.slots))


_RESERVED = re.compile(
    r"np|u|b1|inf|nan|[iuf]\d+|k\d+(_parallel)?|status|fail|mark|array|row|scatter_\w+|reshape|arena\w*"
    r"|(in|const|out|temp|part|made|host|turn|row|t|r|x|c|n)\d+|range|len|max|min"
)


def _limits(node: Node) -> str:
    """The sizes of the axes that a scatter's positions name."""
    depth = depth_of(node)
    return f"np.array({table_of(node)[4 : 4 + depth]}, i64)"


def _count(spec: TensorSpec) -> int:
    """The elements of a buffer; 0 where a host call is to tell the size."""
    return math.prod(d or 0 for d in spec.shape)


def _name(dtype: DType) -> str:
    if dtype.char not in "?bBhHiIlLqQfd":
        return f"np.{dtype.name}"
    return "b1" if dtype.kind == "b" else type_name(Type.of_dtype(dtype.dtype))


def scalar(number: Any) -> str:
    """A NumPy scalar as the source writes it.

    >>> import numpy as np
    >>> scalar(np.float32(0.1)), scalar(np.int64(-3)), scalar(np.float64("inf"))
    ('f32(0.1)', 'i64(-3)', 'f64(inf)')
    """
    value = number.item()
    shown = repr(value) if number.dtype.kind != "f" else str(number)
    return f"{type_name(Type.of_dtype(number.dtype))}({shown})"


_CALLS = {
    CallKind.KERNEL: ProgramSource._kernel_call,
    CallKind.ASSEMBLY: ProgramSource._assembly,
    CallKind.PRODUCT: ProgramSource._product,
    CallKind.SCATTER: ProgramSource._scatter,
    CallKind.BOUNDS: ProgramSource._bounds,
    CallKind.MOVE: ProgramSource._move,
    CallKind.CHECK: ProgramSource._check,
    CallKind.HOST: ProgramSource._host,
}
