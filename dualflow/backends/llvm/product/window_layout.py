"""How windows of a tensor are copied for a product: each by itself, or the lines that they lie on.

Neighbouring windows share most of their elements. Where windows overlap, copies of whole lines of the tensor,
with the zeros around them, are much less than copies of windows, and the product reads windows in them where
they lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dualflow.core.records import NamedTuple
from dualflow.schedule.sliding import MOST_AXES, SlidingAxis, SlidingWindows

UNBOUNDED = 1 << 40
"""The length of a run that never ends."""
RUN = 256
"""How many elements are copied in the time that it takes to begin a run."""
ROOM = 3 << 15
"""Elements of a copy that stay in a second-level cache."""
_ALONE = SlidingAxis(1, 0, 1, 1, 1, 1)


class PlaceGrid(NamedTuple):
    """Where numbered things lie in a copy, in elements.

    A number is a place on four axes: ``sizes`` are those of the inner three, of which the last is a *run*.
    """

    sizes: tuple[int, int, int]
    distances: tuple[int, int, int, int]


class CopiedWindows(NamedTuple):
    """What a block copies, and where it then finds an element of a window: where these lie, added.

    Attributes:
        pieces: what is copied, as windows of a tensor.
        most: the most pieces of a block.
        apart: the distance of pieces in the copy.
        lines: how many lines lie under a window; 0 where the pieces are the windows themselves.
        windows: where windows begin.
        elements: where an element of a window lies, from its begin.
    """

    pieces: SlidingWindows
    most: int
    apart: int
    lines: int
    windows: PlaceGrid
    elements: PlaceGrid

    def numbers(self) -> list[int]:
        """What the table of a product says of it, in the order of :class:`WindowField` from ``LINES`` on.

        Elements of a piece that are neighbours in the tensor are one run.
        """
        channels, axes = self.pieces.channels, list(_three(self.pieces))
        distances = [math.prod([a.size for a in axes[i + 1 :]]) * channels for i in range(MOST_AXES)]
        last = axes[-1]
        span = last.length if last.dilation == 1 else 1
        axes[-1] = last._replace(length=last.length if span == 1 else 1)
        numbers = [self.lines, axes[0].size * distances[0], channels, span]
        numbers += [a.windows for a in axes] + [a.size for a in axes] + distances + [a.stride for a in axes]
        numbers += [a.before for a in axes] + [a.length for a in axes] + [a.dilation for a in axes]
        return [*numbers, *[n for grid in (self.windows, self.elements) for part in grid for n in part]]

    @property
    def room(self) -> int:
        """The elements of the copy."""
        return self.most * self.apart


def copied_windows(
    lie: SlidingWindows,
    part: tuple[int, int],
    parts: int,
    apart: Callable[[int], int],
    *,
    whole_lines: bool,
) -> CopiedWindows:
    """The faster way to copy windows for a block.

    ``part`` tells how many windows, and how many elements of each, the block takes at a time. It takes so
    many ``parts`` of the same windows, for which lines are copied once. ``apart`` gives the distance of
    pieces of a length.
    """
    count, length = part
    distance = apart(length)
    each = PlaceGrid((1, 1, UNBOUNDED), (0, 0, 0, distance)), PlaceGrid((1, 1, UNBOUNDED), (0, 0, 0, 1))
    alone = CopiedWindows(lie, count, distance, 0, *each)
    known = all(type(n) is int and n > 0 for a in lie.axes for n in (a.size, a.windows, a.length))
    if not (whole_lines and known and type(lie.channels) is int):
        return alone
    lines = _lines(lie, count, apart)
    runs = -(-length // lie.run) + 1
    faster = lines.most * (RUN + lines.apart) < parts * count * (RUN * runs + length)
    return lines if faster and lines.room <= max(alone.room, ROOM) else alone


def _lines(lie: SlidingWindows, count: int, apart: Callable[[int], int]) -> CopiedWindows:
    """Copies of the lines along the last axis."""
    axes = _three(lie)
    reach = [(a.length - 1) * a.dilation + 1 for a in axes]
    wide = [(a.windows - 1) * a.stride + r for a, r in zip(axes, reach, strict=True)]
    outer = [SlidingAxis(a.size, a.before, n, 1, 1, 1) for a, n in zip(axes[:-1], wide[:-1], strict=True)]
    last = axes[-1]
    whole = SlidingAxis(last.size, last.before, 1, 1, wide[-1], 1)
    distance = apart(wide[-1] * lie.channels)
    plane = wide[1] * distance
    spread = last.dilation > 1
    run = lie.channels * (1 if spread else last.length)
    windows = PlaceGrid(
        (axes[0].windows, axes[1].windows, last.windows),
        (wide[0] * plane, axes[0].stride * plane, axes[1].stride * distance, last.stride * lie.channels),
    )
    elements = PlaceGrid(
        (axes[1].length, last.length if spread else 1, run),
        (axes[0].dilation * plane, axes[1].dilation * distance, last.dilation * lie.channels, 1),
    )
    under = (reach[0] - 1) * wide[1] + reach[1]
    pieces = SlidingWindows((*outer, whole), lie.channels)
    most = _lines_between(axes, wide, count) + under
    return CopiedWindows(pieces, most, distance, under, windows, elements)


def _three(lie: SlidingWindows) -> tuple[SlidingAxis, ...]:
    """The axes, with others of one element before them."""
    return (_ALONE,) * (MOST_AXES - len(lie.axes)) + lie.axes


def _lines_between(axes: tuple[SlidingAxis, ...], wide: list[int], count: int) -> int:
    """The most lines from that where a window begins to that where the window ``count - 1`` further does."""
    first, second, last = axes
    iterations = -(-(count - 1) // last.windows)
    to_next = second.stride
    to_first = first.stride * wide[1] - (second.windows - 1) * second.stride
    to_batch = math.prod(wide[:2]) - (first.windows - 1) * first.stride * wide[1]
    to_batch -= (second.windows - 1) * second.stride
    further = -(-iterations // second.windows) * max(0, to_first - to_next)
    furthest = -(-iterations // (first.windows * second.windows)) * max(0, to_batch - to_first)
    return iterations * to_next + further + furthest
