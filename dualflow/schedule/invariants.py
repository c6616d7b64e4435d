"""Loop-invariant code motion: hoists loads and bounds checks out of loops.

A loop with a bounds check can't run in lanes, since a check that fails writes the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_statements import KernelStatement, Register
from dualflow.schedule.registers import read, written


def invariants_first(kernel: Kernel) -> Kernel:
    """``kernel`` with each load and bounds check outside the loops that it doesn't depend on."""
    return kernel._replace(body=tuple(_hoisted(kernel.body)))


def _hoisted(body: Iterable[KernelStatement]) -> Iterator[KernelStatement]:
    for statement in body:
        if not isinstance(statement, ks.For | ks.Blocks | ks.Chunks):
            yield statement
            continue
        inside = list(_hoisted(statement.body))
        before = _invariant(statement, inside) if isinstance(statement, ks.For) else []
        yield from before
        yield statement._replace(body=tuple([s for s in inside if s not in before]))


def _invariant(loop: ks.For, body: list[KernelStatement]) -> list[KernelStatement]:
    """The loads and bounds checks in ``body`` that don't depend on ``loop``, in order.

    Their memory exists even if the loop has no iteration, since their index depends on other loops only. The
    loop doesn't write it: a kernel writes in place only elements that the same iteration has read.
    """
    changed: set[Register] = set()
    invariant: list[KernelStatement] = []
    for statement in body:
        if isinstance(statement, ks.Load):
            fixed = all(term != loop.loop for term, _ in statement.access.terms)
        else:
            fixed = isinstance(statement, ks.BoundsCheck)
        if fixed and changed.isdisjoint(read(statement)):
            invariant.append(statement)
        else:
            changed.update(written(statement))
    return invariant
