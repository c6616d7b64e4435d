"""Emits collectives between workers, which machine code runs; imported only where there are any."""

from __future__ import annotations

import functools
import math
import time
from typing import Final

from dualflow.backends.llvm.entry import Entry
from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.graph.views import sizes
from dualflow.ops.op_kinds import Collective, CollectiveCall
from dualflow.schedule.program_statements import CallRoutine
from dualflow.sizes.symbolic_sizes import is_static

FAILED: Final = "a collective with other workers failed"
_C: Final = ("pthread_mutex_lock", "pthread_mutex_unlock", "clock_gettime")
"""The functions of C that the code calls."""
_CLOCK: Final[int] = getattr(time, "CLOCK_UPTIME_RAW", getattr(time, "CLOCK_MONOTONIC", 0))
"""The clock of ``time.perf_counter``: on macOS, and elsewhere."""


def write_collective(entry: Entry, call: CallRoutine) -> None:
    """Emit the step of a collective: a call of the MPI library by address, with its handles as parameters.

    A call of the graph releases the GIL, since it waits for other workers. It may fail later if it allocates
    tensors of dynamic sizes.
    """
    unit, node = entry.unit, call.node
    mpi_call = node.op.kind
    assert isinstance(mpi_call, CollectiveCall), "the pass has selected it"
    unit.messages.append((FAILED, node))
    unit.waits = True
    unit.records_collectives &= not mpi_call.precedes_failure and not unit.plan.has_dynamic_sizes
    unit.addresses.update({name: jit.process_symbol(name) for name in _C})
    (source,), (target,) = call.inputs, call.outputs
    shared = node.inputs[0] if mpi_call.collective is Collective.ALL_GATHER else node.output
    dynamic = [size for size in sizes(node.inputs[0]) if not is_static([size])]
    numbers = [
        mpi_call.collective.value,
        *(mpi_call.function, mpi_call.datatype, mpi_call.operation, mpi_call.communicator),
        *(mpi_call.progress, mpi_call.signature),
        *(math.prod(sizes(shared)), node.output.spec.dtype.size, mpi_call.part_bytes),
        *(source.buffer, source.offset, target.buffer, target.offset),
        *(len(unit.messages), _CLOCK),
        *(len(dynamic), *dynamic),
    ]
    entry.call_kernel(_source(), 1, 1, numbers)


@functools.cache
def _source() -> IrSource:
    """The module that defines the kernel of collectives."""
    return IrSource(jit.shipped_text("collective.ll"), ("df_collective",))
