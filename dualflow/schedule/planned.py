"""A plan as plain data: the calls of a graph in order, and the table of buffers that they work on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.core.symbolic_sizes import size_variables
from dualflow.graph.axes import sizes
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.ir import Node, Value
from dualflow.schedule.nest import Layout
from dualflow.schedule.operands import CallKind, kind_of


class PlannedBody(NamedTuple):
    """Calls of a body, and where its results lie: those of a condition, else none."""

    calls: tuple[PlannedCall, ...]
    results: tuple[Layout, ...] = ()


class StackRow(NamedTuple):
    """A row of a stack in a loop: buffer ``slot`` moves along the rows of ``stack``, each of ``nbytes``.

    The stack ``grows`` where the loop makes it without knowing how many rows there will be.
    """

    slot: int
    stack: Layout
    nbytes: int
    dtype: DType
    grows: bool


class ChangingSize(NamedTuple):
    """A size of what a loop carries: ``extent`` in an iteration, ``start`` in the first, then
    ``following``."""

    extent: int
    start: int
    following: int


class PlannedLoop(NamedTuple):
    """How a loop runs, beside its bodies.

    Attributes:
        start: copies of what is carried to where it is carried.
        rows: what moves between iterations.
        counter: the loop's number; ``counted`` is that of the loop whose iterations it repeats, if only that
            knows how many they are.
        sizes: those of what is carried that an iteration may change.
        exchanged: the buffers of what is carried in such a size, and those where an iteration puts the next
        one.
        stacks: the buffers of stacks of a size that the run tells before the first iteration, as
            :func:`blocks_made` has them.
    """

    start: tuple[PlannedCall, ...]
    rows: tuple[StackRow, ...]
    counter: int
    counted: int | None
    sizes: tuple[ChangingSize, ...] = ()
    exchanged: tuple[tuple[int, int], ...] = ()
    stacks: tuple[tuple[int, list[int]], ...] = ()


class PlannedCall(NamedTuple):
    """One step of the program: ``node`` on inputs and outputs that lie as given.

    A conditional has a block for each branch; a loop one for its condition, if it has one, and one for its
    body.
    """

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    blocks: tuple[PlannedBody, ...] = ()
    iterations: PlannedLoop | None = None

    @property
    def kind(self) -> CallKind:
        """How the node runs; see :func:`dualflow.schedule.operands.kind_of`."""
        return kind_of(self.node)

    def walk(self) -> Iterator[PlannedCall]:
        """The call, and those inside it."""
        yield self
        for call in (
            *(self.iterations.start if self.iterations else ()),
            *(c for b in self.blocks for c in b.calls),
        ):
            yield from call.walk()


def blocks_made(layouts: Sequence[Layout], values: Sequence[Value]) -> dict[int, list[int]]:
    """The buffers that get memory of a size that only the run tells, and the factors of their bytes.

    ``values`` are those that are made at ``layouts``.
    """
    made = zip(layouts, values, strict=True)
    return {
        layout.buffer: [v.spec.dtype.size, *sizes(v)]
        for layout, v in made
        if v.spec.shape.is_static and size_variables(v.spec.shape)
    }


class Plan(NamedTuple):
    """The calls of a graph and its buffer table.

    The table holds, in order: the inputs (of specs ``arguments``), the constants, the outputs, the arrays
    that host calls read or write (``temporaries``), and the arena. Behind it, native code keeps ``slots``
    addresses of its own, for rows and stacks, and counts the iterations of ``loops`` loops. ``sized``:
    whether it learns sizes on its way. ``costs`` are the figures by which kernels and calls are
    written.
    """

    calls: tuple[PlannedCall, ...]
    arguments: tuple[TensorSpec, ...]
    constants: tuple[np.ndarray[Any, Any], ...]
    outputs: tuple[TensorSpec, ...]
    temporaries: tuple[TensorSpec, ...]
    arena_bytes: int
    slots: int = 0
    loops: int = 0
    sized: bool = False
    costs: CostModel = CPU

    @property
    def inputs(self) -> int:
        return len(self.arguments)

    @property
    def workspace(self) -> int:
        """The place of kernels' own memory where its size is told by the run: behind the slots."""
        return self.arena + 1 + self.slots

    @property
    def first_output(self) -> int:
        return self.inputs + len(self.constants)

    @property
    def first_temporary(self) -> int:
        return self.first_output + len(self.outputs)

    @property
    def arena(self) -> int:
        """The arena's place in the table."""
        return self.first_temporary + len(self.temporaries)

    def walk(self) -> Iterator[PlannedCall]:
        """All calls, those inside conditionals and loops too."""
        for call in self.calls:
            yield from call.walk()
