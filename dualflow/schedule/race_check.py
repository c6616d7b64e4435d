"""Checks that tasks which may run at the same time don't write what the other one accesses.

The check reads the statements alone, not the dependences from which the regions were formed. Tests and
compiles with ``checking`` use it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from dualflow.core.errors import InternalError
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node
from dualflow.graph.views import sizes
from dualflow.schedule.element_ranges import at_least, range_of_layout
from dualflow.schedule.program_statements import RunTasks, Statement, walk_program


class _Access(NamedTuple):
    """The bytes of a buffer from ``first`` to ``last`` that a node reads or writes."""

    buffer: int
    first: int
    last: int
    writes: bool
    node: Node


def require_no_races(program: Sequence[Statement], workspace: int) -> None:
    """Raise InternalError if tasks of a region access the same bytes, one writes, and neither waits.

    ``workspace`` is the buffer of which each thread has its own. Bytes of symbolic sizes are checked only as
    far as the bounds of the sizes decide.
    """
    for statement in walk_program(program):
        if isinstance(statement, RunTasks):
            _check(statement, workspace)


def _check(statement: RunTasks, workspace: int) -> None:
    predecessors = statement.region.predecessor_masks()
    accesses = [
        [access for s in task for access in _accesses(s) if access.buffer != workspace]
        for task in statement.tasks
    ]
    for (i, one), (j, other) in itertools.combinations(enumerate(accesses), 2):
        if predecessors[j] >> i & 1:
            continue
        for a, b in itertools.product(one, other):
            if a.buffer != b.buffer or not (a.writes or b.writes):
                continue
            if at_least(b.last, a.first) and at_least(a.last, b.first):
                raise InternalError(
                    f"{a.node.op.name} and {b.node.op.name} may run at the same time, but both access buffer "
                    f"{a.buffer} from byte {a.first} and {b.first} on. Report this; "
                    "DUALFLOW_DISABLE=concurrency runs them in order."
                    f"\n  {a.node.origin}\n  {b.node.origin}"
                )


def _accesses(statement: Statement) -> Iterator[_Access]:
    node = statement.node
    for layouts, values, writes in (
        (statement.inputs, node.inputs, False),
        (statement.outputs, node.outputs, True),
    ):
        for layout, value in zip(layouts, values, strict=True):
            size = value.spec.dtype.size
            elements = range_of_layout(layout, sizes(value), size)
            if elements is not None:
                yield _Access(
                    layout.buffer, elements.first * size, (elements.last + 1) * size - 1, writes, node
                )
