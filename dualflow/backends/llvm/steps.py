"""What an entry does as data: steps in the table of integers, which a driver walks (``runtime/steps.ll``).

Steps that follow one another are a *stretch*, linked from its head on. So a graph without conditionals, loops
and sizes that the run tells has no code of its own beside its kernels.
"""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import Final

from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.runtime.source import IrSource
from dualflow.backends.runtime import switches
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node

WALK: Final = "df_walk"
"""``void df_walk(buffers, stretch, status)`` runs a stretch."""
POOL, PFOR = 2, 3
"""The places in the table of the thread pool's address and of its parallel for's; 0 and 0 without one."""
BEGINNING: Final = (0, 0, 0, 0)
"""The table's first integers: the head of a stretch, and the two addresses."""
LINK = 1
"""Where heads and steps say how far away the next step is."""


class StepKind(IntEnum):
    """The first word of a step."""

    KERNEL = 0
    PRODUCT = 1
    MOVE = 2
    STOP = 3
    NOTE = 4


class StepRecord(NamedTuple):
    """A step of a program, for reports.

    Attributes:
        place: where it is in the table of integers.
        kind: what it does.
        node: whose work that is.
        around: the conditional or loop that the node is in; None for none.
    """

    place: int
    kind: StepKind
    node: Node
    around: Node | None


@functools.cache
def driver() -> IrSource:
    """The module that defines :data:`WALK`; in the checked mode it stores which step runs."""
    return IrSource(jit.shipped_text("steps.ll") + _begun(), (WALK,))


def _begun() -> str:
    """The function that the driver calls with each step."""
    if not switches.checked_side():
        return "\ndefine internal void @begun(ptr %step) alwaysinline { ret void }\n"
    record = imported("dualflow.backends.llvm.runtime.checked_memory").RECORD
    return f"""
@{record} = external global ptr
define internal void @begun(ptr %step) alwaysinline {{ store volatile ptr %step, ptr @{record} ret void }}
"""
