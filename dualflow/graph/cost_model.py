"""The cost model: measured processor parameters that guide passes, the planner and the schedule.

A value that a later kernel reads is written to memory and read again, and its reader is one more launch. A
value that a later stage of the same kernel reads is either computed again or stored in scratch memory, which
stays in the nearest cache. Scratch memory never costs more than main memory, so merging two kernels never
adds executed work; it adds length. Compilers take more than linear time for long code, and a processor has
few registers, so the number of stages and ops of a kernel is bounded.

Numbers that fix the order of a sum are not part of the model: results would differ between machines. The
blocks of long sums (:mod:`dualflow.schedule.blocking`, :mod:`dualflow.graph.column_reductions`), and the
lanes of reduction loops (:mod:`dualflow.schedule.lanes`), Fourier transforms
(:mod:`dualflow.graph.passes.fourier_tables`) and strips (:mod:`dualflow.schedule.strip_mining`) stay where
they are used. So do the parameters of one backend's routines, which the rest of the compiler does not read.
"""

from __future__ import annotations

from typing import Final

from dualflow.core.records import NamedTuple


class CostModel(NamedTuple):
    """Measured parameters of a processor. An *addition* is one on one element, at full vector width.

    Attributes:
        addition_ns: nanoseconds of an addition, the unit of ``Elementwise.cost``.
        product_ns: nanoseconds of one multiplication and addition of a matrix product, on one thread.
        memory_byte_ns: nanoseconds of moving a byte to or from memory, past all caches.
        chunk_ns: nanoseconds of work that is worth handing to another thread.
        task_ns: nanoseconds of taking a task of a region, and of releasing those that wait for it.
        region_ns: nanoseconds of waking the threads of a region, and of waiting for the last.
        split_ns: nanoseconds of waking the threads of a call that splits its loops, and of waiting for them.
        long_call_ns: the shortest work, in nanoseconds, for which a call releases the GIL.
        load_cost: the cost of loading an element from the nearest cache, in additions.
        store_cost: the cost of storing an element in the nearest cache, in additions.
        far_byte_cost: the cost of moving a byte to or from a cache past the nearest, in additions.
        vector_lanes: elements of 4 bytes in a vector, for estimates of memory.
        row_registers: vector registers for a value whose rows are computed together; a light kernel uses
            twice as many. More are faster, but take longer to compile.
        light_kernel: the cost per element, in additions, below which a kernel has vectors of two registers,
            to hide latencies.
        long_kernel: the smallest number of ops of a kernel whose code is kept short, at some cost of speed,
            and has vectors of two registers: one iteration fills the reorder window of a processor.
        gather_chain: the smallest number of gathers, each at an index that depends on the one before, whose
            kernel has vectors of four registers: it waits for memory.
        max_ops: the largest number of ops of a kernel. Below it compile time is about linear.
        max_stages: the largest number of stages of a kernel. Softmax, layer normalisation and their
            gradients have three.
        negligible: the ratio of the sizes of two values above which reading the smaller one costs nothing in
            estimates.
        unknown_iterations: the trip count that estimates of work assume where it is dynamic.
        tile_side: elements along each axis of a tile that is transposed.
        min_tiled: the smallest size of an axis for which tiles are faster.
        min_wide_columns: the smallest number of columns for which several rows are reduced together.
        rows_at_once: the number of these rows: no more than a processor prefetches.
        copied_run: the smallest number of contiguous elements that are copied by one call.
        batched_rows: the largest number of rows of a product inside a loop for which one product of all
            iterations is always faster.
        batched_work: the largest number of multiplications per iteration for which one product of all
            iterations is faster also for more rows. The rows of larger products are read best while they
            are in the cache.
        sparse_rows: the smallest ratio of all rows to changed rows for which updating the changed rows alone
            is faster.
        sparse_row: the smallest row, in elements, for which updating the changed rows alone is faster.
    """

    # Time
    addition_ns: float = 0.02
    product_ns: float = 0.02
    memory_byte_ns: float = 0.1
    chunk_ns: float = 6000.0
    task_ns: float = 300.0
    region_ns: float = 2500.0
    split_ns: float = 2000.0
    long_call_ns: float = 20_000.0
    # Memory, in additions
    load_cost: float = 1.0
    store_cost: float = 3.0
    far_byte_cost: float = 1.0
    # Kernels
    vector_lanes: int = 16
    row_registers: int = 2
    light_kernel: float = 24.0
    long_kernel: int = 96
    gather_chain: int = 3
    max_ops: int = 500
    max_stages: int = 3
    negligible: int = 8
    unknown_iterations: int = 1000
    # Tiles, rows and copies
    tile_side: int = 64
    min_tiled: int = 16
    min_wide_columns: int = 512
    rows_at_once: int = 8
    copied_run: int = 16
    # Products in loops, and updates of rows
    batched_rows: int = 8
    batched_work: int = 1 << 15
    sparse_rows: int = 4
    sparse_row: int = 8

    def scratch(self, row_bytes: int, itemsize: int, near_bytes: int) -> float:
        """The cost of storing an element in a scratch row and loading it again, in additions.

        ``near_bytes`` is the size of the nearest cache.
        """
        if row_bytes <= near_bytes:
            return self.load_cost + self.store_cost
        return self.through_memory(itemsize)

    def through_memory(self, itemsize: int) -> float:
        """The cost of writing an element for another kernel, and reading it there, in additions."""
        return max(self.load_cost + self.store_cost, 2 * itemsize * self.far_byte_cost)


CPU: Final = CostModel()
"""Processors with wide vectors: measured on an AMD EPYC (Zen 4) with AVX-512, one thread."""
