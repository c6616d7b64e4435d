"""An elementwise graph, compiled for vectors of one length, on vectors of any length.

Its one kernel is a loop over elements that stand one behind another. All that depends on how many there are
is in two places of the table of integers: the turns of the loop, and those of a chunk for one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.entry import chunk_of
from dualflow.backends.llvm.executable import Executable, heavy_call
from dualflow.backends.llvm.runtime import threads
from dualflow.backends.llvm.steps import BEGINNING, PFOR, POOL, WALK
from dualflow.core.errors import ResourceExhaustedError
from dualflow.schedule.runs import run_of

Array = np.ndarray[Any, Any]

_TURNS = len(BEGINNING) + 3
_CHUNK = _TURNS + 1


class AnyLength:
    """Runs ``executable`` on vectors of other lengths; made by :func:`any_length`."""

    __slots__ = ("_call", "_dtype", "_executable", "_lanes", "_params", "_run", "_seats")

    def __init__(self, executable: Executable) -> None:
        (kernel,) = executable.program.kernels
        self._executable = executable
        self._dtype = executable.plan.outputs[0].dtype.dtype
        self._run = run_of(kernel.nest, kernel.lanes)
        self._lanes = kernel.lanes
        self._seats = threads.seats(executable.options.threads)
        self._call = heavy_call(executable.entry(WALK))
        self._params = executable.params.copy()
        if self._seats > 1:
            pool = threads.pool()
            self._params[POOL], self._params[PFOR] = pool.address, pool.pfor

    def run(self, arrays: Sequence[Array], shape: tuple[int, ...]) -> Array:
        """The result for row-major arrays of ``shape``, and of one element where the graph has one.

        Raises:
            InvalidArgumentError: a check inside the graph failed.
            ResourceExhaustedError: there is no memory for the result.
        """
        try:
            found = np.empty(shape, self._dtype)
        except MemoryError as error:
            raise ResourceExhaustedError(
                f"{self._executable.graph.name} needs more memory: {error}"
            ) from None
        params, run, length = self._params.copy(), self._run, found.size
        longer = run._replace(total=length, work=run.work / run.total * length)
        params[_TURNS], params[_CHUNK] = length, chunk_of(longer, self._lanes, self._seats)
        table = np.array([b.__array_interface__["data"][0] for b in (*arrays, found)], np.uintp)
        status = np.zeros(1, np.int64)
        self._call(*[a.__array_interface__["data"][0] for a in (table, params, status)])
        if status[0]:
            raise self._executable.failure(int(status[0]))
        return found


def any_length(executable: Any) -> AnyLength | None:
    """``executable`` for vectors of any length; None where more than two integers depend on the length."""
    if not isinstance(executable, Executable):
        return None
    plan, program = executable.plan, executable.program
    plain = (
        len(program.parts) == len(program.kernels) == len(plan.calls) == len(plan.outputs) == 1
        and program.parts[0].entry == WALK
        and not (plan.constants or plan.temporaries or plan.sized or program.arena_bytes)
    )
    if not plain:
        return None
    (kernel,) = program.kernels
    nest = kernel.nest
    if len(nest.loops) != 1 or nest.kept != 1 or run_of(nest, kernel.lanes).numbers:
        return None
    return AnyLength(executable)
