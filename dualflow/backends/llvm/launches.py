"""The kernels of launches: equal launches of a program share them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from dualflow.backends.llvm.kernel_texts import KernelText, kernel_text
from dualflow.core.records import NamedTuple
from dualflow.schedule.equal_launches import launch_key, reads_forwards, with_buffers_of
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.lanes import lanes_of, widest_element
from dualflow.schedule.lower import lower
from dualflow.schedule.nest import Nest
from dualflow.schedule.planned import Plan
from dualflow.schedule.program_statements import LaunchNest
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.schedule.short_rows import has_short_rows, runs_side_by_side

_MIN_LANE_BITS: Final = 32
"""The bits of a lane, unless elements are wider."""


class EmittedLaunch(NamedTuple):
    """A launch with its kernels: that of the nest, and the join of partial results, if there is one."""

    statement: LaunchNest
    lanes: int
    kernels: tuple[tuple[KernelLaunch, KernelText], ...]


class LaunchEmitter:
    """Emits the kernels of a program's launches.

    Args:
        plan: the plan of the program.
        bits: the vector width.
    """

    def __init__(self, plan: Plan, bits: int) -> None:
        self._plan, self._bits = plan, bits
        self._emitted: dict[Hashable, EmittedLaunch] = {}

    def nest(self, statement: LaunchNest) -> Nest:
        """The loop nest of a launch."""
        return lower(*statement, self._plan.costs, self._plan.caches)

    def emit(self, statement: LaunchNest) -> EmittedLaunch:
        """The kernels of a launch: those of an equal launch with other buffers, or new ones."""
        key = launch_key(statement)
        equal = None if key is None else self._emitted.get(key)
        if equal is not None:
            kernels = [(with_buffers_of(statement, equal.statement, x), text) for x, text in equal.kernels]
            return EmittedLaunch(statement, equal.lanes, tuple(kernels))
        nest = self.nest(statement)
        lanes = lanes_of(nest, self._bits)
        launch = kernel_launch(nest, lanes, rows_side_by_side(nest, lanes, self._bits))
        launches = [launch] if launch.join is None else [launch, launch.join]
        texts = [kernel_text(x, lanes, self._bits) for x in launches]
        new = EmittedLaunch(statement, lanes, tuple(zip(launches, texts, strict=True)))
        # The checks of a kernel name the nodes of its own launch.
        can_share = reads_forwards(launch) and not any(text.checks for text in texts)
        if key is not None and can_share:
            self._emitted[key] = new
        return new


class EmittedKernel(NamedTuple):
    """An emitted loop nest, for listings and reports."""

    name: str
    statement: LaunchNest
    lanes: int
    emitter: LaunchEmitter

    def lowered_nest(self) -> Nest:
        """Lower the statement again; returns the loop nest of the kernel."""
        return self.emitter.nest(self.statement)


def rows_side_by_side(nest: Nest, lanes: int, vector_bits: int) -> int:
    """The number of rows that a kernel of short rows computes in one iteration, to hide latencies.

    0 for rows longer than a register of 32-bit elements, whose kernel has a loop. The number doesn't depend
    on the size of the outermost loop, the batch.
    """
    if not has_short_rows(nest, min(lanes, vector_bits // _MIN_LANE_BITS)):
        return 0
    if not runs_side_by_side(nest):
        return 1
    is_light = nest.cost < nest.costs.light_kernel
    registers = nest.costs.row_registers * (2 if is_light else 1)
    lane_bits = max(_MIN_LANE_BITS, 8 * widest_element(nest))
    rows = max(1, registers * vector_bits // (lane_bits * lanes))
    if nest.num_parallel > 1:
        extent = nest.loops[nest.num_parallel - 1].extent
        while type(extent) is int and rows > extent:
            rows //= 2
    return rows
