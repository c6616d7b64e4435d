"""Kernels of rows that fit into one vector: no loop along the row, and no scratch memory between stages.

    RowGroups loop0 in lo .. hi, 4 at once
        ReduceInit r0
        Once loop1 in 0 .. parameter 3
            Load r1 = buffer 0 [loop0 * parameter 4 + loop1]
            ReduceUpdate r0, r1
        ReduceHorizontal r0
        ReduceFinalize r2 = r0
        Once loop1 in 0 .. parameter 3
            Compute r3 = divide(r1, r2)
            Store buffer 1 [loop0 * parameter 5 + loop1]

A row has too few elements to hide the latencies of one stage after another, so neighbouring rows run side by
side. Later stages read the values of earlier ones from registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dualflow.core.records import replace
from dualflow.ops.op_kinds import Elementwise, Reduce
from dualflow.schedule.kernel_statements import Bound, End, KernelStatement, Once, RowGroups
from dualflow.schedule.kernel_writer import Accumulator, KernelWriter
from dualflow.schedule.lower import stage_steps
from dualflow.schedule.nest import Nest


def has_short_rows(nest: Nest, lanes: int) -> bool:
    """Whether a nest reduces rows of a static size that is at most ``lanes``."""
    if nest.vector is None or nest.num_parallel == 0 or len(nest.loops) != nest.num_parallel + 1:
        return False
    extent = nest.loops[nest.vector].extent
    return nest.vector == nest.num_parallel and type(extent) is int and 0 < extent <= lanes


def runs_side_by_side(nest: Nest) -> bool:
    """Whether rows of ``nest`` can share a vector: its ops are elementwise or reductions of real numbers."""
    return all(
        isinstance(step.node.op.kind, Elementwise | Reduce)
        and step.gather_axis is None
        and not any(v.spec.dtype.is_complex for v in (*step.node.inputs, *step.node.outputs))
        for step in nest.steps
    )


class ShortRowWriter(KernelWriter):
    """Writes a kernel that computes ``rows`` short rows at once, each in some lanes of a vector."""

    def __init__(self, nest: Nest, lanes: int, rows: int) -> None:
        super().__init__(replace(nest, scratch_values={}), lanes)
        self._side_by_side = rows

    def _parallel(
        self, loop: int, inside: Callable[[], Iterable[KernelStatement]] | None = None
    ) -> tuple[KernelStatement, ...]:
        """The parallel loops from ``loop`` inwards, several iterations of the last one at once."""
        if loop != self.nest.num_parallel - 1 or self._side_by_side == 1:
            return super()._parallel(loop, inside)
        begin, end = (End.LOW, End.HIGH) if loop == 0 else (End.ZERO, self._extent(loop))
        body = (*self._steps_at(loop + 1), *super()._parallel(loop + 1, inside))
        return (RowGroups(loop, begin, end, self._side_by_side, body),)

    def _reduction(
        self, loop: int, begin: Bound, end: Bound, stage: int, accumulators: Sequence[Accumulator]
    ) -> tuple[KernelStatement, ...]:
        """One stage of the reduction, for all elements of the row at once."""
        extent = self.nest.loops[loop].extent
        body = tuple(self._stage(stage, accumulators))
        return (Once(loop, self._extent(loop), extent == self.lanes, body),)

    def _stage(self, stage: int, accumulators: Sequence[Accumulator]) -> Iterator[KernelStatement]:
        """The statements of one stage of the nest; values of earlier stages are in registers."""
        unused = iter(accumulators)
        for step in stage_steps(self.nest, stage):
            if step.reduces:
                yield from self._update(step, next(unused))
            elif step.node.output not in self.env:
                yield from self._step(step, stage)
        inner = [s for s in self.nest.stores if s.depth > self.nest.num_parallel and s.stage == stage]
        yield from self._stores(inner)
