"""What no iteration of a loop changes, moved before it: loads, and checks of positions.

Loops whose iterations look at the same position anew can't run in lanes, since a check may write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dualflow.schedule import loop_program as lp
from dualflow.schedule.loop_program import Register, Statement
from dualflow.schedule.registers import read, written


def invariants_first(kernel: lp.Kernel) -> lp.Kernel:
    """``kernel`` with each load and check outside of the loops that it doesn't follow."""
    return kernel._replace(body=tuple(_moved(kernel.body)))


def _moved(body: Iterable[Statement]) -> Iterator[Statement]:
    for statement in body:
        if not isinstance(statement, lp.For | lp.Blocks | lp.Chunks):
            yield statement
            continue
        inside = list(_moved(statement.body))
        before = _invariant(statement, inside) if isinstance(statement, lp.For) else []
        yield from before
        yield statement._replace(body=tuple([s for s in inside if s not in before]))


def _invariant(loop: lp.For, body: list[Statement]) -> list[Statement]:
    """The loads and checks in ``body`` that are the same in every iteration, in order.

    The memory that they read is there even if the loop has no iteration, since it lies along other loops, and
    the loop doesn't write it: a kernel writes in place only what the same iteration has read.
    """
    changed: set[Register] = set()
    found: list[Statement] = []
    for statement in body:
        if isinstance(statement, lp.Load):
            fixed = all(term != loop.loop for term, _ in statement.place.terms)
        else:
            fixed = isinstance(statement, lp.BoundsCheck)
        if fixed and changed.isdisjoint(read(statement)):
            found.append(statement)
        else:
            changed.update(written(statement))
    return found
