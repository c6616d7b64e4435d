"""A plan as plain data: the calls of a graph in order, and the table of buffers that they work on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.graph.capabilities import CPU_CACHES, CacheBytes
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Node, Value
from dualflow.graph.symbolic_size_ops import Axis
from dualflow.graph.views import sizes
from dualflow.schedule.concurrency import Region
from dualflow.schedule.nest import Layout
from dualflow.schedule.operands import CallKind, kind_of
from dualflow.sizes.symbolic_sizes import SizeFactor, SymInt, is_static, size_variables

NO_SIZES: Final[Mapping[SizeFactor, tuple[Axis, ...]]] = MappingProxyType({})


class PlannedBody(NamedTuple):
    """The calls of a branch, condition or loop body.

    Attributes:
        calls: the calls, in order.
        results: for a condition, the layouts of its results.
        regions: the calls that may run concurrently.
    """

    calls: tuple[PlannedCall, ...]
    results: tuple[Layout, ...] = ()
    regions: tuple[Region, ...] = ()


class StackRow(NamedTuple):
    """The current row of a stack in a loop; a stack has one row for each iteration.

    Attributes:
        buffer: the buffer whose address moves along the rows.
        stack: the layout of the whole stack.
        nbytes: the size of a row.
        dtype: of the elements.
        grows: whether the stack is a growable buffer, since the trip count is dynamic.
    """

    buffer: int
    stack: Layout
    nbytes: int
    dtype: DType
    grows: bool


class ChangingSize(NamedTuple):
    """A size of a loop-carried value that iterations change.

    Attributes:
        variable: the variable.
        start: its value in the first iteration.
        following: its value in the next iteration.
    """

    variable: int
    start: int
    following: int


class TripCount(NamedTuple):
    """The trip count of a loop.

    Attributes:
        loop: the loop's id, by which other loops refer to its trip count.
        limit: the trip count, or its maximum if there is a condition; None if it is dynamic.
        same_as: the id of the loop whose dynamic trip count this loop has; None if it has its own.
    """

    loop: int
    limit: int | None
    same_as: int | None


class LoopMemory(NamedTuple):
    """The buffers of a loop that change between iterations: rows, swapped buffers, growable stacks.

    Attributes:
        rows: the rows of stacks, whose addresses move between iterations.
        changing_sizes: the sizes of loop-carried values that an iteration may change.
        double_buffers: for each loop-carried value of such a size, the current and the next buffer, which
            are exchanged after an iteration.
        stacks: the buffers of stacks whose dynamic size is computed before the first iteration, and the
            factors of their bytes; see :func:`dynamic_buffers`.
    """

    rows: tuple[StackRow, ...]
    changing_sizes: tuple[ChangingSize, ...] = ()
    double_buffers: tuple[tuple[int, int], ...] = ()
    stacks: tuple[tuple[int, list[int]], ...] = ()


class PlannedLoop(NamedTuple):
    """The parts of a planned loop except its bodies.

    Attributes:
        start: copies of the initial values to the buffers of the loop-carried values.
        trip_count: the trip count.
        memory: the buffers that iterations move, exchange or grow.
    """

    start: tuple[PlannedCall, ...]
    trip_count: TripCount
    memory: LoopMemory


class PlannedCall(NamedTuple):
    """One call of the plan: a node, and the layouts of its inputs and outputs.

    ``blocks`` are the bodies: one for each branch of a conditional; for a loop, one for its condition, if it
    has one, and one for its body.
    """

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    blocks: tuple[PlannedBody, ...] = ()
    iterations: PlannedLoop | None = None

    @property
    def kind(self) -> CallKind:
        """The kind of call that runs the node; see :func:`dualflow.schedule.operands.kind_of`."""
        return kind_of(self.node)

    def walk(self) -> Iterator[PlannedCall]:
        """The call, and those inside it."""
        pending = [self]
        while pending:
            call = pending.pop()
            yield call
            start = call.iterations.start if call.iterations else ()
            pending += reversed([*start, *(c for b in call.blocks for c in b.calls)])


def dynamic_buffers(
    layouts: Sequence[Layout], values: Sequence[Value], bound: Collection[SizeFactor] = ()
) -> dict[int, list[int]]:
    """The buffers of dynamic size that hold ``values``, each with the factors of its bytes.

    Sizes over the variables ``bound`` alone are known before the program runs.
    """
    return {
        layout.buffer: [v.spec.dtype.size, *sizes(v)]
        for layout, v in zip(layouts, values, strict=True)
        if v.spec.shape.is_static and not size_variables(v.spec.shape) <= set(bound)
    }


class Plan(NamedTuple):
    """The calls of a graph and its buffer table.

    The buffer table holds, in order: the inputs, the constants, the outputs, the temporaries, and the arena.
    After these, native code stores addresses of its own.

    Attributes:
        calls: the calls, in order.
        arguments: the specs of the inputs.
        constants: their arrays.
        outputs: the specs of the outputs.
        temporaries: the specs of the arrays that host calls read or write.
        arena_bytes: the size of the arena.
        argument_sizes: if all sizes follow from those of the inputs, the size variables and the axes of
            inputs that have these sizes: a call computes all sizes before the program runs.
        row_buffers: the number of addresses for rows and stacks.
        loops: the number of loops with a counter.
        has_dynamic_sizes: whether the program computes sizes while it runs.
        costs: the cost model of the processor.
        regions: the calls that may run concurrently; their steps are positions in ``calls``.
    """

    calls: tuple[PlannedCall, ...]
    arguments: tuple[TensorSpec, ...]
    constants: tuple[np.ndarray[Any, Any], ...]
    outputs: tuple[TensorSpec, ...]
    temporaries: tuple[TensorSpec, ...]
    arena_bytes: int
    row_buffers: int = 0
    loops: int = 0
    has_dynamic_sizes: bool = False
    costs: CostModel = CPU
    caches: CacheBytes = CPU_CACHES
    argument_sizes: Mapping[SizeFactor, tuple[Axis, ...]] = NO_SIZES
    regions: tuple[Region, ...] = ()

    @property
    def inputs(self) -> int:
        return len(self.arguments)

    @property
    def workspace(self) -> int:
        """The index in the buffer table of the kernels' workspace, if its size is dynamic."""
        return self.arena + 1 + self.row_buffers

    @property
    def first_output(self) -> int:
        return self.inputs + len(self.constants)

    @property
    def first_temporary(self) -> int:
        return self.first_output + len(self.outputs)

    @property
    def arena(self) -> int:
        """The index of the arena in the table of buffers that a program receives."""
        return self.first_temporary + len(self.temporaries)

    def walk(self) -> Iterator[PlannedCall]:
        """All calls in order, including those inside conditionals and loops."""
        for call in self.calls:
            yield from call.walk()


def shapes_without_memory(node: Node) -> list[tuple[int, ...]]:
    """The shapes of several symbolic sizes inside a fused node that no operand has: no memory is allocated.

    So nothing else checks their numbers of elements, which a loop may have as its trip count.
    """
    body = body_of(node)
    if body is None:
        return []
    specs = [value.spec for inner in body.nodes for value in inner.outputs if value.spec.shape.is_static]
    operands = {tuple(value.spec.shape) for value in (*node.inputs, *node.outputs)}
    shapes = dict.fromkeys([tuple([d for d in spec.shape if d is not None]) for spec in specs])
    return [x for x in shapes if x not in operands and len([d for d in x if isinstance(d, SymInt)]) > 1]


def symbolic_shapes(plan: Plan) -> dict[tuple[int, ...], None]:
    """The distinct symbolic shapes in a program, including those inside kernels.

    Stacks whose length is the trip count of a while loop are left out: they grow.
    """
    specs = {id(spec): spec for spec in plan.arguments}  # many values share one
    for call in plan.walk():
        body = body_of(call.node)
        for node in (call.node, *(() if body is None else body.nodes)):
            for value in (*node.inputs, *node.outputs):
                specs[id(value.spec)] = value.spec
    shapes = [spec.shape for spec in specs.values() if not is_static(spec.shape)]
    return dict.fromkeys([tuple([d for d in x if d is not None]) for x in shapes if x.is_static])
