"""Runs the program of an elementwise graph, compiled for one length, on vectors of any length.

The program is one kernel: a loop over contiguous elements, in which every access has stride 1 or 0, so it has
no launch parameter. Two entries of the parameter table depend on the length: the trip count, and the size of
a chunk for one thread.

The kernel does not imply that the graph of another shape has this program. For a graph of one
elementwise op it follows from the op's record; for any other, :meth:`AnyLength.is_program_of` compares it
with the program of the graph over symbolic sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.capabilities import capabilities
from dualflow.backends.llvm.entry import chunk_of
from dualflow.backends.llvm.executable import Executable, heavy_call
from dualflow.backends.llvm.runtime import block_allocator, threads
from dualflow.backends.llvm.steps import HEADER, PFOR, POOL, RUN_STEPS
from dualflow.core.memory_errors import out_of_memory
from dualflow.graph.ir import Graph
from dualflow.schedule.access_bounds import access_bounds
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.lower import lower
from dualflow.schedule.nest import Nest
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import plan
from dualflow.schedule.planned import Plan
from dualflow.schedule.program_statements import LaunchNest, statements
from dualflow.schedule.refused_accesses import unsafe
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.schedule.structure import structure

Array = np.ndarray[Any, Any]

_ITERATIONS = len(HEADER) + 3
_CHUNK = _ITERATIONS + 1


class AnyLength:
    """Runs an executable of one kernel on vectors of other lengths; see :func:`any_length`."""

    __slots__ = (
        "_call",
        "_dtype",
        "_executable",
        "_lanes",
        "_launch",
        "_params",
        "_threads",
        "_vectors",
    )

    def __init__(self, executable: Executable, launch: KernelLaunch, lanes: int) -> None:
        self._executable = executable
        self._dtype = executable.plan.outputs[0].dtype.dtype
        self._launch, self._lanes = launch, lanes
        indexed = {
            launch.buffers[index.buffer].buffer
            for index in access_bounds(launch.kernel).indices
            if index.terms
        }
        self._vectors = tuple(sorted(indexed - {executable.plan.first_output}))
        self._threads = threads.num_thread_indices(executable.options.capabilities.threads)
        self._call = heavy_call(executable.entry(RUN_STEPS))
        self._params = executable.params.copy()
        if self._threads > 1:
            pool = threads.pool()
            self._params[POOL], self._params[PFOR] = pool.address, pool.pfor

    def run(self, arrays: Sequence[Array], shape: tuple[int, ...]) -> Array:
        """Run the kernel on row-major arrays of ``shape``, or scalars; returns the result, of that shape.

        Raises:
            InternalError: an array has fewer elements than ``shape``.
            InvalidArgumentError: a check inside the graph failed.
            ResourceExhaustedError: memory for the result can't be allocated.
        """
        try:
            result = block_allocator.empty(shape, self._dtype)
        except (MemoryError, ValueError) as error:
            raise out_of_memory(self._executable.inputs.name, error) from None
        params, launch, length = self._params.copy(), self._launch, result.size
        if any(arrays[i].size < length for i in self._vectors):
            sizes = [array.size for array in arrays]
            raise unsafe(self._executable.plan.calls[0].node, f"arrays of {sizes} elements for {length}")
        resized = launch._replace(total=length, work=launch.work / launch.total * length)
        params[_ITERATIONS], params[_CHUNK] = (
            length,
            chunk_of(resized, self._lanes, self._threads, self._executable.plan.costs),
        )
        self._executable.launch(self._call, arrays, result, params)
        return result

    def is_program_of(self, graph: Graph) -> bool:
        """Whether the optimised ``graph`` has this program, for any values of its symbolic sizes.

        Raises:
            UndecidedSize: the plan of ``graph`` depends on a symbolic size.
        """
        costs = self._executable.plan.costs
        sized_plan = plan(graph, self._executable.options.capabilities & capabilities(), costs=costs)
        if not _is_one_kernel(sized_plan):
            return False
        (launch,) = statements(sized_plan)
        assert isinstance(launch, LaunchNest)
        flat = _flat_launch(sized_plan, lower(*launch, costs, sized_plan.caches), self._lanes)
        return flat is not None and _same_but_for_total(flat, self._launch)


def any_length(executable: Any) -> AnyLength | None:
    """``executable`` for vectors of any length; None unless it is one loop over contiguous elements."""
    if not isinstance(executable, Executable):
        return None
    image, kernels = executable.image, executable.program.kernels
    if not (
        _is_one_kernel(executable.plan)
        and len(image.parts) == len(kernels) == 1
        and image.parts[0].entry == RUN_STEPS
        and not image.arena_bytes
    ):
        return None
    (kernel,) = kernels
    launch = _flat_launch(executable.plan, kernel.lowered_nest(), kernel.lanes)
    return None if launch is None or not launch.total else AnyLength(executable, launch, kernel.lanes)


def _is_one_kernel(kernel_plan: Plan) -> bool:
    """Whether the program is one loop nest with one output and no intermediates."""
    return (
        len(kernel_plan.calls) == len(kernel_plan.outputs) == 1
        and kernel_plan.calls[0].kind is CallKind.KERNEL
        and not (kernel_plan.constants or kernel_plan.temporaries)
    )


def _flat_launch(kernel_plan: Plan, nest: Nest, lanes: int) -> KernelLaunch | None:
    """The launch of ``nest`` if it is one loop over the output, with accesses of stride 1 or 0; else None."""
    if len(nest.loops) != 1 or nest.num_parallel != 1:
        return None
    launch = kernel_launch(nest, lanes)
    size = math.prod(d for d in kernel_plan.outputs[0].shape if d is not None)
    is_flat = not (launch.parameters or launch.partials or launch.join) and launch.total == size
    is_flat = is_flat and launch.constants is not None
    return launch if is_flat else None


def _same_but_for_total(x: KernelLaunch, y: KernelLaunch) -> bool:
    """Whether two kernels and their arguments are equal, except for trip counts."""
    kernel = structure(x.kernel)
    return (
        kernel is not None
        and kernel == structure(y.kernel)
        and x.buffers == y.buffers
        and [s.tobytes() for s in x.constants or ()] == [s.tobytes() for s in y.constants or ()]
    )
