"""Ranges of elements of a buffer, and tests whether one contains another; sizes may be symbolic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Value
from dualflow.graph.views import sizes
from dualflow.schedule.nest import Layout
from dualflow.schedule.refused_accesses import unsafe
from dualflow.sizes.size_functions import largest, smallest
from dualflow.sizes.symbolic_sizes import SymInt, bounds


class ElementRange(NamedTuple):
    """The elements ``first`` to ``last`` of a buffer, each of ``size`` bytes.

    ``counts`` are dynamic sizes; unless each is at least 1, there are no elements.
    """

    buffer: int
    size: int
    first: int
    last: int
    counts: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """The bytes that the buffer needs."""
        return self.size * (self.last + 1)

    def __str__(self) -> str:
        return f"elements {self.first} to {self.last} ({self.size} bytes each) of buffer {self.buffer}"


def range_of_layout(layout: Layout, shape: Sequence[int], size: int) -> ElementRange | None:
    """The range from the first to the last element of a layout; None if it has no elements.

    >>> str(range_of_layout(Layout(2, 10, (4, -1)), (3, 4), 8))
    'elements 7 to 18 (8 bytes each) of buffer 2'
    """
    buffer, first, strides = layout
    last, symbolic = first, False
    for extent, stride in zip(shape, strides, strict=True):
        if extent.__class__ is int and not extent:
            return None
        if extent.__class__ is not int or stride.__class__ is not int:
            before, after = distances(stride, extent)
            first, last, symbolic = first + before, last + after, True
        elif extent != 1:
            if stride < 0:
                first += stride * (extent - 1)
            else:
                last += stride * (extent - 1)
    counts = tuple([d for d in shape if isinstance(d, SymInt)]) if symbolic else ()
    return ElementRange(buffer, size, first, last, counts)


def contiguous_range(layout: Layout, counts: Sequence[int], size: int) -> ElementRange | None:
    """The range of contiguous elements, as many as the product of ``counts``; None if there are none."""
    if 0 in counts:
        return None
    symbolic = tuple([d for d in counts if isinstance(d, SymInt)])
    return ElementRange(layout.buffer, size, layout.offset, layout.offset + math.prod(counts) - 1, symbolic)


def distances(stride: int, count: int) -> tuple[int, int]:
    """The lowest and highest offset, from the first element, of ``count`` elements ``stride`` apart."""
    distance = stride * (count - 1)
    lower, upper = (stride, stride) if type(stride) is int else bounds(stride)
    if lower is not None and lower >= 0:
        return 0, distance
    if upper is not None and upper <= 0:
        return distance, 0
    return smallest(distance, 0), largest(distance, 0)


def at_least(x: int, y: int) -> bool | None:
    """Whether ``x`` is at least ``y``; None if that is known only at run time."""
    if type(x) is int and type(y) is int:
        return x >= y
    if isinstance(x, SymInt) and isinstance(y, SymInt) and x.terms == y.terms:
        return True
    lower, upper = bounds(x - y)
    if lower is not None and lower >= 0:
        return True
    return False if upper is not None and upper < 0 else None


def both(first: bool | None, second: bool | None) -> bool | None:
    """Whether both hold; None if that is known only at run time."""
    if first is False or second is False:
        return False
    return True if first and second else None


def contains(outer: ElementRange, inner: ElementRange) -> bool | None:
    """Whether the elements of ``inner`` are among those of ``outer``, of the same buffer and size."""
    return both(at_least(inner.first, outer.first), at_least(outer.last, inner.last))


def check_view(view: Value, layout: Layout, base: Value, whole: Layout) -> None:
    """Raise unless a view with this layout accesses only elements of its source.

    If that is known only at run time, the statements that read the view compare their accesses with the
    buffer.

    Raises:
        InternalError: it shows other elements.
    """
    if not (view.spec.shape.is_static and base.spec.shape.is_static):
        return
    inner, outer = (
        range_of_layout(at, sizes(v), v.spec.dtype.size) for at, v in ((layout, view), (whole, base))
    )
    if inner is not None and not inner.counts and (outer is None or contains(outer, inner) is False):
        assert view.node is not None, "a view is the output of a node"
        raise unsafe(view.node, f"it shows {inner}, but its source has {outer}")


def fits(elements: ElementRange, nbytes: int) -> bool | None:
    """Whether the elements are inside a buffer of ``nbytes`` bytes; None if that is known only at run time.

    With symbolic sizes, elements outside may never be accessed.
    """
    _, size, first, last, counts = elements
    if not counts and first.__class__ is last.__class__ is nbytes.__class__ is int:
        return first >= 0 and size * (last + 1) <= nbytes
    inside = both(at_least(first, 0), at_least(nbytes, elements.nbytes))
    return None if inside is False and counts else inside
