"""A plan as C source: kernels, and the function that calls them in the order of the plan's statements.

The function takes a pointer for each input, the sizes of arguments that are known only at run time, a pointer
for each output, and a workspace. It returns 0, or the number of the check that failed. It allocates nothing:
intermediates and scratch memory are in the workspace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dualflow.backends.c import routines
from dualflow.backends.c.capabilities import CAPABILITIES
from dualflow.backends.c.kernel_source import CKernel, source
from dualflow.backends.c.names import argument_names, function_name, kernel_name, user_lines
from dualflow.backends.c.op_routines import op_routine
from dualflow.backends.c.sizes import Sizes
from dualflow.backends.c.source_lines import CLines, CValue, c_type, literal, type_name
from dualflow.backends.c.support import CSupport
from dualflow.backends.c.unsupported import require_exportable, unsupported_error
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.records import NamedTuple
from dualflow.core.shape import MAX_ELEMENTS
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.symbolic_size_ops import BIND_SIZE, REQUIRE_SIZE
from dualflow.graph.views import sizes
from dualflow.schedule.access_bounds import IndexRange, access_bounds
from dualflow.schedule.call_reports import OUT_OF_BOUNDS
from dualflow.schedule.element_ranges import ElementRange
from dualflow.schedule.host_fallback import with_host_fallbacks
from dualflow.schedule.kernel import Argument, KernelLaunch
from dualflow.schedule.kernel_statements import OUT_OF_RANGE, ScratchBuffer
from dualflow.schedule.lanes import lanes_of
from dualflow.schedule.lower import lower
from dualflow.schedule.memory_bounds import MemoryBounds
from dualflow.schedule.nest import Layout
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import plan
from dualflow.schedule.planned import Plan, symbolic_shapes
from dualflow.schedule.program_statements import (
    CallRoutine,
    CheckBounds,
    ChooseBranch,
    CopyMemory,
    LaunchNest,
    LaunchPieces,
    Multiply,
    RequireCondition,
    RunLoop,
    ScatterRows,
    Statement,
    ValueLayout,
    statements,
)
from dualflow.schedule.scatter_calls import ScatterIndices
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.schedule.size_text import size_message, size_names
from dualflow.sizes.size_functions import largest

VECTOR_BITS = 256
"""The vector width for which blocks of lane loops are planned; compilers choose the width of instructions."""
ALIGNMENT = 64
"""The alignment of the workspace's parts in bytes."""


class CCheck(NamedTuple):
    """A check: its node, and its message."""

    node: Node
    message: str


class CProgram:
    """The C source of a plan: the exported function, its kernels and routines.

    Attributes:
        plan: the plan.
        name: the name of the function.
        inputs: the names of all inputs, captured tensors last.
        sizes: writes sizes in the function.
        shown_sizes: writes the shapes of its parameters, for readers.
        support: the scalar functions.
        kernels: the text of each kernel, by its name, with a comment.
        routines: the text of each routine, by its name.
        checks: the checks by the number that the function returns, from 1 on.
        lines: the body of the function.
        workspace_bytes: the size of the workspace.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.plan: Plan = plan(with_host_fallbacks(graph), CAPABILITIES)
        require_exportable(graph, self.plan)
        self.name = function_name(graph)
        self.inputs = argument_names(graph)
        self.sizes = Sizes(size_names(self.inputs, self.plan.argument_sizes))
        self.shown_sizes = self.sizes.of_another_function()
        self.support = CSupport()
        self.kernels: dict[str, str] = {}
        self.routines: dict[str, str] = {}
        self.checks: list[CCheck] = []
        self.lines = CLines()
        self.rows: dict[int, DType] = {}
        self.written = set(graph.updated_inputs)
        self._names_by_kernel: dict[object, str] = {}
        self._scratch = 0
        self._span_checks: list[tuple[ElementRange, Node]] = []
        program = statements(self.plan)
        required = [s.node for s in program if s.node.op is REQUIRE_SIZE]
        program = tuple([s for s in program if s.node.op not in (BIND_SIZE, REQUIRE_SIZE)])
        self.bounds = MemoryBounds(self.plan, program)
        self._span_checks += self.bounds.check(program)
        self._statements(program)
        self.checked_sizes = self._size_checks(required)

    @property
    def workspace_bytes(self) -> int:
        """The bytes of the arena and of scratch memory after it, for an aligned address."""
        return self._scratch_start + self._scratch

    @property
    def _scratch_start(self) -> int:
        return self._temporary_start(self.plan.arena)

    def _temporary_start(self, buffer: int) -> int:
        """The offset in the workspace of a temporary buffer, between the arena and scratch memory."""
        before = self.plan.temporaries[: buffer - self.plan.first_temporary]
        return _aligned(self.plan.arena_bytes) + sum(_aligned(spec.nbytes) for spec in before)

    # Sizes

    def _size_checks(self, required: Sequence[Node]) -> list[str]:
        """The lines that check the sizes of arguments, before all others."""
        if not self.sizes.names:
            return []
        lines, self.lines = self.lines, CLines()
        first = self.plan.calls[0].node
        for name in self.sizes.names.values():
            self._require(f"{name} >= 0", CCheck(first, f"the size {name} is negative"))
        for shape in symbolic_shapes(self.plan):
            elements = " * ".join(f"(double)({self.sizes.text(size)})" for size in shape)
            message = "a tensor is larger than memory can hold. Compute in parts."
            self._require(f"{elements} <= {float(MAX_ELEMENTS)!r}", CCheck(first, message))
        for node in required:
            x, y = (self.sizes.text(node.attrs[name]) for name in ("x", "y"))
            condition = f"{x} == {y}" + (f" || {x} == 1" if node.attrs["repeats"] else "")
            self._require(condition, CCheck(node, size_message(node)))
        for span, node in self._span_checks:
            self._require(self._in_bounds_condition(span), CCheck(node, OUT_OF_BOUNDS))
        checks, self.lines = self.lines, lines
        return checks.text

    def _in_bounds_condition(self, span: ElementRange) -> str:
        """The condition that there are no elements, or all of them are in their buffer."""
        nbytes = self.bounds.nbytes[span.buffer]
        assert nbytes is not None, "all sizes are computed before the program runs"
        text = self.sizes.text
        inside = f"({text(span.nbytes)} <= {text(nbytes)} && {text(span.first)} >= 0)"
        return " || ".join([inside, *(f"{self.sizes.text(count)} < 1" for count in span.counts)])

    # Buffers

    def buffer_name(self, buffer: int) -> str:
        """The name of a buffer outside the workspace."""
        plan = self.plan
        if buffer < plan.inputs:
            return self.inputs[buffer]
        if buffer < plan.first_output:
            return f"const{buffer - plan.inputs}"
        return f"out{buffer - plan.first_output}" if buffer < plan.arena else f"row{buffer - plan.arena - 1}"

    def _buffer_dtype(self, buffer: int) -> DType:
        plan = self.plan
        if buffer < plan.inputs:
            return plan.arguments[buffer].dtype
        if buffer < plan.first_output:
            return as_dtype(plan.constants[buffer - plan.inputs].dtype)
        return plan.outputs[buffer - plan.first_output].dtype if buffer < plan.arena else self.rows[buffer]

    def pointer(self, buffer: int, offset: int, dtype: DType, *, const: bool = True) -> str:
        """The address of an element, by its offset in elements."""
        star = f"{'const ' if const else ''}{c_type(dtype)} *"
        if buffer == self.plan.arena:
            return self._in_workspace(offset * dtype.size, star)
        if self.plan.first_temporary <= buffer < self.plan.arena:
            return self._in_workspace(self._temporary_start(buffer) + offset * dtype.size, star)
        name = self.buffer_name(buffer)
        base = name if self._buffer_dtype(buffer) is dtype else f"({star}){name}"
        return base if type(offset) is int and offset == 0 else f"{base} + {self.sizes.text(offset)}"

    def _in_workspace(self, at: int, star: str) -> str:
        """The address of the byte ``at`` of the workspace, as a pointer."""
        return f"({star}){'arena' if type(at) is int and at == 0 else f'(arena + {self.sizes.text(at)})'}"

    def _operand(self, layout: Layout, value: Value, *, const: bool = True) -> str:
        return self.pointer(layout.buffer, layout.offset, value.spec.dtype, const=const)

    def _element(self, placed: ValueLayout) -> str:
        layout, value = placed
        pointer = self._operand(layout, value)
        return f"{pointer}[0]" if pointer.isidentifier() else f"*({pointer})"

    # Checks

    def _require(self, condition: str, check: CCheck) -> None:
        """Write a check: the C function returns the check's number if ``condition`` is false."""
        self.checks.append(check)
        self.lines.add(f"if (!({condition})) return {len(self.checks)};")

    # Statements

    def _statements(self, program: Sequence[Statement]) -> None:
        for statement in program:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case LaunchNest():
                self._launch(statement)
            case LaunchPieces():
                for launch in statement.pieces:
                    self._launch(launch)
            case Multiply():
                self._multiply(statement)
            case ScatterRows():
                self._scatter(statement)
            case CheckBounds():
                self._check_indices(statement.scatter, statement.indices)
            case CopyMemory():
                self._copy(statement)
            case RequireCondition():
                message = statement.node.attrs["error"].static_message
                self._require(self._element(statement.condition), CCheck(statement.node, message))
            case ChooseBranch():
                self._choose(statement)
            case RunLoop():
                self._loop(statement)
            case CallRoutine():
                self._routine(statement)

    def _launch(self, statement: LaunchNest) -> None:
        """Write the calls of a nest's kernel, and of the kernel that combines its partial results."""
        nest = lower(*statement, self.plan.costs, self.plan.caches)
        lanes = lanes_of(nest, VECTOR_BITS)
        launch, nodes = kernel_launch(nest, lanes), tuple([step.node for step in nest.steps])
        start, partials, region = self._scratch_start, [], (0, launch.total * launch.partial_size - 1)
        for dtype in launch.partials:
            partials.append(self._in_workspace(start, f"{c_type(dtype)} *"))
            start = _aligned(start + launch.total * launch.partial_size * dtype.size)
        self._reserve(start)
        self._write_kernel_call(statement, launch, lanes, partials, region, nodes)
        if launch.join is not None:
            self._write_kernel_call(statement, launch.join, lanes, partials, region, nodes)

    def _reserve(self, end: int) -> None:
        """Enlarge the workspace to at least ``end`` bytes."""
        self._scratch = largest(self._scratch, end - self._scratch_start)

    def _write_kernel_call(
        self,
        statement: LaunchNest,
        launch: KernelLaunch,
        lanes: int,
        partials: Sequence[str],
        region: IndexRange,
        nodes: tuple[Node, ...],
    ) -> None:
        """Write a call of a kernel."""
        if type(launch.total) is int and not launch.total:
            return
        kernel = source(launch.kernel, lanes, self.support)
        rewritten = launch._replace(kernel=kernel.kernel)
        unproved_spans = self.bounds.launched(statement, rewritten, access_bounds(kernel.kernel), region)
        self._span_checks += [(span, statement.node) for span in unproved_spans]
        arguments = self._arguments(launch, partials, kernel)
        name = self._kernel_name(kernel, nodes)
        call = f"{name}({', '.join([arguments[p] for p in kernel.parameters])});"
        if not kernel.checks:
            self.lines.add(call)
            return
        self.lines.add(f"status = {call}")
        first = len(self.checks)
        self.checks += [CCheck(node, message) for message, node in kernel.checks]
        self.lines.add(f"if (status != 0) return {f'{first} + ' if first else ''}status;")

    def _arguments(self, launch: KernelLaunch, partials: Sequence[str], kernel: CKernel) -> dict[str, str]:
        """The argument for each parameter of a kernel."""
        buffers = [
            self._argument(a, f"const {c_type(a.dtype)} *x{i}" == kernel.parameters.get(f"x{i}"))
            for i, a in enumerate(launch.buffers)
        ]
        start = self._scratch_start
        scratch: dict[str, str] = {}
        for own in (s for s in launch.kernel.body if isinstance(s, ScratchBuffer)):
            dtype = own.dtype
            scratch[f"x{own.buffer}"] = self._in_workspace(start, f"{c_type(dtype)} *")
            start = _aligned(start + math.prod(launch.parameters[n.number] for n in own.length) * dtype.size)
        self._reserve(start)
        assert launch.constants is not None, "this backend has no scalars of sizes"
        return {
            "lo": "0",
            "hi": self.sizes.text(launch.total),
            **{f"x{i}": text for i, text in enumerate([*buffers, *partials])},
            **scratch,
            **{f"c{i}": self._scalar(number) for i, number in enumerate(launch.constants)},
            **{f"n{i}": self.sizes.text(number) for i, number in enumerate(launch.parameters)},
        }

    def _argument(self, argument: Argument, const: bool) -> str:
        return self.pointer(argument.buffer, argument.offset, argument.dtype, const=const)

    def _scalar(self, number: np.generic) -> str:
        dtype = as_dtype(number.dtype)
        if dtype.is_complex:
            self.support.primitive(f"complex_{type_name(dtype)}")
        return literal(number.item(), dtype)

    def _kernel_name(self, kernel: CKernel, nodes: tuple[Node, ...]) -> str:
        """The name of a kernel; equal kernels are one function."""
        key = kernel.function("kernel")
        name = self._names_by_kernel.get(key)
        if name is None:
            name = self._names_by_kernel[key] = kernel_name(len(self._names_by_kernel), nodes)
            comments = "".join([f"// {line}\n" for line in user_lines(nodes)])
            self.kernels[name] = comments + kernel.function(name)
        return name

    def _multiply(self, product: Multiply) -> None:
        """Write a batch of matrix products, in loops over the batch."""
        if product.onto is not None:
            self._launch(product.onto)
        dtype = product.node.output.spec.dtype
        name, text = routines.product(dtype, self.support)
        self.routines[name] = text
        count = len(product.batch)
        offsets = [
            [self.sizes.factor(stride) for stride in matrix.strides[:count]] for matrix in product.matrices
        ]
        heads = [
            f"for (int64_t batch{i} = 0; batch{i} < {self.sizes.text(n)}; batch{i}++)"
            for i, n in enumerate(product.batch)
        ]
        for head in heads:
            self.lines.add(f"{head} {{")
            self.lines.depth += 1
        operands = []
        for number, (matrix, steps) in enumerate(zip(product.matrices, offsets, strict=True)):
            base = self.pointer(matrix.buffer, matrix.offset, dtype, const=number < 2)
            moved = [f"batch{i} * {step}" for i, step in enumerate(steps) if step != "0"]
            operands.append(
                ", ".join([" + ".join([base, *moved]), *map(self.sizes.text, matrix.strides[count:])])
            )
        shape = ", ".join(map(self.sizes.text, product.shape))
        accumulate = "true" if product.accumulate else "false"
        self.lines.add(
            f"{name}({shape}, {', '.join(operands)}, {literal(product.scale, dtype)}, {accumulate});"
        )
        for _ in heads:
            self.lines.depth -= 1
            self.lines.add("}")

    def _scatter(self, scatter: ScatterRows) -> None:
        if scatter.onto is not None:
            self._launch(scatter.onto)
        indices, dtype = scatter.indices, scatter.node.output.spec.dtype
        if not scatter.checked:
            self._check_indices(scatter.node, indices)
        name, text = routines.scatter(dtype, indices.dtype, indices.depth, scatter.join, self.support)
        self.routines[name] = text
        counts = (indices.iterations, indices.num_indices, indices.row_length, indices.distance)
        operands = [
            self._operand(scatter.outputs[0], scatter.node.output, const=False),
            self.pointer(indices.layout.buffer, indices.layout.offset, indices.dtype),
            self.pointer(scatter.rows.buffer, scatter.rows.offset, dtype),
            *map(self.sizes.text, counts),
            self._integers(indices.axis_strides),
        ]
        self.lines.add(f"{name}({', '.join(operands)});")

    def _check_indices(self, node: Node, indices: ScatterIndices) -> None:
        """Write a check of the indices of a scatter, before it writes."""
        name, text = routines.indices_inside(indices.dtype, indices.depth)
        self.routines[name] = text
        pointer = self.pointer(indices.layout.buffer, indices.layout.offset, indices.dtype)
        arguments = f"{pointer}, {self.sizes.text(indices.num_indices)}, {self._integers(indices.axis_sizes)}"
        self._require(f"{name}({arguments})", CCheck(node, OUT_OF_RANGE))

    def _integers(self, numbers: Sequence[int]) -> str:
        """The text of an array of integers, as an argument."""
        return f"(const int64_t[]){{{', '.join(map(self.sizes.text, numbers or [1]))}}}"

    def _copy(self, copy: CopyMemory) -> None:
        """Write a copy between contiguous values."""
        value = copy.node.output
        target = self._operand(copy.outputs[0], value, const=False)
        nbytes = self.sizes.text(value.spec.nbytes)
        self.lines.add(f"memmove({target}, {self._operand(copy.inputs[0], value)}, (size_t)({nbytes}));")

    def _routine(self, call: CallRoutine) -> None:
        node = call.node
        if call.kind is CallKind.SIZES:
            pointer = self._operand(call.outputs[0], node.output, const=False)
            for i, size in enumerate(node.attrs["values"]):
                text = f"({c_type(node.output.spec.dtype)})({self.sizes.text(size)})"
                self.lines.add(f"({pointer})[{i}] = {text};")
            return
        if call.kind is CallKind.HOST:
            self._op_routine(call)
            return
        assert call.kind is CallKind.POSITIONS, "other routines are refused"
        (counts,) = node.inputs
        name, text = routines.positions(counts.spec.dtype)
        self.routines[name] = text
        count, limit = self.sizes.text(math.prod(sizes(counts))), self.sizes.text(node.attrs["size"])
        source_text = self._operand(call.inputs[0], counts)
        out = self._operand(call.outputs[0], node.output, const=False)
        self._require(
            f"{name}({source_text}, {count}, {out}, {limit}) == {limit}", CCheck(node, OUT_OF_BOUNDS)
        )

    def _op_routine(self, call: CallRoutine) -> None:
        """Write a call of the C routine for an op."""
        node, routine = call.node, op_routine(call.node)
        assert routine is not None, "ops without a routine are refused"
        self.routines.update(routine.functions)
        arguments = [self._operand(*operand) for operand in zip(call.inputs, node.inputs, strict=True)]
        arguments.append(self._operand(call.outputs[0], node.output, const=False))
        arguments += map(self.sizes.text, routine.numbers)
        if routine.scratch is not None:
            arguments.append(self._in_workspace(self._scratch_start, "int64_t *"))
            self._reserve(self._scratch_start + 8 * routine.scratch)
        text = f"{routine.name}({', '.join(arguments)})"
        if routine.message is None:
            self.lines.add(f"{text};")
        else:
            self._require(text, CCheck(node, routine.message))

    # Conditionals and loops

    def _choose(self, choose: ChooseBranch) -> None:
        number = CValue(self._element(choose.number), choose.number[1].spec.dtype)
        *first, last = choose.branches
        for i, branch in enumerate(first):
            with self.lines.block(f"{'else ' if i else ''}if ({number.text} == {i})"):
                self._statements(branch)
        with self.lines.block("else" if first else ""):
            self._statements(last)

    def _loop(self, loop: RunLoop) -> None:
        if loop.growable or loop.memory.changing_sizes or loop.memory.double_buffers or loop.memory.stacks:
            raise unsupported_error(loop.node, "its stacks grow while it runs")
        self.rows.update({row.buffer: row.dtype for row in loop.memory.rows})
        self._statements(loop.start)
        iteration = f"iteration{loop.trip_count.loop}"
        limit = self._limit(loop)
        for other in self.bounds.compared_loops(loop):
            self._require(f"iteration{other} >= {limit}", CCheck(loop.node, OUT_OF_BOUNDS))
        test = "" if limit is None else f"{iteration} < {limit}"
        with self.lines.block(f"for ({iteration} = 0; {test}; {iteration}++)"):
            if loop.condition is not None:
                self._statements(loop.test)
                self.lines.add(f"if (!{self._element(loop.condition)}) break;")
            for row in loop.memory.rows:
                at = f"({limit} - 1 - {iteration})" if loop.backwards else iteration
                stack = self.pointer(row.stack.buffer, row.stack.offset, row.dtype, const=False)
                step = self.sizes.factor(row.nbytes // row.dtype.size)
                self.lines.add(
                    f"{self.buffer_name(row.buffer)} = ({c_type(row.dtype)} *)({stack}) + {at} * {step};"
                )
            self._statements(loop.body)

    def _limit(self, loop: RunLoop) -> str | None:
        if loop.trip_count.same_as is not None:
            return f"iteration{loop.trip_count.same_as}"
        return None if loop.trip_count.limit is None else self.sizes.text(loop.trip_count.limit)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
