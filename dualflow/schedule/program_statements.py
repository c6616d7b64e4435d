"""The statements of a program: one for each call of a plan, with layouts; nothing depends on a machine.

    LaunchNest: a loop nest                         LaunchPieces: a loop nest for each piece of an output
    Multiply: a matrix product                  FusedProduct: one with an epilogue
    ScatterRows: a scatter
    CheckBounds: of a scatter's indices         CopyMemory: a copy of bytes
    RequireCondition: a check                   CallRoutine: a routine of a backend, or the op's NumPy kernel
    ChooseBranch: a conditional                 RunLoop: a loop
    RunTasks: statements that may run concurrently

Each call of the plan is one statement, in the plan's order; those of a region are inside of one more. The
decisions that all backends share are made here: which copy or fill comes before a product or a scatter,
whether the indices of a scatter are checked already, what ends a loop, in which order it takes rows, and
which of its stacks grow. A renderer adds what differs between machines: vectors and threads, how a failed
check ends the program, and the allocation of growable buffers and of buffers of dynamic size.

Statements are named tuples, as those of kernels are (see :mod:`dualflow.schedule.kernel_statements`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dualflow.core.records import NamedTuple
from dualflow.graph.control_spec import loop_of
from dualflow.graph.fused import FUSED_PRODUCT, epilogue_of, product_of
from dualflow.graph.ir import Node, Value
from dualflow.graph.views import sizes
from dualflow.ops.integer_product import INTEGER_PRODUCT
from dualflow.schedule.assembled_outputs import pieces, spread
from dualflow.schedule.concurrency import Region
from dualflow.schedule.copying import copy_elements, fill_elements
from dualflow.schedule.nest import Layout, contiguous_strides
from dualflow.schedule.operands import CallKind
from dualflow.schedule.planned import LoopMemory, Plan, PlannedCall, PlannedLoop, StackRow, TripCount
from dualflow.schedule.scatter_calls import ScatterIndices, indices_of, join_of
from dualflow.schedule.sliding import SlidingWindows

INITIAL_CAPACITY = 64
"""The initial capacity of a growable buffer, in rows; it is doubled when the buffer is full."""


PRODUCT_IN_REGISTERS = -1
"""The buffer of a product that isn't stored: its elements are in registers."""

ValueLayout = tuple[Layout, Value]
"""A value and its layout."""


class LaunchNest(NamedTuple):
    """The loop nest of a fused node."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]


class LaunchPieces(NamedTuple):
    """Loop nests that assemble an output from pieces."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    pieces: tuple[LaunchNest, ...]


class Multiply(NamedTuple):
    """A batch of matrix products: ``out = scale * (x @ y)``, or ``out += scale * (x @ y)``.

    Attributes:
        onto: the copy of the addend to ``out``, which runs first; None if it is there already, or there is
            none.
        shape: rows, columns and inner size.
        batch: the sizes of the other axes.
        matrices: the layouts of x, y and out, with a stride for each axis of the batch.
        scale: the factor.
        accumulate: whether the product is added to ``out``.
        windows: the windows of the tensor x that are the matrix; None if x is a matrix itself.
        by_window: whether windows are rows; else they are columns.

    In a product of 8-bit integers, the inner size and the strides of x and y count groups of four bytes.
    """

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    onto: LaunchNest | None
    shape: tuple[int, int, int]
    batch: tuple[int, ...]
    matrices: tuple[Layout, Layout, Layout]
    scale: float
    accumulate: bool
    windows: SlidingWindows | None
    by_window: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute."""
        rows, columns, _ = self.shape
        return 0 in (*self.batch, rows, columns)

    @property
    def multiplications(self) -> int:
        """The number of multiplications."""
        return math.prod((*self.batch, *self.shape))


class FusedProduct(NamedTuple):
    """A matrix product, and a nest that computes the outputs from its elements.

    Attributes:
        product: the product, whose result is buffer :data:`PRODUCT_IN_REGISTERS`: it isn't stored.
        epilogue: the nest, which reads the product there.
    """

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    product: Multiply
    epilogue: LaunchNest


class ScatterRows(NamedTuple):
    """A scatter of rows.

    Attributes:
        onto: the fill or copy that initialises the output and runs first; None if it has the old rows.
        indices: the indices of the rows.
        rows: the layout of the rows.
        join: how they are combined with old rows; see :class:`dualflow.ops.op_kinds.Scatter`.
        checked: whether a :class:`CheckBounds` has checked the indices.
    """

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    onto: LaunchNest | None
    indices: ScatterIndices
    rows: Layout
    join: str
    checked: bool


class CheckBounds(NamedTuple):
    """Ends the program unless all indices of the node ``scatter`` are in bounds."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    scatter: Node
    indices: ScatterIndices


class CopyMemory(NamedTuple):
    """Copies the bytes of the input, which is contiguous."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]


class RequireCondition(NamedTuple):
    """Ends the program unless ``condition`` holds; ``reads`` are the values that the error shows."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    condition: ValueLayout
    reads: tuple[ValueLayout, ...]


class CallRoutine(NamedTuple):
    """Calls a routine of the backend for this kind of node, or the op's NumPy kernel."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    kind: CallKind


class ChooseBranch(NamedTuple):
    """Runs the branch whose number is the value of ``number``; the last one if it is out of range."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    number: ValueLayout
    branches: tuple[tuple[Statement, ...], ...]


class RunLoop(NamedTuple):
    """A loop: ``start``, then iterations of ``test`` and ``body``.

    Attributes:
        start: copies the initial values to the buffers of the loop-carried values.
        test: computes the condition.
        body: an iteration.
        condition: the value that must be true for another iteration, after ``test``; None if there is none.
        trip_count: the trip count.
        backwards: whether the first iteration takes the last row, and so on.
        memory: the buffers that iterations move, exchange or grow.
    """

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    start: tuple[Statement, ...]
    test: tuple[Statement, ...]
    body: tuple[Statement, ...]
    condition: ValueLayout | None
    trip_count: TripCount
    backwards: bool
    memory: LoopMemory

    @property
    def growable(self) -> tuple[StackRow, ...]:
        """The stacked values whose buffers grow, as the trip count is dynamic."""
        return tuple([row for row in self.memory.rows if row.grows])

    @property
    def growable_bytes(self) -> int:
        """The bytes that an iteration adds to growable buffers."""
        return sum(row.nbytes for row in self.growable)


class RunTasks(NamedTuple):
    """Tasks that threads may run at the same time.

    ``node``, ``inputs`` and ``outputs`` are those of the first statement, of none and of all.

    Attributes:
        region: the tasks that each task waits for, and the number of threads that are of use.
        tasks: the statements of each.
    """

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    region: Region
    tasks: tuple[tuple[Statement, ...], ...]


Statement = (
    LaunchNest
    | LaunchPieces
    | Multiply
    | FusedProduct
    | ScatterRows
    | CheckBounds
    | CopyMemory
    | RequireCondition
    | CallRoutine
    | ChooseBranch
    | RunLoop
    | RunTasks
)

_WITH_BODIES: Final = frozenset({ChooseBranch, RunLoop, RunTasks})
"""The types of statements that contain others."""


def statements(plan: Plan) -> tuple[Statement, ...]:
    """The statements of the program that runs ``plan``."""
    return _statements(plan.calls, set(), plan.regions)


def walk_program(program: Iterable[Statement]) -> Iterator[Statement]:
    """All statements in program order, including those inside conditionals and loops."""
    pending = [iter(program)]
    while pending:
        statement = next(pending[-1], None)
        if statement is None:
            pending.pop()
            continue
        yield statement
        if type(statement) not in _WITH_BODIES:
            continue
        pending += map(iter, reversed(bodies(statement)))
        if isinstance(statement, RunLoop):
            pending.append(iter(statement.start))


def bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The branches of a conditional, the test and body of a loop, or tasks; empty for other statements."""
    if isinstance(statement, ChooseBranch):
        return statement.branches
    if isinstance(statement, RunTasks):
        return statement.tasks
    return (statement.test, statement.body) if isinstance(statement, RunLoop) else ()


def unconditional(program: Iterable[Statement]) -> Iterator[Statement]:
    """The statements that run in each call of ``program``: not those of branches and loops."""
    for statement in program:
        if isinstance(statement, RunTasks):
            for task in statement.tasks:
                yield from task
        else:
            yield statement


def nests_of(statement: Statement) -> tuple[LaunchNest, ...]:
    """The loop nests that a statement runs itself, without those of its bodies."""
    match statement:
        case LaunchNest():
            return (statement,)
        case LaunchPieces():
            return statement.pieces
        case Multiply() | ScatterRows():
            return () if statement.onto is None else (statement.onto,)
    return ()


def _statements(
    calls: Iterable[PlannedCall], checked: set[Node], regions: Sequence[Region] = ()
) -> tuple[Statement, ...]:
    """The statements of calls; ``checked`` are the scatters whose indices have been checked."""
    program = []
    for call in calls:
        program.append(_statement(call, checked))  # noqa: PERF401, a comprehension is one more frame
    for region in reversed(regions):
        steps = region.steps
        program[steps.start : steps.stop] = [_tasks(program, region)]
    return tuple(program)


def _tasks(program: Sequence[Statement], region: Region) -> RunTasks:
    """The RunTasks statement for a region of concurrent steps, which are positions in ``program``."""
    tasks = tuple([tuple([program[i] for i in task.steps]) for task in region.tasks])
    outputs = tuple([layout for i in region.steps for layout in program[i].outputs])
    return RunTasks(program[region.steps.start].node, (), outputs, region, tasks)


def _statement(call: PlannedCall, checked: set[Node]) -> Statement:
    node, inputs, outputs, *_ = call
    match call.kind:
        case CallKind.KERNEL:
            return LaunchNest(node, inputs, outputs)
        case CallKind.ASSEMBLY:
            parts = [LaunchNest(copy, source, (target,)) for copy, source, target in pieces(call)]
            return LaunchPieces(node, inputs, outputs, tuple(parts))
        case CallKind.PRODUCT if node.op is FUSED_PRODUCT:
            return _fused_product(node, inputs, outputs)
        case CallKind.PRODUCT:
            return _product(node, inputs, outputs)
        case CallKind.SCATTER:
            return _scatter(node, inputs, outputs, checked=node in checked)
        case CallKind.BOUNDS:
            scatter: Node = node.attrs["scatter"]
            checked.add(scatter)
            return CheckBounds(node, inputs, outputs, scatter, indices_of(scatter, inputs[0]))
        case CallKind.MOVE:
            return CopyMemory(node, inputs, outputs)
        case CallKind.CHECK:
            condition, *reads = zip(inputs, node.inputs, strict=True)
            return RequireCondition(node, inputs, outputs, condition, tuple(reads))
        case CallKind.CONTROL if call.iterations is not None:
            return _loop(call, call.iterations, checked)
        case CallKind.CONTROL:
            branches = []
            for block in call.blocks:
                branches.append(_statements(block.calls, checked, block.regions))  # noqa: PERF401
            return ChooseBranch(node, inputs, outputs, (inputs[0], node.inputs[0]), tuple(branches))
        case kind:
            return CallRoutine(node, inputs, outputs, kind)


def _product(node: Node, inputs: tuple[Layout, ...], outputs: tuple[Layout, ...]) -> Multiply:
    if node.op is INTEGER_PRODUCT:
        return _integer_product(node, inputs, outputs)
    x, y, *addend = inputs
    (out,) = outputs
    onto = None
    if addend and addend[0] != out:
        onto = LaunchNest(copy_elements(sizes(node.output), node.output.spec.dtype), tuple(addend), outputs)
    transpose_x, windows = bool(node.attrs.get("transpose_a")), node.attrs.get("windows")
    x_shape = sizes(node.inputs[0])
    if windows is not None:  # of a contiguous tensor
        x, x_shape = Layout(x.buffer, x.offset, (0, 0)), sizes(node.output)
    elif transpose_x:
        x = _transposed(x)
    *batch, rows, columns = sizes(node.output)
    inner = sizes(node.inputs[1])[-1 if node.attrs.get("transpose_b") else -2]
    if node.attrs.get("transpose_b"):
        y = _transposed(y)
    shapes = (x_shape, sizes(node.inputs[1]), sizes(node.output))
    x, y, out = [
        Layout(i.buffer, i.offset, spread(i, (*shape[:-2], 2, 2), (*batch, 2, 2)).strides)
        for i, shape in zip((x, y, out), shapes, strict=True)
    ]
    return Multiply(
        node,
        inputs,
        outputs,
        onto=onto,
        shape=(rows, columns, inner),
        batch=tuple(batch),
        matrices=(x, y, out),
        scale=node.attrs.get("scale", 1.0),
        accumulate=bool(addend),
        windows=windows,
        by_window=not transpose_x,
    )


def _fused_product(node: Node, inputs: tuple[Layout, ...], outputs: tuple[Layout, ...]) -> FusedProduct:
    product, epilogue = product_of(node), epilogue_of(node)
    count, element = len(product.inputs), epilogue.inputs[0].spec
    result = Layout(PRODUCT_IN_REGISTERS, 0, contiguous_strides(product.output.spec.shape))
    read = Layout(PRODUCT_IN_REGISTERS, 0, contiguous_strides(element.shape))
    return FusedProduct(
        node,
        inputs,
        outputs,
        _product(product, inputs[:count], (result,)),
        LaunchNest(epilogue, (read, *inputs[count:]), outputs),
    )


def _integer_product(node: Node, inputs: tuple[Layout, ...], outputs: tuple[Layout, ...]) -> Multiply:
    """A product of contiguous bytes: the inner size, and the strides of factors, count groups of them."""
    (x, y), (out,) = inputs, outputs
    *batch, rows, columns = sizes(node.output)
    *y_batch, groups, _, _ = sizes(node.inputs[1])
    x_shape, y_shape = (*sizes(node.inputs[0])[:-1], groups), (*y_batch, groups, columns)
    factors = [
        spread(
            Layout(i.buffer, i.offset, contiguous_strides(shape)), (*shape[:-2], 2, 2), (*batch, 2, 2)
        ).strides
        for i, shape in ((x, x_shape), (y, y_shape))
    ]
    left, right = (Layout(i.buffer, i.offset, s) for i, s in zip((x, y), factors, strict=True))
    return Multiply(
        node,
        inputs,
        outputs,
        onto=None,
        shape=(rows, columns, groups),
        batch=tuple(batch),
        matrices=(left, right, out),
        scale=1.0,
        accumulate=False,
        windows=None,
        by_window=True,
    )


def _transposed(layout: Layout) -> Layout:
    """The layout of the transposed matrix."""
    *batch, down, across = layout.strides
    return Layout(layout.buffer, layout.offset, (*batch, across, down))


def _scatter(
    node: Node, inputs: tuple[Layout, ...], outputs: tuple[Layout, ...], *, checked: bool
) -> ScatterRows:
    *old, indices, rows = inputs
    shape, dtype = sizes(node.output), node.output.spec.dtype
    onto = None
    if not old:
        onto = LaunchNest(fill_elements(shape, dtype, 0), (), outputs)
    elif old[0] != outputs[0]:
        onto = LaunchNest(copy_elements(shape, dtype), (old[0],), outputs)
    return ScatterRows(node, inputs, outputs, onto, indices_of(node, indices), rows, join_of(node), checked)


def _loop(call: PlannedCall, iterations: PlannedLoop, checked: set[Node]) -> RunLoop:
    loop, (*tests, body) = loop_of(call.node), call.blocks
    condition = None
    if loop.condition is not None:
        condition = tests[0].results[0], loop.condition.outputs[0]
    return RunLoop(
        call.node,
        call.inputs,
        call.outputs,
        start=_statements(iterations.start, checked),
        test=_statements(tests[0].calls, checked, tests[0].regions) if tests else (),
        body=_statements(body.calls, checked, body.regions),
        condition=condition,
        trip_count=iterations.trip_count,
        backwards=loop.reverse and not (iterations.trip_count.same_as is None and loop.length is None),
        memory=iterations.memory,
    )
