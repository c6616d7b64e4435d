"""Kernels of scans, such as cumulative sums.

    For parallel loops, by threads; the contiguous one by lanes
        ReduceInit
        For the scanned loop
            Load
            ReduceUpdate
            ReduceFinalize
            Store

Elements are accumulated sequentially, whatever the number of threads, so results have the bits of NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dualflow.core.records import replace
from dualflow.graph.ir import Node
from dualflow.graph.scalar_functions import reduction_of
from dualflow.ops.op_kinds import Scan
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import (
    Bound,
    Compute,
    End,
    For,
    KernelStatement,
    LoopKind,
    ReduceFinalize,
    ReduceInit,
    ReduceUpdate,
)
from dualflow.schedule.kernel_writer import Accumulator, KernelWriter
from dualflow.schedule.loop_ids import KernelLoop
from dualflow.schedule.nest import Access, Nest, NestOperand


def scan_of(nest: Nest) -> Node | None:
    """The scan that ``nest`` consists of; None for any other nest."""
    node = nest.steps[0].node if nest.steps else None
    return node if node is not None and isinstance(node.op.kind, Scan) else None


class ScanWriter(KernelWriter):
    """Writes the kernel of one scan."""

    def __init__(self, nest: Nest, lanes: int, node: Node) -> None:
        super().__init__(_scan_nest(nest, node), lanes)
        self.node = node

    def write_scan(self) -> KernelLaunch:
        """The kernel, with its arguments."""
        nest = self.nest
        body = self._each_row(self._scanned_loop)
        if not nest.num_parallel:
            body = (For(KernelLoop.CHUNKS, End.LOW, End.HIGH, LoopKind.SERIAL, body),)
        total = nest.loops[0].extent if nest.num_parallel else 1
        return self._launch_of(body, 0 if self._is_empty else total)

    @property
    def _is_empty(self) -> bool:
        return any(loop.extent == 0 for loop in self.nest.loops)

    def _each_row(
        self, body: Callable[[], Iterable[KernelStatement]], loop: int = 0, begin: End = End.LOW
    ) -> tuple[KernelStatement, ...]:
        """``body`` for each iteration of the parallel loops from ``loop`` on, which starts at ``begin``."""
        if loop == self.nest.num_parallel:
            return tuple(body())
        end = End.HIGH if begin is End.LOW else self._extent(loop)
        return (self._loop(loop, begin, end, lambda: self._each_row(body, loop + 1, End.ZERO)),)

    def _scanned_loop(self) -> Iterator[KernelStatement]:
        """The loop along the scanned axis; only its body for an axis of size 1."""
        (step,), scanned = self.nest.steps, self.nest.num_parallel
        accumulator, reduction = self._accumulator(step), reduction_of(self.node)
        if scanned < len(self.nest.loops):
            yield ReduceInit(accumulator, reduction, self.node)
            yield self._scan_loop(accumulator, End.ZERO, self._extent(scanned))
            return
        if self.node.attrs["exclusive"]:
            yield from (ReduceInit(accumulator, reduction, self.node), self._finalized(accumulator))
        else:
            loads, value = self._operand(step.operands[0])
            yield from (
                *loads,
                Compute(self._bind(self.node.output), reduction.single, (value,), (), self.node),
            )
        yield from self._stores(self.nest.stores)

    def _scan_loop(self, accumulator: Accumulator, begin: Bound, end: Bound) -> KernelStatement:
        """The loop along the scanned axis between two bounds."""
        (step,), scanned = self.nest.steps, self.nest.num_parallel
        exclusive, reduction = self.node.attrs["exclusive"], reduction_of(self.node)

        def iteration() -> Iterator[KernelStatement]:
            loads, value = self._operand(step.operands[0])
            yield from loads
            if exclusive:
                yield self._finalized(accumulator)
            yield ReduceUpdate(accumulator, reduction, value, ((scanned, self._extent(scanned)),), self.node)
            if not exclusive:
                yield self._finalized(accumulator)
            yield from self._stores(self.nest.stores)

        return self._loop(scanned, begin, end, iteration)

    def _finalized(self, accumulator: Accumulator) -> KernelStatement:
        return ReduceFinalize(self._bind(self.node.output), reduction_of(self.node), accumulator, self.node)


def _scan_nest(nest: Nest, node: Node) -> Nest:
    """``nest`` with a scanned (last) loop that is not vectorised, and runs backwards for a reverse scan."""
    scanned, count = nest.num_parallel, len(nest.loops)
    nest = replace(nest, vector=None if nest.vector == scanned else nest.vector)
    if not node.attrs["reverse"] or scanned == count:
        return nest
    (step,), (store,) = nest.steps, nest.stores
    last = nest.loops[scanned].extent - 1

    def backwards(access: Access) -> Access:
        stride = access.strides[scanned]
        strides = (*access.strides[:scanned], -stride)
        return access._replace(offset=access.offset + last * stride, strides=strides)

    operands = tuple(
        [o if o.access is None else NestOperand(access=backwards(o.access)) for o in step.operands]
    )
    return replace(
        nest,
        steps=(replace(step, operands=operands),),
        stores=(store._replace(access=backwards(store.access)),),
    )
