"""What an entry does as data: steps in the table of integers, which a driver walks (``runtime/steps.ll``).

Steps that follow one another are a *stretch*, linked from its head on. So a graph without choices, loops and
sizes that the run tells has no code of its own beside its kernels.
"""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import Final

from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.runtime.source import IrSource

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


@functools.cache
def driver() -> IrSource:
    """The module that defines :data:`WALK`."""
    return IrSource(jit.shipped_text("steps.ll"), (WALK,))
