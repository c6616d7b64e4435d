"""The cost model of kernels: what fusion and the planner of loop nests compare, in additions on one element.

A value that a later kernel reads is written to memory and read again, and its reader is one more launch. A
value that a later stage of the same kernel reads is either computed again or stored in a scratch row, which
stays in the nearest cache. Scratch rows never cost more than memory, so merging two kernels never adds
executed work; it adds length. Compilers take more than linear time for long code, and a processor has few
registers, so the number of stages and ops of a kernel is bounded.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Machine(NamedTuple):
    """Measured figures of a processor with wide vectors.

    Attributes:
        addition_ns: one addition on one element, at full vector width: the unit of ``Element.cost``.
        chunk_ns: work that is worth handing to another thread.
        load: additions that take as long as loading an element from the nearest cache.
        store: additions that take as long as storing one there.
        near_bytes: how much of the nearest cache a scratch row may take.
        far_byte: additions that take as long as moving a byte to or from a cache behind the nearest.
        row_registers: the vector registers of a value of rows that run side by side. Two leave latencies
            open, eight don't fit beside each other.
    """

    addition_ns: float = 0.02
    chunk_ns: float = 6000.0
    load: float = 1.0
    store: float = 3.0
    near_bytes: int = 1 << 15
    far_byte: float = 1.0
    row_registers: int = 4

    def scratch(self, row_bytes: int, itemsize: int) -> float:
        """Additions that it costs to store an element in a scratch row and to load it again."""
        if row_bytes <= self.near_bytes:
            return self.load + self.store
        return 2 * itemsize * self.far_byte


class KernelLimits(NamedTuple):
    """The largest kernel that fusion makes.

    Attributes:
        stages: runs of its reduced loops. Softmax, layer normalisation and their gradients have three.
        ops: nodes. Below it the time of LLVM is about linear.
    """

    stages: int = 3
    ops: int = 500


MACHINE: Final = Machine()
LIMITS: Final = KernelLimits()
