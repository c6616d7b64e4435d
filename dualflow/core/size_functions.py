"""Functions of sizes: the larger of two, the ends of slices, other numbers in the place of symbols."""

from __future__ import annotations

from collections.abc import Mapping

from dualflow.core.extent import Atom, Extent, UndecidedSize, applied, bounds, is_less


class _Extents:
    """The functions of atoms for extents."""

    quotient = staticmethod(lambda x, y: x // y)
    remainder = staticmethod(lambda x, y: x % y)
    largest = staticmethod(lambda x, y: largest(x, y))
    smallest = staticmethod(lambda x, y: smallest(x, y))
    from_end = staticmethod(lambda x, size: from_end(x, size))
    filled_in = staticmethod(lambda x, rest: filled_in(x, rest))
    met = staticmethod(lambda x, y: met(x, y))
    repeating = staticmethod(lambda stride, size: repeating(stride, size))


def substituted(value: int, by: Mapping[Atom, int]) -> int:
    """``value`` with other extents, or numbers, in the place of symbols."""
    if not isinstance(value, Extent) or not any(a in by for a in value.atoms()):
        return value
    found: int = value.compute(lambda atom: by.get(atom, Extent({(atom,): 1})), _Extents())
    return found


def largest(x: int, y: int) -> int:
    """The larger one of two sizes."""
    return _extreme("largest", x, y)


def smallest(x: int, y: int) -> int:
    """The smaller one of two sizes."""
    return _extreme("smallest", x, y)


def from_end(position: int, size: int) -> int:
    """A position in an axis of ``size``, which counts from the end if it is negative, from the front."""
    least, most = bounds(position)
    if least is not None and least >= 0:
        return position
    if most is not None and most < 0:
        return position + size
    return applied("from_end", position, size)


def filled_in(size: int, rest: int) -> int:
    """A size of a shape in which -1 stands for ``rest``, what the other sizes leave."""
    least, _ = bounds(size)
    return (
        rest if size == -1 else size if least is not None and least >= 0 else applied("filled_in", size, rest)
    )


def met(x: int, y: int) -> int:
    """The size of an axis on which axes of two sizes meet, if they do: that which is not 1."""
    if x == y or y == 1:
        return x
    if x == 1 or (type(y) is int and isinstance(x, Extent)):
        return y
    return x if type(x) is int else applied("met", x, y)


def repeating(stride: int, size: int) -> int:
    """The stride of an axis that is repeated where its ``size`` is 1."""
    if not isinstance(size, Extent):
        return 0 if size == 1 else stride
    return 0 if stride == 0 else applied("repeating", stride, size)


def slice_bounds(start: int | None, stop: int | None, step: int, size: int) -> tuple[int, int]:
    """Where a slice of an axis begins, and how many elements it has: Python's rule for sizes of any kind.

    >>> slice_bounds(1, None, 2, 6), slice_bounds(None, None, -1, 3), slice_bounds(4, 2, 1, 6)
    ((1, 3), (2, 3), (4, 0))
    """
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first, last = (low, high) if step > 0 else (high, low)
    begin = first if start is None else smallest(largest(from_end(start, size), low), high)
    end = last if stop is None else smallest(largest(from_end(stop, size), low), high)
    distance = end - begin if step > 0 else begin - end
    count = -(-distance // abs(step))
    return begin, count if start is None or stop is None else largest(count, 0)


def sliced_extent(start: int | None, stop: int | None, step: int, size: int) -> tuple[int, int]:
    """As :func:`slice_bounds`; but ends with extents are taken as they are.

    They were made for the axis: ``start`` is inside, and ``stop`` a whole number of steps away.
    """
    if isinstance(start, Extent) or isinstance(stop, Extent):
        assert start is not None, "a slice by extents has both ends"
        assert stop is not None, "a slice by extents has both ends"
        return start, (stop - start) // step
    return slice_bounds(start, stop, step, size)


def _extreme(kind: str, x: int, y: int) -> int:
    try:
        smaller, larger = (y, x) if is_less(y, x) else (x, y)
    except UndecidedSize:
        low, high = bounds(x - y)
        if (low is not None and low >= 0) or (high is not None and high <= 0):
            smaller, larger = (y, x) if low is not None and low >= 0 else (x, y)
        elif any(_inside(kind, part, whole) for part, whole in ((x, y), (y, x))):
            return y if _inside(kind, x, y) else x
        else:
            first, second = sorted((x, y), key=repr)
            return applied(kind, first, second)
    return larger if kind == "largest" else smaller


def _inside(kind: str, part: int, whole: int) -> bool:
    """Whether ``whole`` is already the extreme of ``part`` and something else."""
    if not isinstance(whole, Extent) or len(whole.terms) != 1:
        return False
    ((monomial, factor),) = whole.terms.items()
    return factor == 1 and len(monomial) == 1 and monomial[0].kind == kind and part in monomial[0].parts
