"""Memory of a plan with concurrent calls: it is reused only by calls that run later in every order.

Outside of regions the steps are in order. In a region, memory of a dead value is free for another one if
every task that accesses the old value ends before each task that accesses the new one begins. A value that
one task alone accesses is in memory of the thread that runs the task: as many bytes as the largest task
needs, for each thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.core.records import NamedTuple
from dualflow.schedule.arena import Lifetime, aligned, assign, holds
from dualflow.schedule.concurrency import Region
from dualflow.sizes.size_functions import largest


class AccessedBlock(NamedTuple):
    """A block of bytes, and the steps that access it, in ascending order."""

    steps: tuple[int, ...]
    nbytes: int


class ConcurrentMemory(NamedTuple):
    """Where blocks are.

    Attributes:
        offsets: the offset of each block, in the arena or in the memory of a thread.
        in_task: whether each is in the memory of a thread.
        arena_bytes: the size of the arena.
        task_bytes: for each region the size of the memory of a thread.
    """

    offsets: list[int]
    in_task: list[bool]
    arena_bytes: int
    task_bytes: list[int]


def assign_concurrent(blocks: Sequence[AccessedBlock], regions: Sequence[Region]) -> ConcurrentMemory:
    """The offset of each block, and the bytes of the arena and of the memory of threads."""
    offsets, in_task, task_bytes = [0] * len(blocks), [False] * len(blocks), []
    by_task = _blocks_by_task(blocks, regions)
    for region in regions:
        most = 0
        for task in region.tasks:
            own = by_task.get(task.steps.start, [])
            lifetimes = [Lifetime(blocks[i].steps[0], blocks[i].steps[-1], blocks[i].nbytes) for i in own]
            places, size = assign(lifetimes)
            most = largest(most, size)
            for i, place in zip(own, places, strict=True):
                offsets[i], in_task[i] = place, True
        task_bytes.append(most)
    shared = [i for i in range(len(blocks)) if not in_task[i]]
    places, size = assign_shared([blocks[i] for i in shared], regions)
    for i, place in zip(shared, places, strict=True):
        offsets[i] = place
    return ConcurrentMemory(offsets, in_task, size, task_bytes)


def _blocks_by_task(blocks: Sequence[AccessedBlock], regions: Sequence[Region]) -> dict[int, list[int]]:
    """The blocks that one task alone accesses, by the first step of the task."""
    tasks = {step: task.steps for region in regions for task in region.tasks for step in task.steps}
    by_task: dict[int, list[int]] = {}
    for i, block in enumerate(blocks):
        steps = tasks.get(block.steps[0], range(0))
        if block.steps[0] in steps and block.steps[-1] in steps:
            by_task.setdefault(steps.start, []).append(i)
    return by_task


def assign_shared(blocks: Sequence[AccessedBlock], regions: Sequence[Region]) -> tuple[list[int], int]:
    """The offset of each block in the arena, and the bytes of the arena; symbolic sizes come last."""
    accesses = _block_accesses(blocks, regions)
    in_order = sorted(range(len(blocks)), key=lambda i: accesses[i].first)
    static = [i for i in in_order if type(blocks[i].nbytes) is int]
    symbolic = [i for i in in_order if type(blocks[i].nbytes) is not int]
    offsets = [0] * len(blocks)
    end = _assign_static(static, blocks, accesses, offsets)
    return offsets, _assign_symbolic(symbolic, blocks, accesses, offsets, end)


def _assign_static(
    numbers: Sequence[int],
    blocks: Sequence[AccessedBlock],
    accesses: Sequence[_BlockAccess],
    offsets: list[int],
) -> int:
    """Store the offsets of blocks, which are in the order of their first access; returns the end of the last.

    Each gets the smallest gap between those that are still needed: a later step may access them, or a task of
    the same region that may end later.
    """
    size = 0
    active: list[tuple[int, int | None, int, int, int]] = []
    for i in numbers:
        first, last, region, last_region, earlier, accessing = accesses[i]
        length = aligned(blocks[i].nbytes)
        if region is None:
            active = [x for x in active if x[0] >= first]
            occupied = [x[3:] for x in active]
        else:
            active = [x for x in active if x[0] >= first or x[1] == region]
            occupied = [x[3:] for x in active if x[0] >= first or x[2] & ~earlier]
        offsets[i] = _gap(sorted(occupied), length, size)
        size = max(size, offsets[i] + length)
        active.append((last, last_region, accessing, offsets[i], length))
    return size


def _assign_symbolic(
    numbers: Sequence[int],
    blocks: Sequence[AccessedBlock],
    accesses: Sequence[_BlockAccess],
    offsets: list[int],
    end: int,
) -> int:
    """Store the offsets of blocks of symbolic sizes from ``end`` on; returns the new end.

    A byte range is as large as its first block, and is reused for later blocks that are never larger.
    """
    ranges: list[tuple[int, int]] = []
    last: list[_BlockAccess] = []
    for i in numbers:
        nbytes, access = blocks[i].nbytes, accesses[i]
        places = range(len(ranges))
        place = next((r for r in places if last[r].precedes(access) and holds(ranges[r][1], nbytes)), None)
        if place is None:
            place = len(ranges)
            ranges.append((end, nbytes))
            last.append(access)
            end += aligned(nbytes)
        last[place] = access
        offsets[i] = ranges[place][0]
    return end


class _BlockAccess(NamedTuple):
    """When a block is accessed.

    Attributes:
        first, last: the first and the last step.
        first_region, last_region: their regions; None for none.
        earlier: bit ``i`` if task ``i`` of ``first_region`` ends before any other task accesses the block.
        accessing: bit ``i`` if task ``i`` of ``last_region`` accesses the block.
    """

    first: int
    last: int
    first_region: int | None
    last_region: int | None
    earlier: int
    accessing: int

    def precedes(self, later: _BlockAccess) -> bool:
        """Whether all accesses come before all of ``later``."""
        if self.last >= later.first:
            return False
        same = self.last_region is not None and self.last_region == later.first_region
        return not (same and self.accessing & ~later.earlier)


def _block_accesses(blocks: Sequence[AccessedBlock], regions: Sequence[Region]) -> list[_BlockAccess]:
    region_of: dict[int, int] = {}
    task_of: dict[int, int] = {}
    for number, region in enumerate(regions):
        for index, task in enumerate(region.tasks):
            region_of.update(dict.fromkeys(task.steps, number))
            task_of.update(dict.fromkeys(task.steps, index))
    masks = [region.earlier() for region in regions]
    accesses: list[_BlockAccess] = []
    for block in blocks:
        first, last = block.steps[0], block.steps[-1]
        first_region, last_region = region_of.get(first), region_of.get(last)
        earlier, accessing = -1, 0
        for step in block.steps:
            if first_region is not None and region_of.get(step) == first_region:
                earlier &= masks[first_region][task_of[step]]
            if last_region is not None and region_of.get(step) == last_region:
                accessing |= 1 << task_of[step]
        accesses.append(_BlockAccess(first, last, first_region, last_region, earlier, accessing))
    return accesses


def _gap(occupied: Sequence[tuple[int, int]], nbytes: int, size: int) -> int:
    """The start of the smallest gap of ``nbytes`` between occupied ranges, which are sorted; or their end."""
    best, at, end = -1, -1, 0
    for start, length in occupied:
        room = start - end
        if room >= nbytes and (best < 0 or room < best):
            best, at = room, end
        if start + length > end:
            end = start + length
    if size - end >= nbytes and (best < 0 or size - end < best):
        at = end
    return end if at < 0 else at
