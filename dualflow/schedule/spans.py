"""Spans of elements of a buffer, and whether one is inside another; sizes may be symbolic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dualflow.core.extent import Extent, bounds
from dualflow.core.size_functions import largest, smallest
from dualflow.schedule.nest import Layout


class Span(NamedTuple):
    """Elements of a buffer, from ``first`` to ``last``, each of ``size`` bytes.

    ``counts`` are sizes that the program learns: where one is 0 there are no elements.
    """

    buffer: int
    size: int
    first: int
    last: int
    counts: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """The bytes that the buffer has to have."""
        return self.size * (self.last + 1)

    def __str__(self) -> str:
        return f"elements {self.first} to {self.last} ({self.size} bytes each) of buffer {self.buffer}"


def footprint(layout: Layout, shape: Sequence[int], size: int) -> Span | None:
    """The elements between the first and the last of a layout; None where there are none.

    >>> str(footprint(Layout(2, 10, (4, -1)), (3, 4), 8))
    'elements 7 to 18 (8 bytes each) of buffer 2'
    """
    first = last = layout.offset
    symbolic: tuple[int, ...] = ()
    for extent, stride in zip(shape, layout.strides, strict=True):
        if extent == 0:
            return None
        if type(extent) is int and type(stride) is int:
            distance = stride * (extent - 1)
            if distance < 0:
                first += distance
            else:
                last += distance
        else:
            before, after = distances(stride, extent)
            first, last = first + before, last + after
            symbolic = (*symbolic, extent) if isinstance(extent, Extent) else symbolic
    return Span(layout.buffer, size, first, last, symbolic)


def in_order(layout: Layout, counts: Sequence[int], size: int) -> Span | None:
    """As many elements as the product of ``counts``, one after another; None where there are none."""
    if 0 in counts:
        return None
    symbolic = tuple([d for d in counts if isinstance(d, Extent)])
    return Span(layout.buffer, size, layout.offset, layout.offset + math.prod(counts) - 1, symbolic)


def distances(stride: int, count: int) -> tuple[int, int]:
    """How far ``count`` elements reach before the first of them, at most 0, and behind it, at least 0."""
    distance = stride * (count - 1)
    least, most = bounds(stride)
    if least is not None and least >= 0:
        return 0, distance
    if most is not None and most <= 0:
        return distance, 0
    return smallest(distance, 0), largest(distance, 0)


def at_least(x: int, y: int) -> bool | None:
    """Whether ``x`` is never less than ``y``; None where only the run tells."""
    if type(x) is int and type(y) is int:
        return x >= y
    least, most = bounds(x - y)
    if least is not None and least >= 0:
        return True
    return False if most is not None and most < 0 else None


def both(first: bool | None, second: bool | None) -> bool | None:
    """Whether both hold; None where only the run tells."""
    if first is False or second is False:
        return False
    return True if first and second else None


def contains(outer: Span, inner: Span) -> bool | None:
    """Whether the elements of ``inner`` are among those of ``outer``, of the same buffer and size."""
    return both(at_least(inner.first, outer.first), at_least(outer.last, inner.last))


def fits(span: Span, nbytes: int) -> bool | None:
    """Whether the elements are inside of a buffer of so many bytes; None where only the run tells.

    Where sizes are symbolic, elements that are outside may never be accessed.
    """
    inside = both(at_least(span.first, 0), at_least(nbytes, span.nbytes))
    return None if inside is False and span.counts else inside
