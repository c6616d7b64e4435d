"""Memory for intermediate values: one arena, whose bytes are reused when a value is dead."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable, Iterable, Sequence

from dualflow.core.records import NamedTuple, dataclass
from dualflow.sizes.size_functions import is_at_most
from dualflow.sizes.symbolic_sizes import is_static

ALIGNMENT = 64


class Lifetime(NamedTuple):
    """A block of bytes needed from step ``birth`` to step ``death``, both included."""

    birth: int
    death: int
    nbytes: int


def assign(lifetimes: Iterable[Lifetime]) -> tuple[list[int], int]:
    """The offset of each block, and the bytes of the arena that holds them.

    A linear scan over the steps with best-fit reuse of free gaps: blocks that are needed at the same step
    never overlap. (Poletto and Sarkar, "Linear scan register allocation", 1999, with bytes for registers.)

    >>> assign([Lifetime(0, 1, 100), Lifetime(1, 2, 60), Lifetime(2, 3, 128)])
    ([0, 128, 0], 192)
    """
    blocks = list(lifetimes)
    if not is_static(block.nbytes for block in blocks):
        return _assign_symbolic(blocks)
    offsets = [0] * len(blocks)
    gaps = _Gaps()
    deaths: dict[int, list[int]] = {}
    for i in sorted(range(len(blocks)), key=lambda i: blocks[i].birth):
        for step in sorted(s for s in deaths if s < blocks[i].birth):
            for dead in deaths.pop(step):
                gaps.release(offsets[dead], aligned(blocks[dead].nbytes))
        offsets[i] = gaps.take(aligned(blocks[i].nbytes))
        deaths.setdefault(blocks[i].death, []).append(i)
    return offsets, gaps.end


def _assign_symbolic(blocks: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Offsets for memory blocks of which some have symbolic sizes; those come after the others."""
    static = [i for i, block in enumerate(blocks) if type(block.nbytes) is int]
    symbolic = [i for i, block in enumerate(blocks) if type(block.nbytes) is not int]
    symbolic.sort(key=lambda i: blocks[i].birth)
    starts, end = assign([blocks[i] for i in static])
    later, end = assign_ranges(
        [blocks[i].nbytes for i in symbolic],
        lambda i, j: blocks[symbolic[i]].death < blocks[symbolic[j]].birth,
        end,
    )
    offsets = dict(zip([*static, *symbolic], [*starts, *later], strict=True))
    return [offsets[i] for i in range(len(blocks))], end


def assign_ranges(
    sizes: Sequence[int], is_dead: Callable[[int, int], bool], start: int
) -> tuple[list[int], int]:
    """The offsets from ``start`` on of blocks of symbolic sizes, and the end of the last one.

    A byte range is as large as its first block, and is reused for later blocks that are never larger.

    Args:
        sizes: the bytes of each block, in the order of first use.
        is_dead: ``is_dead(i, j)`` is whether block ``j`` may have the bytes of block ``i``.
        start: the first byte.
    """
    ranges: list[_ReusableRange] = []
    offsets: list[int] = []
    whole_lines = functools.cache(aligned)  # few sizes are different
    for i, nbytes in enumerate(sizes):
        target = next((r for r in ranges if is_dead(r.block, i) and holds(r.nbytes, nbytes)), None)
        if target is None:
            target = _ReusableRange(start, nbytes, i)
            ranges.append(target)
            start += whole_lines(nbytes)
        target.block = i
        offsets.append(target.offset)
    return offsets, start


@dataclass(slots=True)
class _ReusableRange:
    """A byte range of symbolic size in the arena, and the last block in it."""

    offset: int
    nbytes: int
    block: int


def holds(nbytes: int, other: int) -> bool:
    """Whether ``nbytes`` is at least ``other`` for all values of the size variables."""
    return nbytes == other or is_at_most(other, nbytes)


def aligned(nbytes: int) -> int:
    """``nbytes`` rounded up to whole cache lines."""
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


class _Gaps:
    """The free ranges of bytes below ``end``, in order of their start; adjacent ranges are merged."""

    def __init__(self) -> None:
        self.free: list[tuple[int, int]] = []
        self.end = 0

    def take(self, nbytes: int) -> int:
        fitting = [(size, start) for start, size in self.free if size >= nbytes]
        if fitting:
            size, start = min(fitting)
            self.free.remove((start, size))
            if size > nbytes:
                bisect.insort(self.free, (start + nbytes, size - nbytes))
            return start
        start = self.end
        if self.free and sum(self.free[-1]) == self.end:
            start = self.free.pop()[0]
        self.end = start + nbytes
        return start

    def release(self, start: int, nbytes: int) -> None:
        if not nbytes:
            return
        at = bisect.bisect(self.free, (start, 0))
        if at < len(self.free) and start + nbytes == self.free[at][0]:
            nbytes += self.free.pop(at)[1]
        if at and sum(self.free[at - 1]) == start:
            before = self.free.pop(at - 1)
            start, nbytes = before[0], before[1] + nbytes
        bisect.insort(self.free, (start, nbytes))
