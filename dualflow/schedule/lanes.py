"""How many iterations of a loop run at once, in the lanes of vectors.

The lanes of a reduction loop have an accumulator each, which are combined at the end: their number decides in
which order a sum is taken, and so its last bits. It is the same on every processor; where registers are
narrower, an accumulator takes several of them. The lanes of other loops follow the width of registers.
"""

from __future__ import annotations

from dualflow.schedule.nest import Nest

REGISTER_BITS = 512
"""The width of the registers for which reduction loops are written, on every processor."""
REDUCTION_LANES = REGISTER_BITS // 32
"""Lanes of a reduction loop: a register of elements of 4 bytes."""
LIGHT_REDUCTION = 24.0
"""Additions for an element below which a reduction loop has twice as many lanes, to hide latencies."""
LONG_REDUCTION = 96
"""Ops from which on a reduction loop has twice as many lanes."""
FEWEST_LANES = 8
"""The fewest lanes of short loops: each size below would have a kernel of its own."""


def lanes_of(nest: Nest, vector_bits: int) -> int:
    """Lanes of the vector loop: a register of 4-byte elements, or two where one does not hide latencies.

    Light work has too few instructions that depend on each other. In a long kernel one iteration fills the
    window in which a processor reorders instructions, so it does not begin the next one meanwhile. A loop
    that is known to be short, and runs for several rows, has half of the lanes as long as it fits in.
    """
    if has_reduction_lanes(nest):
        register, light, long = REDUCTION_LANES, LIGHT_REDUCTION, LONG_REDUCTION
    else:
        register, light, long = vector_bits // 32, nest.costs.light_kernel, nest.costs.long_kernel
    lanes = register * 2 if nest.cost < light or len(nest.steps) > long else register
    extent = lanes if nest.vector is None else nest.loops[nest.vector].extent
    several = len(nest.loops) > 1
    while type(extent) is int and several and lanes > FEWEST_LANES and 2 * extent <= lanes:
        lanes //= 2
    return lanes


def has_reduction_lanes(nest: Nest) -> bool:
    """Whether the number of lanes decides in which order elements are reduced."""
    return nest.vector is None or nest.vector >= nest.num_parallel
