"""What keeps a choice or loop from being a compiled function, and how much work its turns are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.backends.numba.call_source import NO_KERNEL, Shelf, has_arrays
from dualflow.graph.axes import sizes
from dualflow.graph.control_spec import loop_of
from dualflow.schedule.loop_program import Run
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import PlannedCall

SHARED_WORK = 5e6
"""Additions' worth of work from which on a kernel's range is shared between threads."""
HEAVY_PRODUCT = 1 << 18
"""Multiplications from which on BLAS is worth more than a call of Python."""
_CALL_WORK = 30.0
_ASSUMED_TURNS = 64


def is_shared(run: Run) -> bool:
    """Whether a kernel is worth sharing its range between threads."""
    return run.work >= SHARED_WORK and run.total > 1


def obstacle(shelf: Shelf, call: PlannedCall) -> str | None:
    """Why a choice or loop is not compiled; None if it is.

    Only a function that Python calls may use threads, of Numba or of BLAS.
    """
    for inner in call.walk():
        nests = shelf.nests(inner)
        if any(nest.run is None for nest in nests) or not has_arrays(inner.node):
            return NO_KERNEL
        if any(is_shared(nest.run) for nest in nests if nest.run is not None):
            return "its turns share their work between threads"
        if inner.kind is CallKind.PRODUCT and multiplications(inner) >= HEAVY_PRODUCT:
            return "BLAS multiplies its matrices"
        if inner.kind is CallKind.POSITIONS:
            return "NumPy finds the places of its elements"
        if inner.kind is CallKind.FOURIER:
            return "SciPy computes its Fourier transforms"
    return None


def multiplications(product: PlannedCall) -> int:
    """How many numbers a matrix product multiplies."""
    node = product.node
    inner = sizes(node.inputs[0])[-2 if node.attrs.get("transpose_a") else -1]
    return math.prod(sizes(node.output)) * inner


def work(shelf: Shelf, calls: Sequence[PlannedCall]) -> float:
    """About how many additions' worth of work some calls are."""
    return sum(_work(shelf, call) for call in calls)


def _work(shelf: Shelf, call: PlannedCall) -> float:
    inside = sum(work(shelf, block.calls) for block in call.blocks)
    if call.turns is not None:
        length = loop_of(call.node).length
        inside *= _ASSUMED_TURNS if length is None else max(length, 1)
    own = sum(nest.run.work + _CALL_WORK for nest in shelf.nests(call) if nest.run is not None)
    return _CALL_WORK + inside + own + (multiplications(call) if call.kind is CallKind.PRODUCT else 0)
