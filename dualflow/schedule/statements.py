"""A plan as a program: frozen statements, which say what happens, and where, without a machine in them.

    Launch a loop nest                          LaunchPieces, one for each piece of an output
    Multiply matrices                           ScatterRows to where integers say
    CheckBounds of a scatter's integers         CopyMemory as it is
    RequireCondition of the user's program      CallRoutine: other code of a backend, or the op's own kernel
    ChooseBranch of several, by a number        RunLoop of a loop

Each call of the plan is one statement, in the plan's order. What a call implies is decided here and nowhere
else: what a product is added to, or a scatter writes onto, is put in its place first; whether a scatter's
integers have been looked at; what ends a loop, in which order it takes rows, and which of its stacks grow.
A renderer adds what differs between machines: vectors and threads, how a failed check ends the program, and
how memory is found that grows, or whose size the run tells.

Statements are named tuples, as those of kernels are (see :mod:`dualflow.schedule.loop_program`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.graph.axes import sizes
from dualflow.graph.control_spec import loop_of
from dualflow.graph.ir import Node, Value
from dualflow.schedule.assembly import pieces, spread
from dualflow.schedule.copying import copy_elements, fill_elements
from dualflow.schedule.nest import Layout
from dualflow.schedule.operands import CallKind
from dualflow.schedule.planned import ChangingSize, Plan, PlannedCall, PlannedLoop, StackRow
from dualflow.schedule.scattering import depth_of, join_of, table_of
from dualflow.schedule.sliding import SlidingWindows

INITIAL_CAPACITY = 64
"""For so many iterations a stack that grows has room at first; then for twice as many each time."""


ValueLayout = tuple[Layout, Value]
"""A value, and where it lies."""


class ScatterIndices(NamedTuple):
    """The integers of a scatter: where they lie, how many name one place, and what describes the places.

    ``table`` is that of :func:`dualflow.schedule.scattering.table`.
    """

    layout: Layout
    dtype: DType
    depth: int
    table: tuple[int, ...]


class Launch(NamedTuple):
    """The loop nest of a fused node."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]


class LaunchPieces(NamedTuple):
    """Loop nests that put an output together."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    pieces: tuple[Launch, ...]


class Multiply(NamedTuple):
    """A product of each two matrices of a batch: ``out = scale * (x @ y)``, or ``out += scale * (x @ y)``.

    Attributes:
        onto: what copies the matrices to which the product is added to where it goes, before it is computed.
        shape: rows, columns and inner size.
        batch: the sizes of the other axes.
        matrices: where x, y and out lie, with a stride for each axis of the batch.
        scale: the factor.
        adds: whether the product is added to what is there.
        windows: those of a tensor that x has in place of a matrix.
        by_window: whether they are rows; else they are columns.
    """

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    onto: Launch | None
    shape: tuple[int, int, int]
    batch: tuple[int, ...]
    matrices: tuple[Layout, Layout, Layout]
    scale: float
    adds: bool
    windows: SlidingWindows | None
    by_window: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute."""
        rows, columns, _ = self.shape
        return 0 in (*self.batch, rows, columns)

    @property
    def multiplications(self) -> int:
        """How many numbers are multiplied."""
        return math.prod((*self.batch, *self.shape))


class ScatterRows(NamedTuple):
    """Rows put where integers say.

    Attributes:
        onto: what puts zeros, or the old rows, where the new ones go; None where these are there already.
        positions: the integers.
        rows: where the rows lie.
        join: how they meet what is there; see :class:`dualflow.ops.op_kinds.Scatter`.
        checked: whether a :class:`CheckBounds` has looked at the integers.
    """

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    onto: Launch | None
    indices: ScatterIndices
    rows: Layout
    join: str
    checked: bool


class CheckBounds(NamedTuple):
    """The program ends unless all positions of the node ``scatter`` are inside."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    scatter: Node
    indices: ScatterIndices


class CopyMemory(NamedTuple):
    """The bytes of the input, which lie one behind another."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]


class RequireCondition(NamedTuple):
    """The program ends unless ``condition`` holds; the error is made of what it ``reads``."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    condition: ValueLayout
    reads: tuple[ValueLayout, ...]


class CallRoutine(NamedTuple):
    """What a backend has code of its own for, by its kind, or runs as the op's own kernel."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    kind: CallKind


class ChooseBranch(NamedTuple):
    """The branch whose number lies at ``number``, the last for any other."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    number: ValueLayout
    branches: tuple[tuple[Statement, ...], ...]


class RunLoop(NamedTuple):
    """A loop: ``start``, then iterations, each with ``test`` before it and of ``body``.

    Attributes:
        counter: the loop's number, by which others name the iterations that it has made.
        length: the number of iterations, or the largest where a condition ends the loop; None for any.
        counted: in place of ``length``, the loop that has made as many iterations.
        backwards: whether the first iteration takes the last rows, and so on.
        condition: what must hold for another iteration, after the statements of ``test``; None for nothing.
        rows: what moves between iterations.
        sizes: those of what is carried that an iteration may change.
        exchanged: the buffers of what is carried in such a size, and those where an iteration puts the next
        one.
        stacks: the buffers of stacks of a size that the run tells before the first iteration, and its
        factors.
    """

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    start: tuple[Statement, ...]
    test: tuple[Statement, ...]
    body: tuple[Statement, ...]
    counter: int
    length: int | None
    counted: int | None
    backwards: bool
    condition: ValueLayout | None
    rows: tuple[StackRow, ...]
    sizes: tuple[ChangingSize, ...]
    exchanged: tuple[tuple[int, int], ...]
    stacks: tuple[tuple[int, list[int]], ...]

    @property
    def growable(self) -> tuple[StackRow, ...]:
        """The rows that the loop stacks without knowing how many there will be."""
        return tuple([row for row in self.rows if row.grows])

    @property
    def growable_bytes(self) -> int:
        """What an iteration adds to the stacks that grow."""
        return sum(row.nbytes for row in self.rows if row.grows)


Statement = (
    Launch
    | LaunchPieces
    | Multiply
    | ScatterRows
    | CheckBounds
    | CopyMemory
    | RequireCondition
    | CallRoutine
    | ChooseBranch
    | RunLoop
)


def statements(plan: Plan) -> tuple[Statement, ...]:
    """The program of ``plan``."""
    return _statements(plan.calls, set())


def walk(program: Iterable[Statement]) -> Iterator[Statement]:
    """All statements, those inside conditionals and loops too, in order."""
    for statement in program:
        yield statement
        if isinstance(statement, RunLoop):
            yield from walk(statement.start)
        for body in bodies(statement):
            yield from walk(body)


def bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """What a conditional may run, and a loop in each iteration."""
    if isinstance(statement, ChooseBranch):
        return statement.branches
    return (statement.test, statement.body) if isinstance(statement, RunLoop) else ()


def launches(statement: Statement) -> tuple[Launch, ...]:
    """The loop nests that a statement itself runs."""
    match statement:
        case Launch():
            return (statement,)
        case LaunchPieces():
            return statement.pieces
        case Multiply() | ScatterRows():
            return () if statement.onto is None else (statement.onto,)
    return ()


def _statements(calls: Iterable[PlannedCall], checked: set[Node]) -> tuple[Statement, ...]:
    """The statements of calls; ``checked`` are the scatters whose positions have been looked at."""
    return tuple([_statement(call, checked) for call in calls])


def _statement(call: PlannedCall, checked: set[Node]) -> Statement:
    node, inputs, outputs, *_ = call
    match call.kind:
        case CallKind.KERNEL:
            return Launch(node, inputs, outputs)
        case CallKind.ASSEMBLY:
            parts = [Launch(made, source, (target,)) for made, source, target in pieces(call)]
            return LaunchPieces(node, inputs, outputs, tuple(parts))
        case CallKind.PRODUCT:
            return _product(node, inputs, outputs)
        case CallKind.SCATTER:
            return _scatter(node, inputs, outputs, checked=node in checked)
        case CallKind.BOUNDS:
            scatter: Node = node.attrs["scatter"]
            checked.add(scatter)
            return CheckBounds(node, inputs, outputs, scatter, _positions(scatter, inputs[0]))
        case CallKind.MOVE:
            return CopyMemory(node, inputs, outputs)
        case CallKind.CHECK:
            condition, *reads = zip(inputs, node.inputs, strict=True)
            return RequireCondition(node, inputs, outputs, condition, tuple(reads))
        case CallKind.CONTROL if call.iterations is not None:
            return _loop(call, call.iterations, checked)
        case CallKind.CONTROL:
            branches = tuple([_statements(block.calls, checked) for block in call.blocks])
            return ChooseBranch(node, inputs, outputs, (inputs[0], node.inputs[0]), branches)
        case kind:
            return CallRoutine(node, inputs, outputs, kind)


def _product(node: Node, inputs: tuple[Layout, ...], outputs: tuple[Layout, ...]) -> Multiply:
    x, y, *addend = inputs
    (out,) = outputs
    onto = None
    if addend and addend[0] != out:
        onto = Launch(copy_elements(sizes(node.output), node.output.spec.dtype), tuple(addend), outputs)
    turned, windows = bool(node.attrs.get("transpose_a")), node.attrs.get("windows")
    of_x = sizes(node.inputs[0])
    if windows is not None:  # of a tensor whose elements lie in order
        x, of_x = Layout(x.buffer, x.offset, (0, 0)), sizes(node.output)
    elif turned:
        x = _swapped(x)
    *batch, rows, columns = sizes(node.output)
    inner = sizes(node.inputs[1])[-1 if node.attrs.get("transpose_b") else -2]
    if node.attrs.get("transpose_b"):
        y = _swapped(y)
    shapes = (of_x, sizes(node.inputs[1]), sizes(node.output))
    x, y, out = [
        Layout(i.buffer, i.offset, spread(i, (*shape[:-2], 2, 2), (*batch, 2, 2)).strides)
        for i, shape in zip((x, y, out), shapes, strict=True)
    ]
    scale = node.attrs.get("scale", 1.0)
    shape, matrices = (rows, columns, inner), (x, y, out)
    return Multiply(
        node, inputs, outputs, onto, shape, tuple(batch), matrices, scale, bool(addend), windows, not turned
    )


def _swapped(layout: Layout) -> Layout:
    """A matrix with its axes exchanged."""
    *batch, down, across = layout.strides
    return Layout(layout.buffer, layout.offset, (*batch, across, down))


def _scatter(
    node: Node, inputs: tuple[Layout, ...], outputs: tuple[Layout, ...], *, checked: bool
) -> ScatterRows:
    *old, indices, rows = inputs
    shape, dtype = sizes(node.output), node.output.spec.dtype
    onto = None
    if not old:
        onto = Launch(fill_elements(shape, dtype, 0), (), outputs)
    elif old[0] != outputs[0]:
        onto = Launch(copy_elements(shape, dtype), (old[0],), outputs)
    return ScatterRows(node, inputs, outputs, onto, _positions(node, indices), rows, join_of(node), checked)


def _positions(scatter: Node, layout: Layout) -> ScatterIndices:
    dtype = scatter.inputs[-2].spec.dtype
    return ScatterIndices(layout, dtype, depth_of(scatter), tuple(table_of(scatter)))


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
        test=_statements(tests[0].calls, checked) if tests else (),
        body=_statements(body.calls, checked),
        counter=iterations.counter,
        length=loop.length,
        counted=iterations.counted,
        backwards=loop.reverse and (iterations.counted is not None or loop.length is not None),
        condition=condition,
        rows=iterations.rows,
        sizes=iterations.sizes,
        exchanged=iterations.exchanged,
        stacks=iterations.stacks,
    )
