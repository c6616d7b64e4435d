"""The scratch memory of a program's statements: partial results of reductions, and rows of kernels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dualflow.backends.llvm.kernel_table import KernelMemory
from dualflow.core.records import dataclass
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import ScratchBuffer
from dualflow.schedule.planned import Plan
from dualflow.sizes.size_functions import largest

if TYPE_CHECKING:
    from dualflow.backends.llvm.runtime.checked_memory import Workspace

PARTIAL_BYTES = 8
"""The bytes of a partial result of a full reduction in memory, for all dtypes."""
ROW_ALIGNMENT = 64


@dataclass(slots=True, eq=False)
class ScratchAllocator:
    """Reserves scratch memory for one statement after another.

    Statements run one after another, so all share one offset: after the arena's values, or in a buffer of
    its own if sizes are dynamic.

    Attributes:
        plan: the plan of the program.
        checked: in the checked mode, memory with a block for each statement; else None.
        nbytes: the bytes that statements need so far; if sizes are dynamic, those of the last statement.
        task_start: the byte at which scratch memory of a task begins that is being emitted, in the memory of
            its thread; None outside of tasks.
        task_bytes: the bytes of memory that tasks of the region need so far.
    """

    plan: Plan
    checked: Workspace | None = None
    nbytes: int = 0
    task_start: int | None = None
    task_bytes: int = 0

    @property
    def buffer(self) -> int:
        """The buffer of scratch memory. Each thread that runs tasks has one of its own."""
        separate = self.plan.has_dynamic_sizes or self.task_start is not None
        return self.plan.workspace if separate else self.plan.arena

    @property
    def bytes_in_arena(self) -> int:
        """The bytes of scratch memory after the arena's values."""
        if self.plan.has_dynamic_sizes:
            return 0
        return self.nbytes if self.checked is None else self.checked.nbytes

    def reserve(self, nbytes: int) -> int:
        """Reserve memory for a statement; returns its offset in :attr:`buffer`."""
        if self.task_start is not None:
            self.task_bytes = largest(self.task_bytes, self.task_start + nbytes)
            return self.task_start
        if self.plan.has_dynamic_sizes:
            self.nbytes = nbytes  # no maximum: the buffer is allocated for each statement, with this size
            return 0
        if self.checked is not None:
            return self.checked.block(nbytes)
        self.nbytes = largest(self.nbytes, nbytes)
        return self.plan.arena_bytes

    def reserve_for_kernel(self, launch: KernelLaunch, lanes: int, threads: int) -> KernelMemory:
        """Reserve the memory of a kernel's partial results or scratch buffers."""
        if launch.partials:
            partial_bytes = launch.total * launch.partial_size * PARTIAL_BYTES
            start = self.reserve(partial_bytes * len(launch.partials))
            starts = [start + i * partial_bytes for i in range(len(launch.partials))]
            return KernelMemory(self.buffer, tuple(starts))
        sizes = [
            _aligned((math.prod(launch.parameters[n.number] for n in s.length) + lanes) * s.dtype.size)
            for s in launch.kernel.body
            if isinstance(s, ScratchBuffer)
        ]
        if not sizes:
            return KernelMemory(self.buffer)
        start = self.reserve(sum(sizes) * threads)
        starts = [start + sum(sizes[:i]) for i in range(len(sizes))]
        return KernelMemory(self.buffer, tuple(starts), sum(sizes))


def _aligned(nbytes: int) -> int:
    return nbytes + -nbytes % ROW_ALIGNMENT
