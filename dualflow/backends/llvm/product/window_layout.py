"""The layout of copied windows of a tensor: each window separately, or the lines that contain them.

Overlapping windows share most of their elements. Copies of whole lines of the tensor, with their zero
padding, are then much smaller than copies of windows, and the product reads the windows from the lines.
Which layout is faster depends on the sizes of the tensor: if they are symbolic, each call selects it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dualflow.core.records import NamedTuple
from dualflow.schedule.sliding import MAX_AXES, SlidingAxis, SlidingWindows
from dualflow.sizes.size_functions import largest, smallest

UNBOUNDED = 1 << 40
"""The length of a run that never ends: all elements have one stride."""
RUN_OVERHEAD = 256
"""The time to begin the copy of a run, in elements that are copied in the same time."""
CACHED_ELEMENTS = 3 << 15
"""The maximum number of elements of a copy that stays in a second-level cache."""
_SINGLE = SlidingAxis(1, 0, 1, 1, 1, 1)


class OffsetGrid(NamedTuple):
    """The offsets in a copy of windows, or of the elements of a window, by number.

    The number is the linear index into four axes. ``sizes`` are the sizes of the inner three; the last of
    them is a *run*, of equally spaced elements.
    """

    sizes: tuple[int, int, int]
    strides: tuple[int, int, int, int]


class CopiedWindows(NamedTuple):
    """The layout of the copy of a block's windows.

    The offset of an element is the offset of its window, plus its offset from the beginning of the window.

    Attributes:
        pieces: the copied pieces, as windows of a tensor.
        max_pieces: the maximum number of pieces of a block.
        pitch: the stride of pieces in the copy.
        lines: the number of lines of a window; 0 if the pieces are the windows themselves.
        windows: the offsets of windows.
        elements: the offsets of elements from the beginning of their window.
    """

    pieces: SlidingWindows
    max_pieces: int
    pitch: int
    lines: int
    windows: OffsetGrid
    elements: OffsetGrid

    def parameters(self) -> list[int]:
        """The parameters of a product that reads this copy: those of :class:`WindowField` from ``LINES`` on.

        Contiguous elements of a piece are one run.
        """
        channels, axes = self.pieces.channels, list(_padded_axes(self.pieces))
        strides = [math.prod([a.size for a in axes[i + 1 :]]) * channels for i in range(MAX_AXES)]
        last = axes[-1]
        span = last.length if last.dilation == 1 else 1
        axes[-1] = last._replace(length=last.length if span == 1 else 1)
        parameters = [self.lines, axes[0].size * strides[0], channels, span]
        parameters += [a.windows for a in axes] + [a.size for a in axes] + strides + [a.stride for a in axes]
        parameters += [a.before for a in axes] + [a.length for a in axes] + [a.dilation for a in axes]
        return [*parameters, *[n for grid in (self.windows, self.elements) for part in grid for n in part]]

    @property
    def size(self) -> int:
        """The number of elements of the copy."""
        return self.max_pieces * self.pitch


class WindowLayouts(NamedTuple):
    """The layouts of copied windows that calls of a product select from.

    Attributes:
        layouts: each layout with 1 if it is used, 0 if not: a symbolic size if there are several layouts.
        scratch: the maximum number of elements of a copy, which is static.
    """

    layouts: tuple[tuple[int, CopiedWindows], ...]
    scratch: int


def copied_windows(
    sliding: SlidingWindows,
    part: tuple[int, int],
    parts: int,
    pitch: Callable[[int], int],
    *,
    copy_lines: bool,
) -> WindowLayouts:
    """The layouts of copied windows for a block of a product, of which the faster one is used.

    Args:
        sliding: the windows.
        part: the number of windows, and of elements of each, that the block copies at a time.
        parts: the number of parts of the same windows, for which lines are copied once.
        pitch: returns the stride of pieces of a length.
        copy_lines: whether the product can read windows from lines.
    """
    count, length = part
    stride = pitch(length)
    grids = OffsetGrid((1, 1, UNBOUNDED), (0, 0, 0, stride)), OffsetGrid((1, 1, UNBOUNDED), (0, 0, 0, 1))
    separate = CopiedWindows(sliding, count, stride, 0, *grids)
    sizes = [n for axis in sliding.axes for n in (axis.size, axis.windows, axis.length)]
    is_empty = any(type(n) is int and n < 1 for n in sizes)
    if is_empty or not (copy_lines and sliding.has_static_filter):
        return WindowLayouts(((1, separate),), separate.size)
    lines = _lines(sliding, count, pitch)
    runs = -(-length // sliding.contiguous_elements) + 1
    cost_of_windows = parts * count * (RUN_OVERHEAD * runs + length)
    cost_of_lines = lines.max_pieces * (RUN_OVERHEAD + lines.pitch)
    scratch = max(separate.size, CACHED_ELEMENTS)
    symbolic_sizes = [n for n in sizes if type(n) is not int]
    use_lines = _all_positive([cost_of_windows - cost_of_lines, scratch + 1 - lines.size, *symbolic_sizes])
    if type(use_lines) is int:
        layout = lines if use_lines else separate
        return WindowLayouts(((1, layout),), layout.size)
    return WindowLayouts(((use_lines, lines), (1 - use_lines, separate)), scratch)


def _all_positive(sizes: Sequence[int]) -> int:
    """1 if all sizes are positive, else 0: an *and* of conditions, which may be symbolic."""
    return math.prod([smallest(largest(n, 0), 1) for n in sizes])


def _lines(sliding: SlidingWindows, count: int, pitch: Callable[[int], int]) -> CopiedWindows:
    """The layout that copies lines along the last axis."""
    axes = _padded_axes(sliding)
    reach = [(a.length - 1) * a.dilation + 1 for a in axes]
    padded_sizes = [(a.windows - 1) * a.stride + r for a, r in zip(axes, reach, strict=True)]
    outer = [
        SlidingAxis(a.size, a.before, n, 1, 1, 1) for a, n in zip(axes[:-1], padded_sizes[:-1], strict=True)
    ]
    last = axes[-1]
    line = SlidingAxis(last.size, last.before, 1, 1, padded_sizes[-1], 1)
    stride = pitch(padded_sizes[-1] * sliding.channels)
    plane = padded_sizes[1] * stride
    is_dilated = last.dilation > 1
    run = sliding.channels * (1 if is_dilated else last.length)
    windows = OffsetGrid(
        (axes[0].windows, axes[1].windows, last.windows),
        (
            padded_sizes[0] * plane,
            axes[0].stride * plane,
            axes[1].stride * stride,
            last.stride * sliding.channels,
        ),
    )
    elements = OffsetGrid(
        (axes[1].length, last.length if is_dilated else 1, run),
        (axes[0].dilation * plane, axes[1].dilation * stride, last.dilation * sliding.channels, 1),
    )
    lines_per_window = (reach[0] - 1) * padded_sizes[1] + reach[1]
    pieces = SlidingWindows((*outer, line), sliding.channels)
    max_pieces = _lines_between(axes, padded_sizes, count) + lines_per_window
    return CopiedWindows(pieces, max_pieces, stride, lines_per_window, windows, elements)


def _padded_axes(sliding: SlidingWindows) -> tuple[SlidingAxis, ...]:
    """Three axes: those of the windows, preceded by axes of size 1."""
    return (_SINGLE,) * (MAX_AXES - len(sliding.axes)) + sliding.axes


def _lines_between(axes: tuple[SlidingAxis, ...], padded_sizes: list[int], count: int) -> int:
    """The maximum number of lines between the first lines of two windows that are ``count - 1`` apart.

    The windows of a row of windows have one first line. From row to row it moves as follows::

        image 0, plane 0, row 0     to the next row: by the stride of rows
                          row 1     from the last row of a plane to the next plane
        image 0, plane 1, row 0
                          row 1     from the last row of an image to the next image
        image 1, plane 0, row 0

    Each move to a plane or an image adds what it is longer than the next shorter kind of move.
    """
    first, second, last = axes
    row_steps = -(-(count - 1) // last.windows)
    to_next_row = second.stride
    to_next_plane = first.stride * padded_sizes[1] - (second.windows - 1) * second.stride
    to_next_image = math.prod(padded_sizes[:2]) - (first.windows - 1) * first.stride * padded_sizes[1]
    to_next_image -= (second.windows - 1) * second.stride
    plane_moves = -(-row_steps // second.windows)
    image_moves = -(-row_steps // (first.windows * second.windows))
    longer = largest(0, to_next_plane - to_next_row), largest(0, to_next_image - to_next_plane)
    return row_steps * to_next_row + plane_moves * longer[0] + image_moves * longer[1]
