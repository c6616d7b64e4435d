"""A plan as source: kernels, functions of branches and loops, and a Python function that calls them.

The Python function takes an array for each input of the graph, and returns the outputs. The graph's constants
are global names of flat arrays. Products are ``np.matmul``. A branch or loop is a compiled function
(``function_source.py``), unless its iterations are so expensive that threads and BLAS gain more than Python
costs: then it is an ``if`` or ``while`` of Python around compiled kernels. The function also calls ``fail``
(raises the error of a check), ``mark`` (records the loop that runs), ``rows_within`` (the number of rows that
fit into memory), and a function for each node without a kernel.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dualflow.backends.numba.call_source import CallWriter, ProgramCheck, ProgramContext
from dualflow.backends.numba.capabilities import CAPABILITIES
from dualflow.backends.numba.compilability import is_shared, least_shared, unavailable_reason
from dualflow.backends.numba.function_source import FunctionSource, function_source
from dualflow.backends.numba.line_comments import CommentedLines
from dualflow.backends.numba.numpy_kernels import symbolic_attrs
from dualflow.backends.numba.parameters import dtype_name
from dualflow.backends.numba.sizes import SourceSizes
from dualflow.backends.numba.source_lines import type_name
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.scalars import bodies
from dualflow.graph.symbolic_size_ops import REQUIRE_SIZE, binds_or_checks_size, computes_sizes
from dualflow.graph.views import sizes
from dualflow.ops.op_kinds import Loop
from dualflow.schedule.call_reports import OUT_OF_BOUNDS
from dualflow.schedule.element_ranges import ElementRange
from dualflow.schedule.host_fallback import with_host_fallbacks
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import For, LoopKind
from dualflow.schedule.memory_bounds import MemoryBounds
from dualflow.schedule.nest import Layout
from dualflow.schedule.plan import plan
from dualflow.schedule.planned import Plan
from dualflow.schedule.program_statements import (
    ChooseBranch,
    LaunchNest,
    Multiply,
    RunLoop,
    Statement,
    ValueLayout,
    statements,
    walk_program,
)
from dualflow.schedule.size_text import size_message, size_names
from dualflow.sizes.size_functions import largest
from dualflow.sizes.size_scalars import SizeScalar
from dualflow.sizes.symbolic_sizes import SymInt, UndecidedSize

CHUNKS = 8
"""The number of chunks of a kernel that threads share, for any number of threads."""
CHUNK_MULTIPLE = 64
"""Chunks of a loop with lanes are multiples of this number of iterations."""


def program(graph: Graph, options: CompileOptions) -> ProgramSource:
    """The program of ``graph``, whose passes have run. Its caller has compared guards of sizes.

    Raises:
        UndecidedSize: a size depends on data.
    """
    if computes_sizes(graph):
        raise UndecidedSize("the size of a tensor depends on data")
    return ProgramSource(
        plan(with_host_fallbacks(graph), options.capabilities & CAPABILITIES, costs=options.cost_model),
        list(_input_names(graph)),
    )


class ProgramSource(CallWriter):
    """The Python function of a plan, and the functions that it calls.

    Attributes:
        plan: the plan.
        kernels_called: the names of the kernels that the Python function calls.
        parallel_kernels: the names of those whose range threads share.
        functions: the compiled branches and loops, in the order of their calls.
        checks: the checks, by the number with which the program calls ``fail``, from 1 on.
        host_calls: the statements that run as their op's NumPy kernel: ``host0``, ``host1``, ...
        marked_loops: the outermost loops, in the order of ``mark(0)``, ``mark(1)``, ...
        fallbacks: the reasons why branches and loops are not compiled.
    """

    def __init__(self, plan: Plan, names: Sequence[str | None]) -> None:
        all_statements = statements(plan)
        size_checks = [s.node for s in all_statements if s.node.op is REQUIRE_SIZE]
        program = tuple([s for s in all_statements if not binds_or_checks_size(s.node)])
        bounds, buffers = MemoryBounds(plan, program), list(_buffer_names(plan, names))
        sizes = SourceSizes(size_names(buffers, plan.argument_sizes))
        super().__init__(ProgramContext(plan, bounds, buffers, sizes, bounds.check(program)))
        self.plan = plan
        self.kernels_called: set[str] = set()
        self.parallel_kernels: set[str] = set()
        self.functions: list[FunctionSource] = []
        self.checks: list[ProgramCheck] = []
        self.host_calls: list[Statement] = []
        self.marked_loops: list[Node] = []
        self.fallbacks: list[str] = []
        self._in_marked_loop = False
        self._arena: dict[DType, str] = {}
        self._of_any_shape: set[str] = set()  # inputs that only host calls read, as they are
        self.statements(program)
        self._size_checks = self._checked_sizes(size_checks)

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs, which are the function's parameters."""
        return self.context.names[: self.plan.inputs]

    @property
    def constants(self) -> dict[str, np.ndarray[Any, Any]]:
        """The constants by their names."""
        names = self.context.names[self.plan.inputs : self.plan.first_output]
        return {n: c.reshape(-1) for n, c in zip(names, self.plan.constants, strict=True)}

    def text(self, name: str, head: Sequence[str] = ()) -> str:
        """The source of the function ``name``; its body begins with the lines ``head``."""
        plan, names, inputs = self.plan, self.context.names, self.inputs
        allocated = list(
            zip(names[plan.first_output : plan.arena], (*plan.outputs, *plan.temporaries), strict=True)
        )
        results = names[plan.first_output : plan.first_temporary]
        lines: list[str] = []
        flat = [name for name in inputs if name not in self._of_any_shape]
        if flat:
            lines.append(f"    {', '.join(flat)} = {', '.join(f'{n}.reshape(-1)' for n in flat)}")
        lines += [f"    {n} = np.empty({self._count(s)}, {dtype_name(s.dtype)})" for n, s in allocated]
        if self._arena:
            arena = self.size(plan.arena_bytes + -plan.arena_bytes % 8)
            lines.append(f"    arena = np.empty({arena}, u8)")
        lines += [f"    {n} = arena.view({dtype_name(d)})" for d, n in self._arena.items()]
        lines += ["    status = np.zeros(1, i64)", *self.lines.with_comments()]
        shaped = [
            f"{n}.reshape({self._shape(tuple([d for d in s.shape if d is not None]))})"
            if s.shape.is_static
            else n
            for n, s in zip(results, plan.outputs, strict=True)
        ]
        lines += [f"    return [{', '.join(shaped)}]", ""]
        before = [f"def {name}({', '.join(inputs)}):", *head, *self._argument_sizes("\n".join(lines))]
        return "\n".join([*before, *lines])

    # Operands

    def buffer(self, buffer: int, dtype: DType) -> str:
        if buffer == self.plan.arena:
            return self._arena.setdefault(
                dtype, f"arena_{dtype.name if dtype.narrow else dtype_name(dtype).removeprefix('np.')}"
            )
        return self.context.names[buffer]

    def size(self, size: int) -> str:
        return str(size) if type(size) is int else self.context.sizes.factor(size)

    def _shape(self, sizes: tuple[int, ...]) -> str:
        """The source of a tuple of sizes."""
        return self.context.sizes.tuple(sizes)

    def _count(self, spec: TensorSpec) -> str:
        """The number of elements of a buffer; 0 if a host call determines the size."""
        return self.size(math.prod(0 if d is None else d for d in spec.shape))

    def literal(self, number: Any) -> str:
        return self._scalar_of_sizes(number) if isinstance(number, SizeScalar) else scalar(number)

    def _scalar_of_sizes(self, number: SizeScalar) -> str:
        operation, dtype, operands = number
        if operation is None and isinstance(operands[0], float):
            return scalar(dtype.dtype.type(operands[0]))
        if operation is None:
            return f"{type_name(dtype)}({self.size(operands[0])})"
        return f"np.{operation.__name__}({', '.join(map(self._scalar_of_sizes, operands))})"

    def rows_within(self, nbytes: int) -> str:
        return f"rows_within({self.size(nbytes)})"

    def iterations_of(self, loop: int) -> str:
        return f"iteration{loop}"

    def _array(self, layout: Layout, value: Value) -> str:
        """The source of a value as an array of its shape and strides."""
        self.routines.add("array")
        buffer = self.buffer(layout.buffer, value.spec.dtype)
        begin, shape, strides = self.size(layout.offset), sizes(value), layout.strides
        return f"array({buffer}, {begin}, {self._shape(shape)}, {self._shape(strides)})"

    # Sizes

    def _argument_sizes(self, body: str) -> list[str]:
        """The lines that read the sizes of arguments, define what ``body`` needs of them, and check them."""
        axes = self.plan.argument_sizes.values()
        reads = [
            f"    {name} = {self.inputs[place]}.shape[{axis}]"
            for name, ((place, axis), *_) in zip(self.context.sizes.names.values(), axes, strict=True)
        ]
        needed = self.context.sizes.definitions_for("\n".join([*self._size_checks, body]))
        defined = [f"    {name} = {text}" for name, text in needed.items()]
        return [*reads, *defined, *self._size_checks]

    def _checked_sizes(self, required: Sequence[Node]) -> list[str]:
        """The lines that check the sizes of arguments: those that must be equal, and undecided accesses."""
        lines, self.lines = self.lines, CommentedLines()
        text = self.context.sizes.text
        for node in required:
            x, y = (text(node.attrs[name]) for name in ("x", "y"))
            condition = f"{x} == {y}" + (f" or {x} == 1" if node.attrs["repeats"] else "")
            self.require(f"({condition})", ProgramCheck(node, size_message(node)))
        for span, node in dict.fromkeys(self.context.span_checks):
            self.require(f"({self._is_within(span)})", ProgramCheck(node, OUT_OF_BOUNDS))
        checks, self.lines = self.lines, lines
        return checks.with_comments()

    def _is_within(self, span: ElementRange) -> str:
        """The condition that there are no elements, or all of them are in their buffer."""
        nbytes, text = self.context.bounds.nbytes[span.buffer], self.context.sizes.text
        assert nbytes is not None, "all sizes are computed before the program runs"
        inside = f"{text(span.nbytes)} <= {text(nbytes)} and {text(span.first)} >= 0"
        return " or ".join([inside, *(f"{text(count)} < 1" for count in span.counts)])

    # Calls

    def launch(self, name: str, launch: KernelLaunch, arguments: str, nodes: Sequence[Node]) -> None:
        """Write a call of a kernel, serial or split between threads, which may depend on the trip count."""
        self.kernels_called.add(name)
        total = self.size(launch.total)
        serial_call = f"{name}(0, {total}, {arguments})"
        parallel_call = f"{name}_parallel({total}, {self.size(_chunk(launch))}, {arguments})"
        loop = next(filter(_has_loop, nodes), None)
        marked = loop is not None and not self._in_marked_loop
        if loop is not None and marked:
            self._mark(loop)
        has_dynamic_size = type(launch.total) is not int
        if has_dynamic_size or is_shared(launch):
            self.parallel_kernels.add(name)
        if has_dynamic_size:
            with self.lines.block(f"if {total} >= {least_shared(launch)}:"):
                self.lines.add(parallel_call, nodes)
            with self.lines.block("else:"):
                self.lines.add(serial_call, nodes)
        else:
            self.lines.add(parallel_call if is_shared(launch) else serial_call, nodes)
        if marked:
            self.lines.add("mark(-1)")

    def check_status(self, checks: Sequence[ProgramCheck], nodes: Sequence[Node]) -> None:
        if not checks:
            return
        first = len(self.checks)
        self.checks += checks
        with self.lines.block("if status[0]:"):
            self.lines.add(f"fail({first} + status[0])" if first else "fail(status[0])")

    def require(self, condition: str, check: ProgramCheck, reads: Sequence[ValueLayout] = ()) -> None:
        self.checks.append(check)
        arguments = [str(len(self.checks)), *(self._array(layout, value) for layout, value in reads)]
        with self.lines.block(f"if not {condition}:"):
            self.lines.add(f"fail({', '.join(arguments)})", (check.node,))

    def launch_as_numpy(self, launch: LaunchNest) -> None:
        self._host(launch, becomes_buffer=False)

    def multiply(self, product: Multiply) -> None:
        node, (out,) = product.node, product.outputs
        left, right = (
            self._array(layout, v) + (".mT" if node.attrs.get(f"transpose_{side}") else "")
            for layout, v, side in zip(product.inputs, node.inputs, "ab", strict=False)
        )
        target, scale = self._array(out, node.output), product.scale
        product_text = f"np.matmul({left}, {right})"
        if scale != 1.0:
            product_text += f" * {dtype_name(node.output.spec.dtype)}({scale!r})"
        if product.accumulate:
            line = f"{target}[...] += {product_text}"
        elif scale != 1.0:
            line = f"{target}[...] = {product_text}"
        else:
            line = f"{product_text[:-1]}, out={target})"
        self.lines.add(line, (node,))

    def host(self, statement: Statement) -> None:
        self._host(statement, becomes_buffer=True)

    def _host(self, call: Statement, *, becomes_buffer: bool) -> None:
        """Write a call of the op's NumPy kernel; with ``becomes_buffer`` its results replace buffers."""
        number, names = len(self.host_calls), self.context.names
        self.host_calls.append(call)
        self._of_any_shape |= {
            names[layout.buffer]
            for layout, v in zip(call.inputs, call.node.inputs, strict=True)
            if None in v.spec.shape
        }
        arguments = [
            names[layout.buffer] if None in v.spec.shape else self._array(layout, v)
            for layout, v in zip(call.inputs, call.node.inputs, strict=True)
        ]
        arguments += [f"{name}={self._attribute(value)}" for name, value in symbolic_attrs(call.node).items()]
        results = [f"result{i}" for i in range(len(call.outputs))]
        left = f"[{', '.join(results)}] = " if results else ""
        self.lines.add(f"{left}host{number}({', '.join(arguments)})", (call.node,))
        for name, layout, value in zip(results, call.outputs, call.node.outputs, strict=True):
            if not becomes_buffer or layout.buffer < self.plan.inputs or layout.buffer >= self.plan.arena:
                self.lines.add(f"{self._array(layout, value)}[...] = {name}")
            else:
                flat = name if None in value.spec.shape else f"{name}.reshape(-1)"
                self.lines.add(f"{names[layout.buffer]} = {flat}")

    def _attribute(self, value: Any) -> str:
        """The source of an attribute of an op, which may contain symbolic sizes."""
        if isinstance(value, tuple):
            return f"({', '.join(map(self._attribute, value))}{',' * (len(value) == 1)})"
        return self.size(value) if isinstance(value, int | SymInt) else repr(value)

    # Conditionals and loops

    def end_iteration(self, loop: RunLoop, iteration: str) -> None:
        """Write nothing: Python handles signals itself."""

    def control(self, statement: ChooseBranch | RunLoop) -> None:
        """Write a branch or loop: a call of a compiled function, or Python's own statement as fallback."""
        fallback = unavailable_reason(self.context, statement)
        if fallback is not None:
            self.fallbacks.append(fallback)
            if isinstance(statement, ChooseBranch):
                super().control(statement)
                return
        outermost = not self._in_marked_loop and any(
            isinstance(s, RunLoop) for s in walk_program((statement,))
        )
        if outermost:
            self._mark(statement.node)
            self._in_marked_loop = True
        function = self._call(statement) if fallback is None else None
        if function is None:
            super().control(statement)
        if outermost:
            self._in_marked_loop = False
            self.lines.add("mark(-1)")
        if function is not None:
            self._check_saved(function)
            self.check_status(function.checks, ())

    def _call(self, statement: ChooseBranch | RunLoop) -> FunctionSource:
        """Write a call of a branch or loop as a compiled function; returns the function."""
        stem = "cond" if isinstance(statement, ChooseBranch) else "loop"
        function = function_source(self, statement, f"{stem}{len(self.functions)}")
        self.functions.append(function)
        for saved in function.saved:
            spec = saved.value.spec
            self.lines.add(f"{saved.name} = np.empty({self._count(spec)}, {dtype_name(spec.dtype)})")
        left = f"{', '.join(function.results)} = " if function.results else ""
        self.lines.add(f"{left}{function.name}({', '.join(function.arguments)})", (statement.node,))
        return function

    def _check_saved(self, function: FunctionSource) -> None:
        """Write the raising of a failed check's error, with the saved values."""
        for number in dict.fromkeys(saved.check for saved in function.saved):
            saved = [
                f"{k.name}.reshape({self._shape(sizes(k.value))})"
                for k in function.saved
                if k.check == number
            ]
            with self.lines.block(f"if status[0] == {number}:"):
                self.lines.add(f"fail({', '.join([str(len(self.checks) + number), *saved])})")

    def _mark(self, node: Node) -> None:
        self.lines.add(f"mark({len(self.marked_loops)})")
        self.marked_loops.append(node)


def _has_loop(node: Node) -> bool:
    """Whether a node is a loop, or a branch with a loop inside."""
    return isinstance(node.op.kind, Loop) or any(_has_loop(n) for g in bodies(node) for n in g.nodes)


def _chunk(launch: KernelLaunch) -> int:
    """The iterations of a chunk: a multiple of the vector length if the outermost loop has lanes."""
    chunk = largest((launch.total + CHUNKS - 1) // CHUNKS, 1)
    lanes = any(isinstance(s, For) and s.kind is LoopKind.LANES for s in launch.kernel.body)
    return (chunk + CHUNK_MULTIPLE - 1) // CHUNK_MULTIPLE * CHUNK_MULTIPLE if lanes else chunk


def _input_names(graph: Graph) -> Iterator[str | None]:
    """The name of each input, if it has one."""
    yield from (v.spec.name for v in graph.arguments)
    yield from (getattr(c.source, "name", None) for c in graph.captures)


def _buffer_names(plan: Plan, inputs: Sequence[str | None]) -> Iterator[str]:
    """A name for each buffer of the plan; inputs have their own names."""
    taken: set[str] = set()
    for i, name in enumerate(inputs):
        plain = re.sub(r"\W", "_", (name or "").removesuffix(":0"))
        unique = plain if is_free(plain) and plain not in taken else f"in{i}"
        taken.add(unique)
        yield unique
    yield from (f"const{i}" for i in range(len(plan.constants)))
    yield from (f"out{i}" for i in range(len(plan.outputs)))
    yield from (f"temp{i}" for i in range(len(plan.temporaries)))
    yield "arena"
    yield from (f"row{i}" for i in range(plan.row_buffers))


def is_free(name: str) -> bool:
    """Whether the source does not use a name itself."""
    return name.isidentifier() and not keyword.iskeyword(name) and not _RESERVED.fullmatch(name)


_RESERVED = re.compile(
    r"np|u|b1|inf|nan|[iuf]\d+|k\d+(_parallel)?|status|fail|mark|rows_within|array|doubled|product|plus"
    r"|signalled|scatter_\w+|arena\w*|(in|const|out|temp|part|result|host|iteration|row|saved|most|[trxcnb])\d+"
    r"|(loop|cond)\d+(_\d+)*"
    r"|\w+_size\d+|quotient|remainder|normalized_index|inferred_size|broadcast_(size|stride)"
    r"|range|len|max|min|zero|one|checked|updated|run|base64|njit|prange|ir|types|cgutils|intrinsic|FAILURES"
)


def scalar(number: Any) -> str:
    """A NumPy scalar as source.

    >>> import numpy as np
    >>> scalar(np.float32(0.1)), scalar(np.int64(-3)), scalar(np.float64("inf"))
    ('f32(0.1)', 'i64(-3)', 'f64(inf)')
    """
    value = number.item()
    shown = repr(value) if number.dtype.kind != "f" else str(number)
    return f"{type_name(as_dtype(number.dtype))}({shown})"
