"""The number of lanes of a nest: the iterations of its vector loop that run at once.

Each lane of a reduction loop has an accumulator, and these are combined at the end: the number of lanes
determines the order of a sum, and so its last bits. It is therefore the same on every processor; if registers
are narrower, an accumulator takes several of them. The lanes of parallel loops depend on the register width.
"""

from __future__ import annotations

from dualflow.graph.ir import Value
from dualflow.ops.op_kinds import Gather
from dualflow.schedule.nest import Nest

REGISTER_BITS = 512
"""The width of the registers for which reduction loops are written, on every processor."""
REDUCTION_LANES = REGISTER_BITS // 32
"""Lanes of a reduction loop: a register of elements of 4 bytes."""
LIGHT_REDUCTION = 24.0
"""Work per element, in additions, below which a reduction loop has twice as many lanes to hide latency."""
LONG_REDUCTION = 96
"""The number of ops above which a reduction loop has twice as many lanes."""
FEWEST_LANES = 8
"""The minimum number of lanes of short loops: fewer lanes would mean a kernel for each size."""


def lanes_of(nest: Nest, vector_bits: int) -> int:
    """The number of lanes: the 4-byte elements of one register, or of two to hide latencies.

    The number is doubled for light loops, which have too few independent instructions, and for long kernels,
    whose iterations fill the processor's reorder window and don't overlap. Processors with narrow registers
    have a small window, so all their kernels of 4-byte elements are long. A chain of gathers, such as a
    binary search, waits for memory at each of them, so that the loads of four registers overlap. For a static
    short loop inside other loops, the number is halved while the loop fits.
    """
    if has_reduction_lanes(nest):
        register, light, long = REDUCTION_LANES, LIGHT_REDUCTION, LONG_REDUCTION
        narrow = False
    else:
        register, light, long = vector_bits // 32, nest.costs.light_kernel, nest.costs.long_kernel
        narrow = vector_bits < REGISTER_BITS and widest_element(nest) <= 4
    lanes = register * 2 if narrow or nest.cost < light or len(nest.steps) > long else register
    if _gather_depth(nest) >= nest.costs.gather_chain and not has_reduction_lanes(nest):
        lanes = register * 4
    extent = lanes if nest.vector is None else nest.loops[nest.vector].extent
    is_inner = len(nest.loops) > 1
    while type(extent) is int and is_inner and lanes > FEWEST_LANES and 2 * extent <= lanes:
        lanes //= 2
    return lanes


def widest_element(nest: Nest) -> int:
    """The bytes of the largest elements that a nest computes."""
    return max(v.spec.dtype.size for step in nest.steps for v in step.node.outputs)


def has_reduction_lanes(nest: Nest) -> bool:
    """Whether the number of lanes determines the order in which elements are reduced."""
    return nest.vector is None or nest.vector >= nest.num_parallel


def _gather_depth(nest: Nest) -> int:
    """The largest number of gathers of which each one's index depends on the one before."""
    depths: dict[Value, int] = {}
    for step in nest.steps:
        depth = max([depths.get(value, 0) for value in step.node.inputs], default=0)
        depths.update(dict.fromkeys(step.node.outputs, depth + isinstance(step.node.op.kind, Gather)))
    return max(depths.values(), default=0)
