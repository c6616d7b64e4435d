"""The arena of a plan with concurrent calls: memory is reused only by calls that run later in every order.

Outside of regions the steps are in order. In a region, memory of a dead value is free for another one if
every task that accesses the old value ends before each task that accesses the new one begins.
"""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.core.records import NamedTuple
from dualflow.schedule.arena import aligned
from dualflow.schedule.concurrency import Region


class AccessedBlock(NamedTuple):
    """A block of bytes, and the steps that access it, in ascending order."""

    steps: tuple[int, ...]
    nbytes: int


def assign_concurrent(blocks: Sequence[AccessedBlock], regions: Sequence[Region]) -> tuple[list[int], int]:
    """The offset of each block, and the bytes of the arena.

    Blocks are placed in the order of their first access, each into the smallest gap between those that are
    still needed.
    """
    order = AccessOrder(regions)
    offsets, size = [0] * len(blocks), 0
    active: list[int] = []
    for i in sorted(range(len(blocks)), key=lambda i: blocks[i].steps[0]):
        active = [j for j in active if order.may_be_needed(blocks[j], blocks[i].steps[0])]
        conflicts = [j for j in active if not order.precedes(blocks[j], blocks[i])]
        occupied = sorted((offsets[j], aligned(blocks[j].nbytes)) for j in conflicts)
        offsets[i] = _gap(occupied, aligned(blocks[i].nbytes), size)
        size = max(size, offsets[i] + aligned(blocks[i].nbytes))
        active.append(i)
    return offsets, size


class AccessOrder:
    """Which accesses come before which, whatever the threads do."""

    def __init__(self, regions: Sequence[Region]) -> None:
        self._region: dict[int, int] = {}
        self._task: dict[int, int] = {}
        self._earlier = [region.earlier() for region in regions]
        for number, region in enumerate(regions):
            for index, task in enumerate(region.tasks):
                self._region.update(dict.fromkeys(task.steps, number))
                self._task.update(dict.fromkeys(task.steps, index))

    def may_be_needed(self, block: AccessedBlock, step: int) -> bool:
        """Whether an access of ``block`` may come after the beginning of ``step``, or of its region."""
        last = block.steps[-1]
        return last >= step or (last in self._region and self._region[last] == self._region.get(step))

    def precedes(self, block: AccessedBlock, other: AccessedBlock) -> bool:
        """Whether all accesses of ``block`` come before all of ``other``."""
        last, first = block.steps[-1], other.steps[0]
        if last >= first:
            return False
        region = self._region.get(last)
        if region is None or region != self._region.get(first):
            return True
        masks, accessing, after_all = self._earlier[region], 0, -1
        for step in block.steps:
            if self._region.get(step) == region:
                accessing |= 1 << self._task[step]
        for step in other.steps:
            if self._region.get(step) == region:
                after_all &= masks[self._task[step]]
        return not accessing & ~after_all


def _gap(occupied: Sequence[tuple[int, int]], nbytes: int, size: int) -> int:
    """The start of the smallest gap of ``nbytes`` between occupied ranges, which are sorted; or their end."""
    gaps: list[tuple[int, int]] = []
    end = 0
    for start, length in occupied:
        if start - end >= nbytes:
            gaps.append((start - end, end))
        end = max(end, start + length)
    if size - end >= nbytes:
        gaps.append((size - end, end))
    return min(gaps)[1] if gaps else end
