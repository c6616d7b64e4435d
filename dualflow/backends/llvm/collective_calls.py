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
_GATHERS: Final = (Collective.ALL_GATHER, Collective.ALL_GATHER_ROWS, Collective.ROW_COUNTS)
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
    (source, *others), (target,) = call.inputs, call.outputs
    collective, x = mpi_call.collective, node.inputs[0]
    shared = x if collective in _GATHERS else node.output
    dynamic = (
        [size for size in sizes(x) if not is_static([size])] if collective is Collective.ALL_REDUCE else []
    )
    numbers = [
        collective.value,
        *(mpi_call.function, mpi_call.datatype, mpi_call.operation, mpi_call.communicator),
        *(mpi_call.progress, mpi_call.signature),
        *(math.prod(sizes(shared)), node.output.spec.dtype.size, mpi_call.part_bytes),
        *(source.buffer, source.offset, target.buffer, target.offset),
        *(len(unit.messages), _CLOCK),
        *((others[0].buffer, others[0].offset) if others else (0, 0)),
        *(math.prod(sizes(x)[1:]), math.prod(sizes(node.inputs[-1])), mpi_call.count_error),
        *(len(dynamic), *dynamic),
    ]
    entry.call_kernel(_source(), 1, 1, numbers)


@functools.cache
def _source() -> IrSource:
    """The module that defines the kernel of collectives."""
    return IrSource(jit.shipped_text("collective.ll"), ("df_collective",))
