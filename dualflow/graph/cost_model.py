"""The cost model: the measured figures by which passes, the planner and the schedule choose between
programs.

A value that a later kernel reads is written to memory and read again, and its reader is one more launch. A
value that a later stage of the same kernel reads is either computed again or stored in a scratch row, which
stays in the nearest cache. Scratch rows never cost more than memory, so merging two kernels never adds
executed work; it adds length. Compilers take more than linear time for long code, and a processor has few
registers, so the number of stages and ops of a kernel is bounded.

Numbers that fix in which order a sum is taken are no figures of a machine: results would differ from
one to the next. The blocks of long sums (:mod:`dualflow.schedule.blocking`,
:mod:`dualflow.graph.column_folds`), the lanes of reduction loops (:mod:`dualflow.schedule.lanes`), of Fourier
transforms (:mod:`dualflow.graph.passes.fourier`) and of strips
(:mod:`dualflow.schedule.strip_mining`) stay where they are used. So do the figures of one backend's own
routines, which the rest of the compiler does not read.
"""

from __future__ import annotations

from typing import Final

from dualflow.core.records import NamedTuple


class CostModel(NamedTuple):
    """Measured figures of a processor. An *addition* is one on one element, at full vector width.

    Attributes:
        addition_ns: nanoseconds of an addition, the unit of ``Element.cost``.
        product_ns: nanoseconds of one multiplication and addition of a matrix product, on one thread.
        memory_byte_ns: nanoseconds of moving a byte to or from memory, behind all caches.
        chunk_ns: nanoseconds of work that is worth handing to another thread.
        long_call_ns: nanoseconds of work from which on a call lets other Python threads run meanwhile.
        load: additions that take as long as loading an element from the nearest cache.
        store: additions that take as long as storing one there.
        near_bytes: bytes of the nearest cache that a scratch row may take.
        far_byte: additions that take as long as moving a byte to or from a cache behind the nearest.
        vector_lanes: elements of 4 bytes in a vector, where memory for one is estimated.
        row_registers: vector registers of a value of rows that run side by side, twice as many in a light
            kernel. More are faster still, but compilers take longer for them.
        light_kernel: additions for an element below which a kernel has vectors of two registers, to hide
            latencies.
        long_kernel: ops from which on a kernel's code is kept short, at some cost of speed, and has vectors
            of two registers: one iteration fills the window in which a processor reorders instructions.
        most_ops: ops of the longest kernel. Below it the time of compilers is about linear.
        most_stages: runs of the reduced loops of a kernel. Softmax, layer normalisation and their gradients
            have three.
        negligible: a value so many times smaller than another costs next to nothing to read beside it.
        unknown_iterations: iterations of a loop whose trip count only the run has, where work is estimated.
        tile_side: elements along each axis of a tile that is transposed.
        least_tiled: elements of the shortest axis that is worth tiles.
        wide_row: columns from which on rows are read some at a time, each as far as it goes.
        rows_at_once: how many rows that is: no more than a processor prefetches.
        copied_run: neighbouring elements that are worth copying at a time.
        batched_rows: rows of a product inside a loop, up to which one product of all iterations is faster.
        batched_work: multiplications of an iteration, up to which it is for more rows too. The rows of larger
            products are read best while they are in the cache.
        sparse_rows: a tensor with so many times as many rows as change is worth a step of those alone.
        sparse_row: elements of a row from which on it is.
    """

    addition_ns: float = 0.02
    product_ns: float = 0.02
    memory_byte_ns: float = 0.1
    chunk_ns: float = 6000.0
    long_call_ns: float = 20_000.0
    load: float = 1.0
    store: float = 3.0
    near_bytes: int = 1 << 15
    far_byte: float = 1.0
    vector_lanes: int = 16
    row_registers: int = 2
    light_kernel: float = 24.0
    long_kernel: int = 96
    most_ops: int = 500
    most_stages: int = 3
    negligible: int = 8
    unknown_iterations: int = 1000
    tile_side: int = 64
    least_tiled: int = 16
    wide_row: int = 512
    rows_at_once: int = 8
    copied_run: int = 16
    batched_rows: int = 8
    batched_work: int = 1 << 15
    sparse_rows: int = 4
    sparse_row: int = 8

    def scratch(self, row_bytes: int, itemsize: int) -> float:
        """Additions that it costs to store an element in a scratch row and to load it again."""
        if row_bytes <= self.near_bytes:
            return self.load + self.store
        return self.through_memory(itemsize)

    def through_memory(self, itemsize: int) -> float:
        """Additions that it costs to write an element for another kernel, which reads it."""
        return max(self.load + self.store, 2 * itemsize * self.far_byte)


CPU: Final = CostModel()
"""Processors with wide vectors: measured on an AMD EPYC (Zen 4) with AVX-512, one thread."""
