"""Bounds of a program's memory: what each statement accesses, compared with the sizes of the buffers.

The span of an operand is from its first to its last element in its buffer. It has to be inside the buffer,
and what a statement accesses has to be inside the spans of its operands:

    Launch                  every access of its kernel (:mod:`dualflow.schedule.access_bounds`)
    Multiply                the matrices, by rows, columns, inner size, batch and strides
    ScatterRows             every place that a checked position can name, the positions, the rows
    CopyMemory, ...         the elements of the value, one after another
    RunLoop                the rows of each stack, as many as there are iterations

In a program whose sizes are numbers all of it is decided before the program runs. In one that learns sizes
while it runs, the same bounds are polynomials over size variables
(:class:`dualflow.core.symbolic_sizes.SymInt`). Where these decide nothing, the program compares them with the
bytes that the buffer has before the statement runs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

from dualflow.core.spec import TensorSpec
from dualflow.graph.axes import sizes
from dualflow.graph.ir import Node, Value
from dualflow.schedule.access_bounds import NOTHING, AccessBounds, Region
from dualflow.schedule.loop_program import Argument, Run
from dualflow.schedule.nest import Layout
from dualflow.schedule.planned import Plan, dynamic_buffers
from dualflow.schedule.refused_accesses import unsafe
from dualflow.schedule.spans import Span, at_least, contains, fits, footprint
from dualflow.schedule.statement_accesses import accesses_of
from dualflow.schedule.statements import ChooseBranch, Launch, LaunchPieces, RunLoop, Statement, walk
from dualflow.schedule.symbolic_accesses import undecided_accesses


class MemoryBounds:
    """The sizes of a program's buffers, with which accesses are compared.

    Attributes:
        sized: whether the program learns sizes.
        nbytes: the bytes of each buffer; None where it has several sizes in turn.
        blocks: the buffers whose memory the program takes, when it has learned their size.

    Args:
        plan: names the buffers.
        program: its statements, whose loops have rows and stacks.
    """

    def __init__(self, plan: Plan, program: Sequence[Statement]) -> None:
        self.sized = plan.sized
        self.nbytes: dict[int, int | None] = {}
        self.blocks: set[int] = set()
        self._known: dict[tuple[Layout, Value], tuple[Span | None, bool]] = {}
        self._counts: dict[int, int] = {}
        self._rows: dict[int, int] = {}
        self._reaches: dict[tuple[int, tuple[int, ...], int], tuple[AccessBounds, dict[int, Region]]] = {}
        self.nbytes.update(_told(plan.arguments, 0))
        self.nbytes.update((plan.inputs + i, array.nbytes) for i, array in enumerate(plan.constants))
        self.nbytes.update(_told((*plan.outputs, *plan.temporaries), plan.first_output))
        self.nbytes[plan.arena] = plan.arena_bytes
        inside = list(walk(program)) if plan.slots or plan.sized else []
        rows = {row.slot for s in inside if isinstance(s, RunLoop) for row in s.rows}
        for statement in inside:
            self._learn(statement, rows)

    def _learn(self, statement: Statement, rows: Collection[int]) -> None:
        """Note the buffers that a statement gives memory."""
        blocks: dict[int, list[int]] = {}
        if isinstance(statement, RunLoop):
            blocks = dict(statement.stacks)
            self.nbytes.update((row.slot, row.nbytes) for row in statement.rows)
            self._count(statement)
        elif not isinstance(statement, ChooseBranch):
            blocks = dynamic_buffers(statement.outputs, statement.node.outputs)
        for buffer, factors in blocks.items():
            if buffer not in rows:
                nbytes = math.prod(factors)
                self.blocks.add(buffer)
                self.nbytes[buffer] = nbytes if self.nbytes.get(buffer, nbytes) == nbytes else None

    def _count(self, loop: RunLoop) -> None:
        """Note whose number of iterations a loop has, and how many rows the stacks have that grow in it."""
        counted = loop.counted if loop.condition is None else None
        self._counts[loop.counter] = loop.counter if counted is None else self._counts[counted]
        self._rows.update((row.stack.buffer, self._counts[loop.counter]) for row in loop.growable)

    # Statements

    def check(self, program: Iterable[Statement]) -> None:
        """Raise unless the accesses of all statements are inside, kernels left out.

        Raises:
            InternalError: an access is outside.
        """
        for statement in walk(program):
            self.undecided(statement)

    def undecided(self, statement: Statement) -> list[Span]:
        """The elements of which only the run tells whether they are inside; of kernels see :meth:`launched`.

        Raises:
            InternalError: an access is outside.
        """
        if isinstance(statement, Launch | LaunchPieces):
            return []
        if isinstance(statement, RunLoop):
            self._check_rows(statement)
        node, accessed = statement.node, accesses_of(statement)
        undecided: dict[Span, None] = {}
        for i, (operand, inside) in enumerate(self._operands(statement)):
            if operand is None:
                continue
            if not inside:
                undecided[operand] = None
            span = accessed.get(i)
            if span is None or span == operand:
                continue
            if contains(operand, span) is False and not span.counts:
                raise unsafe(node, f"it accesses {span}, and its operand has {operand}")
            if not self._is_inside(span, node):
                undecided[span] = None
        return list(undecided)

    def _operands(self, statement: Statement) -> list[tuple[Span | None, bool]]:
        """The spans of operands, outputs behind inputs, and whether they are inside of their buffers.

        The latter is False where only the run tells; None stands for an operand without elements, or of
        sizes that only host calls know.
        """
        node, operands = statement.node, []
        for layouts, values in ((statement.inputs, node.inputs), (statement.outputs, node.outputs)):
            for layout, value in zip(layouts, values, strict=True):
                key = layout, value
                operand = self._known.get(key)
                if operand is None:
                    span = None
                    if value.spec.shape.is_static:
                        span = footprint(layout, sizes(value), value.spec.dtype.size)
                    operand = self._known[key] = span, span is None or self._is_inside(span, node)
                operands.append(operand)
        return operands

    def _is_inside(self, span: Span, node: Node) -> bool:
        """Whether elements are inside of their buffer; False where only the run tells."""
        nbytes = self.nbytes.get(span.buffer)
        if nbytes is None:
            if self.sized:
                return False
            raise unsafe(node, f"it accesses {span}, which has no memory")
        inside = fits(span, nbytes)
        if inside is False:
            raise unsafe(node, f"it accesses {span}, which has {nbytes} bytes")
        return inside is True

    def _check_rows(self, loop: RunLoop) -> None:
        """Raise unless each stack has a row for each iteration.

        A stack that grows gets memory before a row is written. Loops that read such a stack run as often as
        the one that has made it, or fewer times; see :meth:`compared_loops`.
        """
        values = zip((*loop.inputs, *loop.outputs), (*loop.node.inputs, *loop.node.outputs), strict=True)
        lengths = {layout: value.spec.shape[0] for layout, value in values if value.spec.rank}
        for row in loop.rows:
            length = lengths.get(row.stack)
            if row.grows:
                continue
            if loop.counted is not None and row.stack.buffer in self._rows:
                continue
            if loop.length is None or length is None or not at_least(length, loop.length):
                raise unsafe(loop.node, f"it has {loop.length} iterations, and a stack of {length} rows")

    def compared_loops(self, loop: RunLoop) -> list[int]:
        """The loops that ``loop`` may not run more often than, and that the program has to compare it with.

        They have made stacks that it reads, and are not the one whose number of iterations it has: a loop
        that is computed again, say.
        """
        if loop.counted is None:
            return []
        counts = {
            self._rows[r.stack.buffer] for r in loop.rows if r.stack.buffer in self._rows and not r.grows
        }
        return sorted(counts - {self._counts[loop.counted]})

    # Kernels

    def launched(self, launch: Launch, run: Run, accesses: AccessBounds, partials: Region) -> list[Span]:
        """The elements of which only the run tells whether a kernel's accesses are inside.

        Args:
            launch: what the kernel computes.
            run: the kernel with its numbers.
            accesses: the bounds of the kernel's accesses.
            partials: the elements of each buffer of partial results.

        Raises:
            InternalError: an access is outside.
        """
        node, operands = launch.node, self._operands(launch)
        if self.sized:
            known = [
                [span for span, inside in operands if span is not None and inside and _is_at(span, argument)]
                for argument in run.buffers
            ]
            undecided = undecided_accesses(run, accesses, known, partials, node)
            return [span for span in undecided if not self._is_inside(span, node)]
        spans: dict[tuple[int, int], list[Span]] = {}
        for span, _ in operands:
            if span is not None:
                spans.setdefault((span.buffer, span.size), []).append(span)
        regions = []
        for place, (buffer, offset, dtype) in enumerate(run.buffers):
            there = spans.get((buffer, dtype.size), [])
            if len(there) > 1 and place not in accesses.from_start:
                there = [s for s in there if s.first == offset] or there  # x[::-1] begins at none of them
            regions.append(_hull(there, offset))
        regions += [partials] * len(run.partials)
        accesses.check_reach(self._reach(run, accesses, node), run, regions, node)
        return []

    def _reach(self, run: Run, accesses: AccessBounds, node: Node) -> dict[int, Region]:
        """What a launch accesses of each buffer; launches of one kernel with the same numbers share it."""
        key = id(accesses), run.parameters, run.total
        shared = self._reaches.get(key)
        if shared is None:
            shared = self._reaches[key] = accesses, accesses.reach(run, node)  # which keeps the id in use
        return shared[1]


def _is_at(span: Span, argument: Argument) -> bool:
    """Whether elements are of a kernel's argument, for some offset."""
    return span.buffer == argument.buffer and span.size == argument.dtype.size


def _told(specs: Iterable[TensorSpec], first: int) -> Iterator[tuple[int, int]]:
    """The bytes of buffers; those of tensors whose sizes only a host call knows are left out."""
    return ((first + i, spec.nbytes) for i, spec in enumerate(specs) if spec.shape.is_static)


def _hull(spans: Sequence[Span], offset: int) -> Region:
    """The elements of operands, counted from an offset into their buffer."""
    if len(spans) == 1:
        return spans[0].first - offset, spans[0].last - offset
    if not spans:
        return NOTHING
    return min(s.first for s in spans) - offset, max(s.last for s in spans) - offset
