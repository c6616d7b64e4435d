"""Steps: calls of an entry as data in the parameter table, which a driver executes (``runtime/steps.ll``).

Consecutive steps are a linked *step list* with a head. So a graph without conditionals, loops and dynamic
sizes has no code but its kernels.
"""

from __future__ import annotations

import functools
from enum import Enum, IntEnum, auto
from typing import Final

from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.runtime.ir_source import QUICKLY_COMPILED, IrSource
from dualflow.backends.runtime import switches
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node

RUN_STEPS: Final = "df_run_steps"
"""``void df_run_steps(buffers, list, status)`` executes a step list."""
COMPUTE_SIZES: Final = "df_compute_sizes"
"""``void df_compute_sizes(params, status)`` executes the size code of a parameter table."""
POOL, PFOR = 2, 3
"""The parameters with the addresses of the thread pool and of its parallel-for; 0 without a pool."""
SIZE_CODE = 4
"""The parameter with the address of the size code; 0 for a program without."""
HEADER: Final = (0, 0, 0, 0, 0)
"""The first parameters: the head of a step list, and the three addresses."""
LINK = 1
"""The offset in heads and steps of the distance to the next step."""
FUNCTION = 2
"""The offset in steps of the address of the function that they call, for kinds that call one."""


class StepKind(IntEnum):
    """The kind of a step, its first word; then come :data:`LINK` and the words of the kind.

    ======= ================================================================================================
    KERNEL  function; number of iterations; iterations of a chunk; the kernel's parameters
    PRODUCT function; x, y, out and scratch, each as a buffer and a byte offset; number of batch axes; for
            each axis its size, and its strides in x, y and out in bytes; the function's parameters
    MOVE    source and target, each as a buffer and a byte offset; bytes
    STOP    none: the list ends here if a check has failed
    NOTE    none: the next steps belong to another statement
    TASKS   function; the words of :mod:`~dualflow.backends.llvm.task_calls`
    ======= ================================================================================================
    """

    KERNEL = 0
    PRODUCT = 1
    MOVE = 2
    STOP = 3
    NOTE = 4
    TASKS = 5


TIMED_STEPS: Final = (StepKind.KERNEL, StepKind.PRODUCT, StepKind.MOVE, StepKind.TASKS)
"""The kinds of steps that are intervals."""


class IntervalKind(Enum):
    """The kinds of intervals of a program's clock; see :mod:`.interval_clock`."""

    EMPTY = auto()
    CONTROL = auto()
    ITERATION = auto()
    STEP = auto()


class StepRecord(NamedTuple):
    """A step of a program, for reports.

    Attributes:
        address: its index in the parameter table.
        kind: its kind.
        node: the node that it computes.
        parent: the conditional or loop that contains the node; None for none.
    """

    address: int
    kind: StepKind
    node: Node
    parent: Node | None


@functools.cache
def driver() -> IrSource:
    """The module that defines :data:`RUN_STEPS` and :data:`COMPUTE_SIZES`.

    In the checked mode it stores the running step. The first program has the routine of sizes with it, so
    programs for all sizes have no machine code of their own.
    """
    texts = QUICKLY_COMPILED, jit.shipped_text("steps.ll"), _begin_step(), jit.shipped_text("sizes.ll")
    return IrSource("".join(texts), (RUN_STEPS, COMPUTE_SIZES))


def _begin_step() -> str:
    """The text of the function that the driver calls before each step."""
    if not switches.checked_side():
        return "\ndefine internal void @begin_step(ptr %step) alwaysinline { ret void }\n"
    record = imported("dualflow.backends.llvm.runtime.checked_memory").RECORD
    return f"""
@{record} = external global ptr
define internal void @begin_step(ptr %step) alwaysinline {{
  store volatile ptr %step, ptr @{record}
  ret void
}}
"""
