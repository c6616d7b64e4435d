"""Memory of a plan with concurrent calls: it is reused only by calls that run later in every order.

Outside of regions the steps are in order. In a region, memory of a dead value is free for another one if
every task that accesses the old value ends before each task that accesses the new one begins. A value that
one task alone accesses is in memory of the thread that runs the task: as many bytes as the largest task
needs, for each thread.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from operator import attrgetter

from dualflow.core.records import NamedTuple
from dualflow.schedule.arena import Lifetime, aligned, assign, assign_ranges
from dualflow.schedule.concurrency import Region
from dualflow.sizes.size_functions import largest


class AccessedBlock(NamedTuple):
    """A block of bytes, and the steps that access it, in ascending order."""

    steps: tuple[int, ...]
    nbytes: int


class ConcurrentMemory(NamedTuple):
    """The offsets of blocks, and the sizes of the memory that they are in.

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


class _ActiveBlock(NamedTuple):
    """A block whose bytes may still be accessed.

    Attributes:
        start, end: its bytes.
        last: the last step that accesses it.
        region: the region of that step; None for none.
        accessing: bit ``i`` if task ``i`` of the region accesses it.
    """

    start: int
    end: int
    last: int
    region: int | None
    accessing: int


_bytes_of = attrgetter("start", "end")
_ALL_TASKS = -1
"""A mask with every bit set."""


def assign_concurrent(blocks: Sequence[AccessedBlock], regions: Sequence[Region]) -> ConcurrentMemory:
    """The offset of each block, and the bytes of the arena and of the memory of threads."""
    offsets, in_task, task_bytes = [0] * len(blocks), [False] * len(blocks), []
    by_task = _blocks_by_task(blocks, regions)
    for region in regions:
        max_bytes = 0
        for task in region.tasks:
            numbers = by_task.get(task.steps.start, [])
            lifetimes = [Lifetime(blocks[i].steps[0], blocks[i].steps[-1], blocks[i].nbytes) for i in numbers]
            starts, size = assign(lifetimes)
            max_bytes = largest(max_bytes, size)
            for i, start in zip(numbers, starts, strict=True):
                offsets[i], in_task[i] = start, True
        task_bytes.append(max_bytes)
    shared = [i for i in range(len(blocks)) if not in_task[i]]
    starts, size = assign_shared([blocks[i] for i in shared], regions)
    for i, start in zip(shared, starts, strict=True):
        offsets[i] = start
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
    starts, end = assign_ranges(
        [blocks[i].nbytes for i in symbolic],
        lambda i, j: accesses[symbolic[i]].precedes(accesses[symbolic[j]]),
        end,
    )
    for i, start in zip(symbolic, starts, strict=True):
        offsets[i] = start
    return offsets, end


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
    active: list[_ActiveBlock] = []  # in the order of their bytes
    for i in numbers:
        first, last, region, last_region, earlier, accessing = accesses[i]
        length = aligned(blocks[i].nbytes)
        if region is None:
            active = [x for x in active if x.last >= first]
        else:
            active = [x for x in active if x.last >= first or x.region == region]
        start = offsets[i] = _start_of_smallest_gap(active, first, earlier, length, size)
        size = max(size, start + length)
        block = _ActiveBlock(start, start + length, last, last_region, accessing)
        bisect.insort(active, block, key=_bytes_of)
    return size


def _block_accesses(blocks: Sequence[AccessedBlock], regions: Sequence[Region]) -> list[_BlockAccess]:
    region_of: dict[int, int] = {}
    task_of: dict[int, int] = {}
    for number, region in enumerate(regions):
        for index, task in enumerate(region.tasks):
            region_of.update(dict.fromkeys(task.steps, number))
            task_of.update(dict.fromkeys(task.steps, index))
    masks = [region.predecessor_masks() for region in regions]
    accesses: list[_BlockAccess] = []
    for block in blocks:
        first, last = block.steps[0], block.steps[-1]
        first_region, last_region = region_of.get(first), region_of.get(last)
        earlier, accessing = _ALL_TASKS, 0
        for step in block.steps:
            if first_region is not None and region_of.get(step) == first_region:
                earlier &= masks[first_region][task_of[step]]
            if last_region is not None and region_of.get(step) == last_region:
                accessing |= 1 << task_of[step]
        accesses.append(_BlockAccess(first, last, first_region, last_region, earlier, accessing))
    return accesses


def _start_of_smallest_gap(
    active: Sequence[_ActiveBlock], first: int, earlier: int, nbytes: int, size: int
) -> int:
    """The start of the smallest gap of ``nbytes`` in the first ``size`` bytes; without one, the last end.

    A gap is between blocks of ``active``, which are in the order of their bytes, that may be accessed at step
    ``first`` or later, or by a task that is not ``earlier``.
    """
    smallest, start_of_gap, previous_end, others = size + 1, -1, 0, ~earlier
    for start, end, last, _, accessing in active:
        if last >= first or accessing & others:
            if nbytes <= start - previous_end < smallest:
                smallest, start_of_gap = start - previous_end, previous_end
            if end > previous_end:
                previous_end = end
    if start_of_gap < 0 or nbytes <= size - previous_end < smallest:
        return previous_end
    return start_of_gap
