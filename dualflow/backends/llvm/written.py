"""Kernels that this process has written: equal ones are written once, and are one function."""

from __future__ import annotations

from collections.abc import Hashable

from dualflow.backends.llvm.emit import KernelEmitter
from dualflow.backends.llvm.kernel_table import is_large
from dualflow.backends.llvm.runtime.interrupts import ROUTINE
from dualflow.backends.llvm.runtime.source import IrSource, named_by_content
from dualflow.backends.llvm.text import LlvmModule
from dualflow.core.records import dataclass
from dualflow.graph.ir import Node
from dualflow.schedule.access_bounds import AccessBounds, access_bounds
from dualflow.schedule.loop_program import BoundsCheck, Compute, Kernel, Repeat, Run, walk
from dualflow.schedule.structure import structure

KEPT = 512
"""So many kernels are remembered."""
_NAME = "kernel"
_remembered: dict[Hashable, Written] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A kernel as text.

    Attributes:
        source: the kernel as a module of its own, named by its content.
        checks: what the numbers mean that it leaves in the status, counted from that of the first check: a
            message, and which of the kernel's statements, in the order of ``walk``, has failed.
        asks: whether it may run so long that it looks for signals.
        accesses: the bounds of what it accesses.
    """

    source: IrSource
    checks: tuple[tuple[str, int], ...]
    asks: bool
    accesses: AccessBounds

    def messages(self, kernel: Kernel) -> list[tuple[str, Node]]:
        """The checks of ``kernel``, which is what was written or the same, with its own nodes."""
        if not self.checks:
            return []
        statements = list(walk(kernel.body))
        failing = [(message, statements[number]) for message, number in self.checks]
        return [(message, s.node) for message, s in failing if isinstance(s, Compute | BoundsCheck | Repeat)]


def write(run: Run, lanes: int, bits: int) -> Written:
    """The kernel of ``run`` for registers of ``bits``, whose lane loops run ``lanes`` iterations at once."""
    same = structure(run.kernel)
    literals = tuple([x.tobytes() for x in run.scalars]) if is_large(run) else ()
    key = same, len(run.partials), literals, lanes, bits
    found = _remembered.get(key)
    if found is None:
        found = _written(run, lanes, bits)
        _remember(key, found)
    return found


def _written(run: Run, lanes: int, bits: int) -> Written:
    emitter = KernelEmitter(LlvmModule(bits), run, _NAME, lanes)
    emitter.emit()
    numbers = (
        {id(statement): i for i, statement in enumerate(walk(run.kernel.body))} if emitter.checks else {}
    )
    checks = tuple([(check.message, numbers[id(check.statement)]) for check in emitter.checks])
    source = named_by_content(emitter.module.text(), _NAME)
    return Written(source, checks, emitter.module.has(ROUTINE), access_bounds(run.kernel))


def _remember(key: Hashable, written: Written) -> None:
    """Keep what was written, in place of what was written first where there is too much."""
    if len(_remembered) >= KEPT:
        for oldest in list(_remembered)[: KEPT // 8]:
            _remembered.pop(oldest, None)
    _remembered[key] = written
