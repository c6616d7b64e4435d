"""Writes the statements of a plan as lines of source, for the Python function and compiled functions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from dualflow.backends.numba.capabilities import has_kernel
from dualflow.backends.numba.kernel_source import KernelSource, source
from dualflow.backends.numba.line_comments import CommentedLines
from dualflow.backends.numba.parameters import dtype_name
from dualflow.backends.numba.sizes import SourceSizes
from dualflow.core.dtypes import DType
from dualflow.core.records import dataclass, field
from dualflow.graph.control_ops import memory_message
from dualflow.graph.ir import Node, Value
from dualflow.graph.views import sizes
from dualflow.schedule.access_bounds import IndexRange, access_bounds
from dualflow.schedule.call_reports import OUT_OF_BOUNDS
from dualflow.schedule.element_ranges import ElementRange
from dualflow.schedule.executed_work import work_ratio
from dualflow.schedule.kernel import Argument, KernelLaunch
from dualflow.schedule.kernel_statements import OUT_OF_RANGE
from dualflow.schedule.lower import lower
from dualflow.schedule.memory_bounds import MemoryBounds
from dualflow.schedule.nest import Layout, Nest
from dualflow.schedule.operands import CallKind
from dualflow.schedule.planned import Plan, StackRow
from dualflow.schedule.program_statements import (
    INITIAL_CAPACITY,
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
    nests_of,
)
from dualflow.schedule.scatter_calls import ScatterIndices
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.sizes.size_scalars import SizeScalar

LANES = 16
"""The vector length that reductions are blocked for; Numba vectorises the lane loops itself."""
NO_KERNEL = "kernels for Numba support no float16 and no complex numbers"
"""The reason that a loop nest runs through NumPy."""
_NUMPY_KERNELS = (CallKind.HOST, CallKind.POSITIONS, CallKind.FOURIER)
"""The routines that run as the op's NumPy kernel."""
_ARRAYS = "?bBhHiIlLqQfdFD"
"""The characters of the dtypes that Numba's arrays have."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramCheck:
    """A check of a program. ``message`` is None if the node is a check op, which has its own message."""

    node: Node
    message: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LoweredNest:
    """A loop nest with the launch of its kernel, which is None if Numba can't compute it."""

    statement: LaunchNest
    kernel_launch: KernelLaunch | None
    nest: Nest | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that its kernel computes."""
        return () if self.nest is None else tuple([step.node for step in self.nest.steps])


@dataclass(slots=True)
class ProgramContext:
    """The state that the parts of a program share.

    Attributes:
        plan: the plan of the program.
        bounds: the sizes of buffers, with which accesses are compared.
        names: of the buffers.
        sizes: writes sizes, static and symbolic.
        span_checks: the accesses that are compared with the sizes of arguments, each with its node.
        kernels: the source of each different kernel, by its name in the program.
        kernel_calls: the kernels in the order of their calls, with the nodes that each computes there.
    """

    plan: Plan
    bounds: MemoryBounds
    names: list[str]
    sizes: SourceSizes
    span_checks: list[tuple[ElementRange, Node]] = field(default_factory=list)
    kernels: dict[str, KernelSource] = field(default_factory=dict)
    kernel_calls: list[tuple[str, tuple[Node, ...]]] = field(default_factory=list)
    _names_by_source: dict[str, str] = field(default_factory=dict)
    _lowered: dict[LaunchNest, LoweredNest] = field(default_factory=dict)

    def kernel(self, launch: KernelLaunch, nodes: tuple[Node, ...]) -> tuple[str, KernelSource]:
        """The kernel of ``launch``, and its name; equal kernels are one."""
        kernel_source = source(launch.kernel)
        name = self._names_by_source.setdefault(
            kernel_source.function("kernel"), f"k{len(self._names_by_source)}"
        )
        self.kernels.setdefault(name, kernel_source)
        if nodes:
            self.kernel_calls.append((name, nodes))
        return name, kernel_source

    def lowered(self, launch: LaunchNest) -> LoweredNest:
        """The loop nest of ``launch``, lowered once."""
        nest = self._lowered.get(launch)
        if nest is None:
            nest = self._lowered[launch] = _lower_nest(launch, self.plan)
        return nest

    @property
    def recomputation_ratio(self) -> float:
        """The work that the nests execute, divided by that of their ops without recomputation."""
        return work_ratio(
            (lowered.kernel_launch, lowered.nest)
            for lowered in self._lowered.values()
            if lowered.kernel_launch is not None and lowered.nest is not None
        )

    def lowered_nests(self, statement: Statement) -> list[LoweredNest]:
        """The loop nests that a statement runs, without those of its bodies."""
        return list(map(self.lowered, nests_of(statement)))


def has_arrays(node: Node) -> bool:
    """Whether Numba has arrays of the dtypes of all inputs and outputs of a node."""
    return all(v.spec.dtype.char in _ARRAYS for v in (*node.inputs, *node.outputs))


def _lower_nest(statement: LaunchNest, plan: Plan) -> LoweredNest:
    if not has_kernel(statement.node):
        return LoweredNest(statement, None)
    nest = lower(*statement, plan.costs, plan.caches)
    return LoweredNest(statement, kernel_launch(nest, LANES), nest)


class CallWriter(ABC):
    """Writes statements in order.

    Attributes:
        context: what all parts of the program share.
        lines: the lines so far.
        routines: the names of the routines that the lines call.
    """

    def __init__(self, context: ProgramContext) -> None:
        self.context = context
        self.lines = CommentedLines()
        self.routines: set[str] = set()

    # What differs between Python and compiled functions

    @abstractmethod
    def buffer(self, buffer: int, dtype: DType) -> str:
        """The source of a buffer as a flat array of ``dtype``."""

    @abstractmethod
    def size(self, size: int) -> str:
        """The source of a size: a literal, or an expression over the sizes of arguments."""

    @abstractmethod
    def literal(self, number: Any) -> str:
        """The source of a NumPy scalar."""

    @abstractmethod
    def rows_within(self, nbytes: int) -> str:
        """An expression for the number of rows of ``nbytes`` that fit into memory."""

    @abstractmethod
    def iterations_of(self, loop: int) -> str:
        """The name of the variable with the number of iterations of a loop."""

    @abstractmethod
    def require(self, condition: str, check: ProgramCheck, reads: Sequence[ValueLayout] = ()) -> None:
        """Write a check: stop unless a condition holds."""

    @abstractmethod
    def launch(self, name: str, launch: KernelLaunch, arguments: str, nodes: Sequence[Node]) -> None:
        """Write a call of a kernel."""

    @abstractmethod
    def check_status(self, checks: Sequence[ProgramCheck], nodes: Sequence[Node]) -> None:
        """Write a check of the status: stop if a kernel has set it to the number of one of its checks."""

    @abstractmethod
    def launch_as_numpy(self, launch: LaunchNest) -> None:
        """Write a loop nest that Numba can't compile as a call of NumPy kernels."""

    @abstractmethod
    def multiply(self, product: Multiply) -> None:
        """Write a matrix product; it is added to its output if an addend was copied there."""

    @abstractmethod
    def host(self, statement: Statement) -> None:
        """Write the call of a node that runs as its op's NumPy kernel."""

    # Statements

    def statements(self, program: Sequence[Statement]) -> None:
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
                self._launch_addend(statement.onto)
                self.multiply(statement)
            case ScatterRows():
                self._scatter(statement)
            case CheckBounds():
                self._require_inside(statement.scatter, statement.indices)
            case CopyMemory():
                self._copy(statement)
            case RequireCondition():
                condition = self._element(statement.condition)
                self.require(condition, ProgramCheck(statement.node), statement.reads)
            case ChooseBranch() | RunLoop():
                self.control(statement)
            case CallRoutine(kind=CallKind.SIZES):
                self._sizes(statement)
            case CallRoutine():
                assert statement.kind in _NUMPY_KERNELS, (
                    "data-dependent sizes and products of windows are excluded before"
                )
                self.host(statement)

    def _launch_addend(self, launch: LaunchNest | None) -> None:
        """Write the launch that copies the addend of a product or scatter to its output."""
        if launch is not None:
            self._launch(launch)

    def _launch(self, launch: LaunchNest) -> None:
        """Write a loop nest: a call of its kernel, if it has one."""
        lowered = self.context.lowered(launch)
        if lowered.kernel_launch is None:
            self.launch_as_numpy(launch)
        else:
            self._launch_nest(launch, lowered.kernel_launch, lowered.nodes)

    def _launch_nest(self, statement: LaunchNest, launch: KernelLaunch, nodes: tuple[Node, ...]) -> None:
        partials, region = [], (0, launch.total * launch.partial_size - 1)
        for i, dtype in enumerate(launch.partials):
            partials.append(f"part{i}")
            self.lines.add(
                f"part{i} = np.empty({self.size(launch.total * launch.partial_size)}, {dtype_name(dtype)})"
            )
        self._call_kernel(statement, launch, partials, region, nodes)
        if launch.join is not None:
            self._call_kernel(statement, launch.join, partials, region, ())

    def _call_kernel(
        self,
        statement: LaunchNest,
        launch: KernelLaunch,
        partials: Sequence[str],
        partials_range: IndexRange,
        nodes: tuple[Node, ...],
    ) -> None:
        """Write a call of a kernel, whose partial results are in a region of the arrays ``partials``."""
        if launch.total == 0:
            return
        name, kernel_source = self.context.kernel(launch, nodes)
        numba_launch = launch._replace(kernel=kernel_source.kernel)
        unproved_spans = self.context.bounds.launched(
            statement, numba_launch, access_bounds(kernel_source.kernel), partials_range
        )
        self.context.span_checks += [(span, statement.node) for span in unproved_spans]
        arguments = [
            *(self._argument(a) for a in launch.buffers),
            *partials,
            *map(self.literal, launch.scalars),
            *map(self.size, launch.parameters),
            "status",
        ]
        self.launch(name, launch, ", ".join(arguments), nodes)
        checks = [ProgramCheck(node, message) for message, node in kernel_source.checks]
        self.check_status(checks, nodes)

    def _argument(self, argument: Argument) -> str:
        """A buffer argument of a kernel, from its offset."""
        buffer = self.buffer(argument.buffer, argument.dtype)
        return f"{buffer}[{self.size(argument.offset)}:]" if argument.offset != 0 else buffer

    def _scatter(self, scatter: ScatterRows) -> None:
        """Write a scatter of rows."""
        node, indices, (out,) = scatter.node, scatter.indices, scatter.outputs
        if not has_arrays(node):
            self.host(scatter)
            return
        self._launch_addend(scatter.onto)
        if not scatter.checked:
            self._require_inside(node, indices)
        dtype, name = node.output.spec.dtype, f"scatter_{scatter.join}"
        self.routines.add(name)
        operands = [
            f"{self.buffer(layout.buffer, d)}, {self.size(layout.offset)}"
            for layout, d in ((out, dtype), (indices.layout, indices.dtype), (scatter.rows, dtype))
        ]
        counts = (indices.iterations, indices.num_indices, indices.row_length)
        arguments = [*operands, *map(self.size, counts), self._limits(indices)]
        self.lines.add(f"{name}({', '.join(arguments)})", (node,))

    def _require_inside(self, scatter: Node, indices: ScatterIndices) -> None:
        """Write a check of the indices of a scatter, before it writes."""
        self.routines.add("scatter_inside")
        layout = indices.layout
        buffer, count = self.buffer(layout.buffer, indices.dtype), self.size(indices.num_indices)
        arguments = f"{buffer}, {self.size(layout.offset)}, {count}, {self._limits(indices)}"
        self.require(f"scatter_inside({arguments})", ProgramCheck(scatter, OUT_OF_RANGE))

    def _limits(self, indices: ScatterIndices) -> str:
        """Two arguments of ``scatter_inside``: the indexed axes' sizes, (1,) if none, and their number."""
        limits = indices.axis_sizes or [1]
        return f"({', '.join(map(self.size, limits))},), {indices.depth}"

    def _sizes(self, call: CallRoutine) -> None:
        """Write the assignments of sizes to the elements of a tensor."""
        (layout,), value = call.outputs, call.node.output
        out, dtype = self.buffer(layout.buffer, value.spec.dtype), dtype_name(value.spec.dtype)
        for i, size in enumerate(call.node.attrs["values"]):
            number = self.literal(size) if isinstance(size, SizeScalar) else f"{dtype}({self.size(size)})"
            self.lines.add(f"{out}[{self.size(layout.offset + i)}] = {number}")

    def _copy(self, copy: CopyMemory) -> None:
        """Write a copy between contiguous values."""
        value = copy.node.output
        source, target = (self._flat_slice(x, value) for x in (*copy.inputs, *copy.outputs))
        self.lines.add(f"{target} = {source}", (copy.node,))

    def _flat_slice(self, layout: Layout, value: Value) -> str:
        """The slice of a buffer that is a contiguous value."""
        begin, count = self.size(layout.offset), self.size(math.prod(sizes(value)))
        return f"{self.buffer(layout.buffer, value.spec.dtype)}[{begin} : {begin} + {count}]"

    def _element(self, placed: ValueLayout) -> str:
        layout, value = placed
        return f"{self.buffer(layout.buffer, value.spec.dtype)}[{self.size(layout.offset)}]"

    # Conditionals and loops

    def control(self, statement: ChooseBranch | RunLoop) -> None:
        """Write a branch or a loop, with the statements inside it."""
        if isinstance(statement, RunLoop):
            self._loop(statement)
        else:
            self._cond(statement)

    def _cond(self, cond: ChooseBranch) -> None:
        index = self._element(cond.number)
        *first, last = cond.branches
        for number, branch in enumerate(first):
            with self.lines.block(f"{'elif' if number else 'if'} {index} == {number}:"):
                self.statements(branch)
        if not first:
            self.statements(last)
            return
        with self.lines.block("else:"):
            self.statements(last)

    def _loop(self, loop: RunLoop) -> None:
        iteration = self.declare_counter(loop.trip_count.loop)
        self.statements(loop.start)
        for row in loop.growable:
            self.lines.add(f"{self.declare_stack(row)} = np.empty(0, {dtype_name(row.dtype)})")
        self.lines.add(f"{iteration} = 0", (loop.node,))
        limit = self._limit(loop)
        for other in self.context.bounds.compared_loops(loop):
            self.require(f"{self.iterations_of(other)} >= {limit}", ProgramCheck(loop.node, OUT_OF_BOUNDS))
        with self.lines.block("while True:" if limit is None else f"while {iteration} < {limit}:"):
            if loop.condition is not None:
                self._tested(loop.test, loop.condition)
            for row in loop.memory.rows:
                if row.grows and row.nbytes != 0:
                    self._grow_if_full(loop, row, iteration)
                self._bind_row(row, f"({limit} - 1 - {iteration})" if loop.backwards else iteration)
            self.statements(loop.body)
            self.lines.add(f"{iteration} += 1")
            self.end_iteration(loop, iteration)

    def _limit(self, loop: RunLoop) -> str | None:
        if loop.trip_count.same_as is not None:
            return self.iterations_of(loop.trip_count.same_as)
        return None if loop.trip_count.limit is None else self.size(loop.trip_count.limit)

    def declare_counter(self, loop: int) -> str:
        """Declare a loop's counter; returns its name, which the next line assigns.

        Compiled functions have local variables, so that they override this and the next two to record names.
        """
        return f"iteration{loop}"

    def declare_stack(self, row: StackRow) -> str:
        """Declare a growable buffer; returns its name, which the next line assigns."""
        return self.context.names[row.stack.buffer]

    def declare_row(self, row: StackRow) -> str:
        """Declare a row; returns its name, which the next line assigns."""
        return self.context.names[row.buffer]

    @abstractmethod
    def end_iteration(self, loop: RunLoop, iteration: str) -> None:
        """Write the end of an iteration."""

    def _tested(self, test: Sequence[Statement], condition: ValueLayout) -> None:
        self.statements(test)
        with self.lines.block(f"if not {self._element(condition)}:"):
            self.lines.add("break")

    def _grow_if_full(self, loop: RunLoop, row: StackRow, iteration: str) -> None:
        """Write the growth of a stack that is full, for the row of this iteration."""
        self.routines.add("doubled")
        stack, count = self.buffer(row.stack.buffer, row.dtype), row.nbytes // row.dtype.size
        row_bytes = loop.growable_bytes
        with self.lines.block(f"if {iteration} * {self.size(count)} == len({stack}):"):
            fits = f"max({INITIAL_CAPACITY}, 2 * {iteration}) <= {self.rows_within(row_bytes)}"
            self.require(f"({fits})", ProgramCheck(loop.node, memory_message(row_bytes)))
            self.lines.add(f"{stack} = doubled({stack}, {self.size(INITIAL_CAPACITY * count)})")

    def _bind_row(self, row: StackRow, iteration: str) -> None:
        """Write the assignment of the current iteration's row, a slice of the stacked array."""
        stack, count = self.buffer(row.stack.buffer, row.dtype), self.size(row.nbytes // row.dtype.size)
        begin = f"{iteration} * {count}" + (
            f" + {self.size(row.stack.offset)}" if row.stack.offset != 0 else ""
        )
        self.lines.add(f"{self.declare_row(row)} = {stack}[{begin} : {begin} + {count}]")
