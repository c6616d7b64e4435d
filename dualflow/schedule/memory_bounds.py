"""Bounds of a program's memory: compares the accesses of each statement with the sizes of the buffers.

The range of an operand is from its first to its last element in its buffer. It must be inside the buffer,
and the accesses of a statement must be inside the ranges of its operands:

    Launch                  every access of its kernel (:mod:`dualflow.schedule.access_bounds`)
    Multiply                the matrices, by rows, columns, inner size, batch and strides
    FusedProduct            the matrices, and every access of the epilogue's kernel
    ScatterRows             every element that a checked index can select, the indices, the rows
    CopyMemory, ...         the contiguous elements of the value
    RunLoop                 one row of each stack per iteration

In a program of static sizes all of this is decided before the program runs. In one of dynamic sizes the
bounds are polynomials over size variables (:class:`dualflow.sizes.symbolic_sizes.SymInt`). Bounds that these
leave undecided are compared with the bytes of the buffer before the statement runs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence

from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Node, Value
from dualflow.graph.views import sizes
from dualflow.schedule.access_bounds import NOTHING, AccessBounds, IndexRange
from dualflow.schedule.element_ranges import ElementRange, at_least, contains, fits, range_of_layout
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.nest import Layout
from dualflow.schedule.planned import Plan, dynamic_buffers
from dualflow.schedule.program_statements import (
    PRODUCT_IN_REGISTERS,
    ChooseBranch,
    LaunchNest,
    LaunchPieces,
    RunLoop,
    RunTasks,
    Statement,
    unconditional,
    walk_program,
)
from dualflow.schedule.refused_accesses import unsafe
from dualflow.schedule.statement_accesses import accesses_of
from dualflow.schedule.symbolic_accesses import undecided_accesses
from dualflow.sizes.size_functions import largest
from dualflow.sizes.symbolic_sizes import UndecidedSize, is_static


class MemoryBounds:
    """Compares the accesses of a program with the sizes of its buffers.

    Attributes:
        has_dynamic_sizes: whether the program computes sizes while it runs.
        nbytes: the bytes of each buffer; None if it has several sizes one after another.
        blocks: the buffers of dynamic size, which the program allocates while it runs.

    Args:
        plan: has the buffer table.
        program: its statements, whose loops have rows and stacks.
    """

    def __init__(self, plan: Plan, program: Sequence[Statement]) -> None:
        self.has_dynamic_sizes = plan.has_dynamic_sizes or bool(plan.argument_sizes)
        self._bound = frozenset(plan.argument_sizes)
        self.nbytes: dict[int, int | None] = {}
        self.blocks: set[int] = set()
        self._ranges: dict[tuple[Layout, Value], tuple[ElementRange | None, bool]] = {}
        self._counts: dict[int, int] = {}
        self._rows: dict[int, int] = {}
        self._reaches: dict[tuple[int, tuple[int, ...], int], tuple[AccessBounds, dict[int, IndexRange]]] = {}
        self.nbytes.update(_static_sizes(plan.arguments, 0))
        self.nbytes.update((plan.inputs + i, array.nbytes) for i, array in enumerate(plan.constants))
        self.nbytes.update(_static_sizes((*plan.outputs, *plan.temporaries), plan.first_output))
        self.nbytes[plan.arena] = plan.arena_bytes
        regions = [s.region for s in walk_program(program) if isinstance(s, RunTasks)]
        if regions:
            self.nbytes[plan.workspace] = functools.reduce(largest, [r.task_bytes for r in regions])
        allocating = list(walk_program(program)) if plan.row_buffers or self.has_dynamic_sizes else []
        rows = {row.buffer for s in allocating if isinstance(s, RunLoop) for row in s.memory.rows}
        for statement in allocating:
            self._add_allocations(statement, rows)

    def _add_allocations(self, statement: Statement, rows: Collection[int]) -> None:
        """Record the sizes of the buffers that a statement allocates."""
        blocks: dict[int, list[int]] = {}
        if isinstance(statement, RunLoop):
            blocks = dict(statement.memory.stacks)
            self.nbytes.update((row.buffer, row.nbytes) for row in statement.memory.rows)
            self._count(statement)
        elif not isinstance(statement, ChooseBranch | RunTasks):
            blocks = dynamic_buffers(statement.outputs, statement.node.outputs, self._bound)
        for buffer, factors in blocks.items():
            if buffer not in rows:
                nbytes = math.prod(factors)
                self.blocks.add(buffer)
                self.nbytes[buffer] = nbytes if self.nbytes.get(buffer, nbytes) == nbytes else None

    def _count(self, loop: RunLoop) -> None:
        """Record the loop whose trip count ``loop`` has, which is the row count of its growable buffers."""
        same_as = loop.trip_count.same_as if loop.condition is None else None
        self._counts[loop.trip_count.loop] = (
            loop.trip_count.loop if same_as is None else self._counts[same_as]
        )
        self._rows.update((row.stack.buffer, self._counts[loop.trip_count.loop]) for row in loop.growable)

    # Statements

    def check(self, program: Sequence[Statement]) -> list[tuple[ElementRange, Node]]:
        """The accesses that must be checked at run time, each with its node. There are none for static sizes.

        For kernels, see :meth:`launched`. Those of the bodies of conditionals and loops, which may not
        run, are left out.

        Raises:
            InternalError: an access is outside its buffer.
        """
        undecided = {id(statement): self.undecided(statement) for statement in walk_program(program)}
        return [(elements, s.node) for s in unconditional(program) for elements in undecided[id(s)]]

    def undecided(self, statement: Statement) -> list[ElementRange]:
        """The accesses of a statement that must be checked at run time. All others are proved.

        For kernels, see :meth:`launched`.

        Raises:
            InternalError: an access is outside its buffer.
        """
        if isinstance(statement, LaunchNest | LaunchPieces | RunTasks):
            return []
        if isinstance(statement, RunLoop):
            self._check_rows(statement)
        node, accessed = statement.node, accesses_of(statement)
        undecided: dict[ElementRange, None] = {}
        for i, (operand, inside) in enumerate(self._operands(statement)):
            if operand is None:
                continue
            if not inside:
                undecided[operand] = None
            elements = accessed.get(i)
            if elements is None or elements == operand:
                continue
            if contains(operand, elements) is False and not elements.counts:
                raise unsafe(node, f"it accesses {elements}, but its operand has {operand}")
            if not self._is_inside(elements, node):
                undecided[elements] = None
        return list(undecided)

    def _operands(self, statement: Statement) -> list[tuple[ElementRange | None, bool]]:
        """The ranges of inputs and outputs, and whether they are inside their buffers.

        The latter is False if that is known only at run time. The elements is None for an operand without
        elements, of a size that a host call computes, or that is a product in registers.
        """
        node, operands = statement.node, []
        for layouts, values in ((statement.inputs, node.inputs), (statement.outputs, node.outputs)):
            for layout, value in zip(layouts, values, strict=True):
                key = layout, value
                operand = self._ranges.get(key)
                if operand is None:
                    elements = None
                    if value.spec.shape.is_static and layout.buffer != PRODUCT_IN_REGISTERS:
                        elements = range_of_layout(layout, sizes(value), value.spec.dtype.size)
                    operand = self._ranges[key] = (
                        elements,
                        elements is None or self._is_inside(elements, node),
                    )
                operands.append(operand)
        return operands

    def _is_inside(self, elements: ElementRange, node: Node) -> bool:
        """Whether elements are inside their buffer; False if that is known only at run time."""
        nbytes = self.nbytes.get(elements.buffer)
        if nbytes is None:
            if self.has_dynamic_sizes:
                return False
            raise unsafe(node, f"it accesses {elements}, which has no allocation")
        inside = fits(elements, nbytes)
        if inside is False:
            raise unsafe(node, f"it accesses {elements}, which has {nbytes} bytes")
        return inside is True

    def _check_rows(self, loop: RunLoop) -> None:
        """Raise unless each stack has a row for each iteration.

        A growable buffer grows before a row is written. Loops that read it have at most the trip count of the
        loop that wrote it; see :meth:`compared_loops`.

        Raises:
            InternalError: a stack has fewer rows.
            UndecidedSize: whether it has fewer is known only at run time.
        """
        values = zip((*loop.inputs, *loop.outputs), (*loop.node.inputs, *loop.node.outputs), strict=True)
        lengths = {layout: value.spec.shape[0] for layout, value in values if value.spec.rank}
        for row in loop.memory.rows:
            length = lengths.get(row.stack)
            if row.grows:
                continue
            if loop.trip_count.same_as is not None and row.stack.buffer in self._rows:
                continue
            limit = loop.trip_count.limit
            enough = None if limit is None or length is None else at_least(length, limit)
            if enough is None and limit is not None and length is not None:
                raise UndecidedSize(f"whether {length} rows are enough for {limit} is known only at run time")
            if not enough:
                raise unsafe(loop.node, f"it has {limit} iterations, but a stack of {length} rows")

    def compared_loops(self, loop: RunLoop) -> list[int]:
        """The loops whose trip counts the program checks to be at least that of ``loop``.

        They wrote stacks that it reads, but its trip count is that of another loop, such as a recomputed one.
        """
        if loop.trip_count.same_as is None:
            return []
        counts = {
            self._rows[r.stack.buffer]
            for r in loop.memory.rows
            if r.stack.buffer in self._rows and not r.grows
        }
        return sorted(counts - {self._counts[loop.trip_count.same_as]})

    # Kernels

    def launched(
        self, statement: LaunchNest, launch: KernelLaunch, accesses: AccessBounds, partials: IndexRange
    ) -> list[ElementRange]:
        """The accesses of a kernel that must be checked at run time. All others are proved.

        Args:
            statement: the statement.
            launch: the kernel with its arguments.
            accesses: the bounds of the kernel's accesses.
            partials: the elements of each buffer of partial results.

        Raises:
            InternalError: an access is outside its buffer.
        """
        node, operands = statement.node, self._operands(statement)
        if self.has_dynamic_sizes and not _is_static_launch(launch, operands, partials):
            inside_operands = [elements for elements, inside in operands if elements is not None and inside]
            undecided = undecided_accesses(launch, accesses, inside_operands, partials, node)
            return [elements for elements in undecided if not self._is_inside(elements, node)]
        ranges: dict[tuple[int, int], list[ElementRange]] = {}
        for elements, _ in operands:
            if elements is not None:
                ranges.setdefault((elements.buffer, elements.size), []).append(elements)
        regions = []
        for number, (buffer, offset, dtype) in enumerate(launch.buffers):
            in_buffer = ranges.get((buffer, dtype.size), [])
            if len(in_buffer) > 1 and number not in accesses.from_start:  # x[::-1] begins at none of them
                in_buffer = [s for s in in_buffer if s.first == offset] or in_buffer
            regions.append(_hull(in_buffer, offset))
        regions += [partials] * len(launch.partials)
        accesses.check_reach(self._reach(launch, accesses, node), launch, regions, node)
        return []

    def _reach(self, launch: KernelLaunch, accesses: AccessBounds, node: Node) -> dict[int, IndexRange]:
        """The accessed regions of each buffer, shared by launches of one kernel with equal parameters."""
        key = id(accesses), launch.parameters, launch.total
        shared = self._reaches.get(key)
        if shared is None:
            # the entry keeps the id in use
            shared = self._reaches[key] = accesses, accesses.reach(launch, node)
        return shared[1]


def _static_sizes(specs: Iterable[TensorSpec], first: int) -> Iterator[tuple[int, int]]:
    """The number and bytes of each buffer of static size; buffers are numbered from ``first`` on."""
    return ((first + i, spec.nbytes) for i, spec in enumerate(specs) if spec.shape.is_static)


def _hull(ranges: Sequence[ElementRange], offset: int) -> IndexRange:
    """The smallest region that contains all ``ranges``, relative to an offset in their buffer."""
    if len(ranges) == 1:
        return ranges[0].first - offset, ranges[0].last - offset
    if not ranges:
        return NOTHING
    return min(s.first for s in ranges) - offset, max(s.last for s in ranges) - offset


def _is_static_launch(
    launch: KernelLaunch, operands: Iterable[tuple[ElementRange | None, bool]], partials: IndexRange
) -> bool:
    """Whether numbers describe all accesses of a kernel, and its operands are inside their buffers."""
    numbers: list[int] = [launch.total, *launch.parameters, *partials]
    for elements, inside in operands:
        if not inside:
            return False
        if elements is not None:
            numbers += elements.first, elements.last
    return is_static(numbers) and is_static([buffer.offset for buffer in launch.buffers])
