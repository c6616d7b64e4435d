"""Whether a branch or loop can be a compiled function, and the work of its iterations."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.numba.call_source import NO_KERNEL, ProgramContext, has_arrays
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.operands import CallKind
from dualflow.schedule.program_statements import (
    CallRoutine,
    Multiply,
    RunLoop,
    Statement,
    bodies,
    walk_program,
)
from dualflow.sizes.symbolic_sizes import typical

MIN_PARALLEL_WORK = 5e6
"""The work, in additions, at which a kernel's range is split between threads."""
MIN_BLAS_WORK = 1 << 18
"""The number of multiplications at which a BLAS call from Python pays."""
_CALL_WORK = 30.0


def is_shared(launch: KernelLaunch) -> bool:
    """Whether a kernel has enough work to run on several threads."""
    return launch.work >= MIN_PARALLEL_WORK and typical(launch.total) > 1


def least_shared(launch: KernelLaunch) -> int:
    """The smallest number of iterations at which a kernel's range is split between threads."""
    return max(2, int(MIN_PARALLEL_WORK * typical(launch.total) / max(launch.work, 1.0)))


def unavailable_reason(context: ProgramContext, statement: Statement) -> str | None:
    """The reason that a branch or loop is not compiled; None if it is.

    Only functions that Python calls may use threads, of Numba or of BLAS.
    """
    for inner in walk_program((statement,)):
        nests = context.lowered_nests(inner)
        if any(nest.kernel_launch is None for nest in nests) or not has_arrays(inner.node):
            return NO_KERNEL
        if any(is_shared(nest.kernel_launch) for nest in nests if nest.kernel_launch is not None):
            return "its iterations share their work between threads"
        if isinstance(inner, Multiply) and typical(inner.multiplications) >= MIN_BLAS_WORK:
            return "BLAS multiplies its matrices"
        if isinstance(inner, CallRoutine) and inner.kind is CallKind.POSITIONS:
            return "NumPy computes the positions of its elements"
        if isinstance(inner, CallRoutine) and inner.kind is CallKind.FOURIER:
            return "SciPy computes its Fourier transforms"
    return None


def work(context: ProgramContext, program: Sequence[Statement]) -> float:
    """The approximate work of some statements, in additions."""
    return sum(_work(context, statement) for statement in program)


def _work(context: ProgramContext, statement: Statement) -> float:
    inside = sum(work(context, body) for body in bodies(statement))
    if isinstance(statement, RunLoop):
        inside *= (
            context.plan.costs.unknown_iterations
            if statement.trip_count.limit is None
            else max(typical(statement.trip_count.limit), 1)
        )
    nests_work = sum(
        nest.kernel_launch.work + _CALL_WORK
        for nest in context.lowered_nests(statement)
        if nest.kernel_launch is not None
    )
    return (
        _CALL_WORK
        + inside
        + nests_work
        + (typical(statement.multiplications) if isinstance(statement, Multiply) else 0)
    )
