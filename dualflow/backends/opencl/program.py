"""A plan as a device program: its statements as steps, in order, before transfers are inserted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.backends.opencl import products, routines
from dualflow.backends.opencl.capabilities import VECTOR_BITS, host_reason, require_device_code
from dualflow.backends.opencl.devices import OpenCLDevice
from dualflow.backends.opencl.group_kernels import source
from dualflow.backends.opencl.kernel_source import OpenCLKernel
from dualflow.backends.opencl.product_launches import product_launch
from dualflow.backends.opencl.products import window_geometry
from dualflow.backends.opencl.steps import (
    LOCAL_SIZE,
    BufferArgument,
    ByteAddress,
    CopyOnDevice,
    HostBranch,
    HostCall,
    HostLoop,
    HostOperand,
    Int64Argument,
    KernelArgument,
    KernelProgram,
    Launch,
    PartialResults,
    Require,
    ScratchMemory,
    Step,
    WriteSizes,
    kernel_arguments,
)
from dualflow.backends.opencl.transfers import BOTH, DEVICE, HOST, Space, Spaces, TransferInsertion
from dualflow.core.errors import InternalError
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.lower_placement import is_placed_on_host
from dualflow.graph.symbolic_size_ops import REQUIRE_SIZE, binds_or_checks_size, computes_sizes
from dualflow.graph.views import sizes
from dualflow.schedule.access_bounds import NOTHING, IndexRange, access_bounds
from dualflow.schedule.element_ranges import ElementRange
from dualflow.schedule.epilogue_kernels import epilogue_launch
from dualflow.schedule.executed_work import work_ratio
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import OUT_OF_RANGE
from dualflow.schedule.lanes import lanes_of
from dualflow.schedule.lower import lower
from dualflow.schedule.memory_bounds import MemoryBounds
from dualflow.schedule.nest import Layout, Nest, contiguous_strides
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import plan
from dualflow.schedule.planned import Plan, StackRow
from dualflow.schedule.program_statements import (
    CallRoutine,
    CheckBounds,
    ChooseBranch,
    CopyMemory,
    FusedProduct,
    LaunchNest,
    LaunchPieces,
    Multiply,
    RequireCondition,
    RunLoop,
    ScatterRows,
    Statement,
    ValueLayout,
    statements,
    walk_program,
)
from dualflow.schedule.scatter_calls import ScatterIndices
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.schedule.sliding import SlidingWindows
from dualflow.sizes.symbolic_sizes import UndecidedSize, typical


class Placement(NamedTuple):
    """Where the inputs of a call are, and where its results go.

    Attributes:
        inputs: the inputs that are on the device; a variable among them stays there.
        results: whether the results stay on the device.
    """

    inputs: frozenset[int]
    results: bool


ON_HOST = Placement(frozenset(), False)
"""The placement of a call whose inputs and results are arrays of the host."""


def _partial_results(launch: KernelLaunch) -> IndexRange:
    """The elements of each buffer of partial results."""
    return 0, launch.total * launch.partial_size - 1


def _is_computed_on_host(value: Value) -> bool:
    return value.node is not None and is_placed_on_host(value.node)


class DeviceProgram:
    """The steps of a graph.

    Args:
        graph: the graph, after all passes.
        options: the compile options.
        device: the device, for which the tiles of matrix products are selected.

    Attributes:
        graph_name: the name of the graph.
        plan: the plan.
        steps: the steps before transfers are inserted.
        updated: the inputs that are variables which the program assigns.
        required: the nodes that compare sizes of arguments, which a call does first.
        host_results: the buffers of results that a block of the CPU computes, which stay on the host.
        range_checks: the accesses that a call compares with the sizes of buffers, each with its node.
        bounds: the sizes of buffers.
    """

    def __init__(self, graph: Graph, options: CompileOptions, device: OpenCLDevice) -> None:
        if computes_sizes(graph):
            raise UndecidedSize("the size of a tensor depends on data")
        self.plan: Plan = plan(graph, options.capabilities, costs=options.cost_model)
        self.graph_name = graph.name
        self._dtypes = options.capabilities.dtypes
        self._soft_placement = options.soft_placement
        program = statements(self.plan)
        self.required = [s.node for s in program if s.node.op is REQUIRE_SIZE]
        program = tuple([s for s in program if not binds_or_checks_size(s.node)])
        self.bounds = MemoryBounds(self.plan, program)
        self.range_checks: list[tuple[ElementRange, Node]] = self.bounds.check(program)
        self.updated = graph.updated_inputs
        self.host_results = frozenset(
            [self.plan.first_output + i for i, v in enumerate(graph.outputs) if _is_computed_on_host(v)]
        )
        self._partials = 0
        self._device = device
        self._nests: list[tuple[KernelLaunch, Nest]] = []
        self.steps = tuple(self._steps(program))
        self.range_checks = list(dict.fromkeys(self.range_checks))
        self._insertion = self._transfer_insertion(program)
        self._placed: dict[Placement, tuple[Step, ...]] = {}

    def with_transfers(self, placement: Placement) -> tuple[Step, ...]:
        """The steps with the transfers of calls of this placement."""
        steps = self._placed.get(placement)
        if steps is None:
            on_device = {*self._results()} if placement.results else set()
            on_device = {i for i in on_device - self.host_results if self.has_size(i)} | placement.inputs
            buffers = [*self._results(), *self.updated]
            ends = {i: Space.DEVICE if i in on_device else Space.HOST for i in buffers}
            steps = self._insertion.with_transfers(self.steps, self._spaces(placement), ends)
            self._placed[placement] = steps
        return steps

    @property
    def recomputation_ratio(self) -> float:
        """The work that the kernels execute, divided by that of their ops without recomputation."""
        return work_ratio(self._nests)

    # Buffers

    def has_size(self, buffer: int) -> bool:
        """Whether the size of a buffer follows from the arguments; otherwise a host call computes it."""
        return self.bounds.nbytes.get(buffer) is not None

    def name_of(self, buffer: int) -> str:
        """A description of a buffer for errors."""
        plan = self.plan
        if buffer < plan.inputs:
            name = plan.arguments[buffer].name
            return f"argument {buffer}" if name is None else repr(name)
        if plan.first_output <= buffer < plan.first_temporary:
            return f"result {buffer - plan.first_output}"
        return "the intermediates" if buffer == plan.arena else "an intermediate"

    def stack_name(self, loop: HostLoop, row: StackRow) -> str:
        """A description of a growable stack for errors."""
        rows, stacks = loop.statement.memory.rows, loop.node.outputs
        spec = stacks[len(stacks) - len(rows) + rows.index(row)].spec
        return f"the stack of rows of {spec.dtype.name}{list(spec.shape[1:])} in a loop of {self.graph_name}"

    def _results(self) -> range:
        return range(self.plan.first_output, self.plan.first_temporary)

    def _spaces(self, placement: Placement) -> dict[int, Spaces]:
        """Where each buffer is when a call begins; constants are on the device, too."""
        spaces = {i: HOST if i < self.plan.inputs else BOTH for i in range(self.plan.arena)}
        return {**spaces, **dict.fromkeys(placement.inputs, DEVICE)}

    def _transfer_insertion(self, program: Sequence[Statement]) -> TransferInsertion:
        nbytes = {i: self.bounds.nbytes.get(i) or 0 for i in range(self.plan.arena)}
        loops = [s for s in walk_program(program) if isinstance(s, RunLoop)]
        return TransferInsertion(nbytes, {r.buffer: r.stack.buffer for s in loops for r in s.memory.rows})

    def _operand(self, layout: Layout, value: Value) -> HostOperand:
        shape, dtype = tuple(value.spec.shape), value.spec.dtype
        on_host = layout.buffer < self.plan.arena
        contiguous = None in shape or layout.strides == contiguous_strides(value.spec.shape)
        whole = None in shape or (
            on_host
            and layout.offset == 0
            and contiguous
            and value.spec.nbytes == self.bounds.nbytes.get(layout.buffer)
        )
        return HostOperand(layout, shape, dtype, on_host, whole)

    # Statements

    def _steps(self, program: Sequence[Statement]) -> list[Step]:
        return [step for statement in program for step in self._statement(statement)]

    def _statement(self, statement: Statement) -> list[Step]:
        match statement:
            case LaunchNest():
                return self._launch(statement)
            case LaunchPieces():
                return [step for piece in statement.pieces for step in self._launch(piece)]
            case Multiply():
                return self._multiply(statement)
            case FusedProduct():
                return self._fused_product(statement)
            case ScatterRows():
                return self._scatter(statement)
            case CheckBounds():
                return [self._check_indices(statement.scatter, statement.indices)]
            case CopyMemory():
                return self._copy(statement)
            case RequireCondition():
                reads = tuple([self._operand(*read) for read in statement.reads])
                return [Require(statement.node, self._operand(*statement.condition), reads)]
            case ChooseBranch():
                branches = tuple([tuple(self._steps(branch)) for branch in statement.branches])
                return [HostBranch(statement.node, self._operand(*statement.number), branches)]
            case RunLoop():
                return self._loop(statement)
            case CallRoutine(kind=CallKind.SIZES):
                values, dtype = statement.node.attrs["values"], statement.node.output.spec.dtype
                return [WriteSizes(statement.node, statement.outputs[0], tuple(values), dtype)]
            case CallRoutine(kind=CallKind.WINDOW_SUM):
                return self._window_sum(statement)
            case CallRoutine():
                return [self._host(statement)]
        raise InternalError(
            f"{statement} can't be lowered to OpenCL: concurrent tasks must not be planned for it."
        )

    def _host(self, statement: Statement) -> HostCall:
        node, reason = statement.node, host_reason(statement.node, self._dtypes)
        if not self._soft_placement:
            require_device_code(node, reason)
        inputs = [self._operand(*pair) for pair in zip(statement.inputs, node.inputs, strict=True)]
        outputs = [self._operand(*pair) for pair in zip(statement.outputs, node.outputs, strict=True)]
        return HostCall(node, reason, tuple(inputs), tuple(outputs))

    # Kernels

    def _launch(self, statement: LaunchNest) -> list[Step]:
        """The launches of a nest: its kernel, and those that combine its partial results."""
        if host_reason(statement.node, self._dtypes):
            return [self._host(statement)]
        nest, lanes, launch = self._lowered(statement)
        self._nests.append((launch, nest))
        partials = []
        for dtype in launch.partials:
            partials.append(PartialResults(self._partials, launch.total * launch.partial_size * dtype.size))
            self._partials += 1
        region = _partial_results(launch)
        nodes = tuple([step.node for step in nest.steps])
        elements = typical(math.prod(loop.extent for loop in nest.loops if loop.reduced))
        kernel = source(launch.kernel, lanes, nest.num_parallel, elements)
        launches = [self._kernel(statement, launch, kernel, partials, region, nodes)]
        following, elements = launch.join, typical(launch.total)
        while following is not None:
            kernel = source(following.kernel, lanes, nest.num_parallel, elements)
            launches.append(self._kernel(statement, following, kernel, partials, region, ()))
            following = following.join
        return [step for step in launches if step is not None]

    def _lowered(self, statement: LaunchNest) -> tuple[Nest, int, KernelLaunch]:
        """The nest of a statement, its number of lanes, and the launch of its kernel."""
        nest = lower(*statement, self.plan.costs, self.plan.caches)
        lanes = lanes_of(nest, VECTOR_BITS)
        return nest, lanes, kernel_launch(nest, lanes, by_work_items=True)

    def _check_accesses(self, statement: LaunchNest, launch: KernelLaunch, region: IndexRange) -> None:
        """Prove the accesses of a kernel, or add a check of them at run time."""
        undecided = self.bounds.launched(statement, launch, access_bounds(launch.kernel), region)
        self.range_checks += [(span, statement.node) for span in undecided]

    def _kernel(
        self,
        statement: LaunchNest,
        launch: KernelLaunch,
        kernel: OpenCLKernel,
        partials: Sequence[PartialResults],
        region: IndexRange,
        nodes: tuple[Node, ...],
    ) -> Launch | None:
        """The launch of one kernel; None if it has no iterations."""
        if type(launch.total) is int and not launch.total:
            return None
        self._check_accesses(statement, launch, region)
        own = len(launch.buffers)
        scratch = [
            ScratchMemory(math.prod(launch.parameters[n.number] for n in s.length) * s.dtype.size)
            for s in kernel.scratch
        ]
        stored = {launch.buffers[i].buffer for i in kernel.stored if i < own}
        return Launch(
            statement.node,
            nodes,
            KernelProgram(kernel.text, kernel.checks),
            kernel_arguments(launch, (*partials, *scratch)),
            launch.total * math.prod(launch.parameters[p.number] for p in kernel.grid),
            kernel.group_size or LOCAL_SIZE,
            frozenset(b.buffer for b in launch.buffers),
            frozenset(stored),
            by_groups=kernel.group_size > 0,
        )

    def _multiply(self, product: Multiply) -> list[Step]:
        if product.node.output.spec.dtype.char not in self._dtypes:
            return [self._host(product)]
        if product.is_empty:
            return []
        if product.onto is not None:  # the product reads the addend itself
            launch = self._lowered(product.onto)[-1]
            self._check_accesses(product.onto, launch, _partial_results(launch))
        return [product_launch(self._device, product.node, product)]

    def _fused_product(self, fused: FusedProduct) -> list[Step]:
        if host_reason(fused.node, self._dtypes):
            return [self._host(fused)]
        if fused.product.is_empty:
            return []
        nest = lower(*fused.epilogue, self.plan.costs, self.plan.caches)
        epilogue = epilogue_launch(fused.epilogue, nest)
        self._nests.append((epilogue.launch, nest))
        self._check_accesses(fused.epilogue, epilogue.launch, NOTHING)
        return [product_launch(self._device, fused.node, fused.product, epilogue)]

    def _window_sum(self, call: CallRoutine) -> list[Step]:
        node, dtype = call.node, call.node.output.spec.dtype
        if host_reason(node, self._dtypes):
            return [self._host(call)]
        windows: SlidingWindows = node.attrs["windows"]
        layouts = (*call.inputs, *call.outputs)
        arguments: tuple[KernelArgument, ...] = (
            *(BufferArgument(layout.buffer, layout.offset) for layout in layouts),
            *map(Int64Argument, window_geometry(windows)),
        )
        kernel = KernelProgram(products.window_sum(dtype, len(windows.axes)))
        reads, writes = (
            frozenset([layout.buffer for layout in part]) for part in (call.inputs, call.outputs)
        )
        items = math.prod(sizes(node.output))
        return [Launch(node, (node,), kernel, arguments, items, LOCAL_SIZE, reads, writes)]

    def _scatter(self, scatter: ScatterRows) -> list[Step]:
        node, indices, dtype = scatter.node, scatter.indices, scatter.node.output.spec.dtype
        if host_reason(node, self._dtypes):
            return [self._host(scatter)]
        steps = [] if scatter.onto is None else self._launch(scatter.onto)
        if not scatter.checked:
            steps.append(self._check_indices(node, indices))
        (out,) = scatter.outputs
        arguments: tuple[KernelArgument, ...] = (
            BufferArgument(out.buffer, out.offset),
            BufferArgument(indices.layout.buffer, indices.layout.offset),
            BufferArgument(scatter.rows.buffer, scatter.rows.offset),
            Int64Argument(indices.num_indices),
            Int64Argument(indices.row_length),
            Int64Argument(indices.distance),
            *map(Int64Argument, (*indices.axis_sizes, *indices.axis_strides)),
        )
        kernel = KernelProgram(routines.scatter(dtype, indices.dtype, indices.depth, scatter.join))
        reads = frozenset([out.buffer, indices.layout.buffer, scatter.rows.buffer])
        items, writes = indices.iterations * indices.row_length, frozenset([out.buffer])
        steps.append(Launch(node, (node,), kernel, arguments, items, LOCAL_SIZE, reads, writes))
        return steps

    def _check_indices(self, node: Node, indices: ScatterIndices) -> Launch:
        """The bounds check of the indices of a scatter, before it writes."""
        kernel = KernelProgram(routines.indices_inside(indices.dtype, indices.depth), ((OUT_OF_RANGE, node),))
        arguments: tuple[KernelArgument, ...] = (
            BufferArgument(indices.layout.buffer, indices.layout.offset),
            *map(Int64Argument, indices.axis_sizes),
        )
        reads = frozenset([indices.layout.buffer])
        return Launch(node, (node,), kernel, arguments, indices.num_indices, LOCAL_SIZE, reads, frozenset())

    def _copy(self, copy: CopyMemory) -> list[Step]:
        size, nbytes = copy.node.output.spec.dtype.size, copy.node.output.spec.nbytes
        source_at, target = [ByteAddress(x.buffer, x.offset * size) for x in (*copy.inputs, *copy.outputs)]
        return [] if source_at == target else [CopyOnDevice(copy.node, source_at, target, nbytes)]

    # Loops

    def _loop(self, loop: RunLoop) -> list[Step]:
        assert not loop.memory.changing_sizes, "no size depends on data"
        assert not loop.memory.stacks, "the sizes of stacks follow from those of arguments"
        condition: ValueLayout | None = loop.condition
        return [
            *self._steps(loop.start),
            HostLoop(
                loop.node,
                loop,
                tuple(self.bounds.compared_loops(loop)),
                tuple(self._steps(loop.test)),
                tuple(self._steps(loop.body)),
                None if condition is None else self._operand(*condition),
            ),
        ]
