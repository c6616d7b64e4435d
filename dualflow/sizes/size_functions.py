"""Functions of sizes, static or symbolic: maximum, minimum, slice bounds, broadcasting, substitution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Final

from dualflow.sizes.symbolic_sizes import (
    SizeFactor,
    SymInt,
    bounds,
    size_function,
    size_variables,
)

_MAX_BROADCAST_OPERANDS: Final = 32
"""The number of sizes up to which a broadcast size is compared with the sizes it is broadcast from."""
_EXTREMES: Final = frozenset({"largest", "smallest"})


class _Symbolic:
    """The arithmetic of :class:`~dualflow.sizes.size_maths.SizeMaths` on symbolic sizes.

    The lambdas call functions of the same names that are defined below.
    """

    quotient = staticmethod(lambda x, y: x // y)
    remainder = staticmethod(lambda x, y: x % y)
    largest = staticmethod(lambda x, y: largest(x, y))
    smallest = staticmethod(lambda x, y: smallest(x, y))
    normalized_index = staticmethod(lambda x, size: normalized_index(x, size))
    inferred_size = staticmethod(lambda x, remaining: inferred_size(x, remaining))
    broadcast_size = staticmethod(lambda x, y: broadcast_size(x, y))
    broadcast_stride = staticmethod(lambda stride, size: broadcast_stride(stride, size))


def substitute(value: int, by: Mapping[SizeFactor, int]) -> int:
    """``value`` with its variables replaced by other sizes, symbolic or not."""
    if not isinstance(value, SymInt) or not any(v in by for v in size_variables(value)):
        return value
    replaced: int = value.compute(lambda factor: by.get(factor, SymInt({(factor,): 1})), _Symbolic())
    return replaced


def may_be_negative(value: int) -> bool:
    """Whether ``value`` may be less than 0 in some run."""
    if type(value) is int:
        return value < 0
    lower, _ = bounds(value)
    return lower is None or lower < 0


def largest(x: int, y: int) -> int:
    """The larger of two sizes."""
    return _extreme("largest", x, y)


def smallest(x: int, y: int) -> int:
    """The smaller of two sizes."""
    return _extreme("smallest", x, y)


def normalized_index(position: int, size: int) -> int:
    """A position in an axis of ``size``, counted from the front; a negative one counts from the end."""
    lower, upper = bounds(position)
    if lower is not None and lower >= 0:
        return position
    if upper is not None and upper < 0:
        return position + size
    return size_function("normalized_index", position, size)


def inferred_size(size: int, remaining: int) -> int:
    """``remaining`` where ``size``, an entry of a new shape, is -1; otherwise ``size``."""
    if size == -1:
        return remaining
    lower, _ = bounds(size)
    if lower is not None and lower >= 0:
        return size
    return size_function("inferred_size", size, remaining)


def broadcast_size(x: int, y: int) -> int:
    """The broadcast size of two axes: the one that is not 1.

    A size that was broadcast with the other one before is the result: broadcasting is idempotent.
    """
    if x == y or y == 1:
        return x
    if x == 1 or (type(y) is int and isinstance(x, SymInt)):
        return y
    if type(x) is int:
        return x
    of_x, of_y = _broadcast_operands(x), _broadcast_operands(y)
    if of_y <= of_x:
        return x
    return y if of_x < of_y else size_function("broadcast_size", x, y)


def _broadcast_operands(size: int) -> set[int]:
    """The sizes that ``size`` is broadcast from; itself if it isn't broadcast, or from too many sizes."""
    operands, visited, pending = set[int](), set[int](), [size]
    while pending:
        x = pending.pop()
        parts = _parts("broadcast_size", x)
        if not parts:
            operands.add(x)
            if len(operands) > _MAX_BROADCAST_OPERANDS:
                return {size}
        elif x not in visited:
            visited.add(x)
            pending += parts
    return operands


def _parts(kind: str, size: int) -> tuple[int, ...]:
    """The operands of ``size`` if it is the function ``kind`` of other sizes, and nothing else."""
    if not isinstance(size, SymInt) or len(size.terms) != 1:
        return ()
    ((monomial, coefficient),) = size.terms.items()
    is_function = coefficient == 1 and len(monomial) == 1 and monomial[0].kind == kind
    return monomial[0].parts if is_function else ()


def broadcast_stride(stride: int, size: int) -> int:
    """The stride of an axis, or 0 where its ``size`` is 1: the one element is repeated."""
    if not isinstance(size, SymInt):
        return 0 if size == 1 else stride
    return 0 if stride == 0 else size_function("broadcast_stride", stride, size)


def slice_bounds(start: int | None, stop: int | None, step: int, size: int) -> tuple[int, int]:
    """The start of a slice of an axis, and its number of elements, by Python's rule, for sizes of any kind.

    >>> slice_bounds(1, None, 2, 6), slice_bounds(None, None, -1, 3), slice_bounds(4, 2, 1, 6)
    ((1, 3), (2, 3), (4, 0))

    Slices that leave out as many elements have equal sizes: ``x[2:]``, ``x[1:-1]`` and ``x[:-2]``.
    """
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first, last = (low, high) if step > 0 else (high, low)
    unclamped = first if start is None else largest(normalized_index(start, size), low)
    begin = first if start is None else smallest(unclamped, high)
    end = last if stop is None else smallest(largest(normalized_index(stop, size), low), high)
    from_end = 0 if stop is None else -stop if _is_negative(stop) else None
    if from_end is not None and step > 0 and begin is not unclamped:
        return begin, -(-largest(size - from_end - unclamped, 0) // step)
    distance = end - begin if step > 0 else begin - end
    count = -(-distance // abs(step))
    return begin, count if start is None or stop is None else largest(count, 0)


def _is_negative(x: int) -> bool:
    """Whether bounds show that ``x < 0``."""
    _, most = bounds(x)
    return most is not None and most < 0


def compared_slice_bounds(start: int | None, stop: int | None, step: int, size: int) -> tuple[int, int]:
    """:func:`slice_bounds` where each comparison is decided by the sizes of the traced call.

    Slices of traced tensors try it first, since its results have no size functions.

    Raises:
        UndecidedSize: a comparison has no outcome.
    """

    def position(x: int) -> int:
        low, high = (0, size) if step > 0 else (-1, size - 1)
        return min(max(x + size if x < 0 else x, low), high)

    first, last = (0, size) if step > 0 else (size - 1, -1)
    begin = first if start is None else position(start)
    end = last if stop is None else position(stop)
    return begin, max(-(-(end - begin if step > 0 else begin - end) // abs(step)), 0)


def symbolic_slice_bounds(start: int | None, stop: int | None, step: int, size: int) -> tuple[int, int]:
    """:func:`slice_bounds` for the keys of nodes, in which symbolic ends are used as they are.

    They were computed for the axis: ``start`` is inside, and ``stop`` a whole number of steps away.
    """
    if isinstance(start, SymInt) or isinstance(stop, SymInt):
        assert start is not None, "a slice with a symbolic end has both ends"
        assert stop is not None, "a slice with a symbolic end has both ends"
        return start, (stop - start) // step
    return slice_bounds(start, stop, step, size)


def always_equal(x: int | None, y: int | None) -> bool:
    """Whether two sizes are equal in all calls; equality in one call is not enough.

    >>> always_equal(3, 3), always_equal(None, None), always_equal(2, None)
    (True, True, False)
    """
    if x is None or y is None:
        return x is y
    return equal_for_all(x, y) is True


def equal_for_all(x: int, y: int) -> bool | None:
    """Whether ``x == y`` for all sizes, or for none; None if that depends on the sizes."""
    difference = x - y
    if type(difference) is int:
        return difference == 0
    least, most = bounds(difference)
    differ = (least is not None and least > 0) or (most is not None and most < 0)
    return False if differ else None


def less_for_all(x: int, y: int) -> bool | None:
    """Whether ``x < y`` for all sizes, or for none; None if that depends on the sizes."""
    least, most = bounds(x - y)
    if most is not None and most < 0:
        return True
    return False if least is not None and least >= 0 else None


def is_at_most(x: int, y: int) -> bool:
    """Whether bounds show that ``x <= y`` for all sizes; of maxima and minima, by those of their operands."""
    if type(x) is int and type(y) is int:
        return x <= y
    if _is_never_less(y, x):
        return True
    return (_has_extremes(x) or _has_extremes(y)) and _operands_show_at_most(x, y)


def _is_never_less(x: int, y: int) -> bool:
    """Whether bounds of the difference show that ``x >= y`` for all sizes."""
    least, _ = bounds(x - y)
    return least is not None and least >= 0


def _operands_show_at_most(x: int, y: int) -> bool:
    """Whether the operands of maxima and minima show that ``x <= y`` for all sizes."""
    of_x, of_y = _operands("largest", x), _operands("largest", y)
    parts, limits = of_x or (x,), (y, *of_y)
    if (of_x or of_y) and all(any(_is_never_less(y, x) for y in limits) for x in parts):
        return True
    of_x, of_y = _operands("smallest", x), _operands("smallest", y)
    parts, limits = (x, *of_x), of_y or (y,)
    return bool(of_x or of_y) and all(any(_is_never_less(y, x) for x in parts) for y in limits)


def required_least(size: int, required: int) -> int | None:
    """The least ``size`` that equals ``required``, if that is the larger of ``size`` and a number.

    >>> from dualflow.sizes.symbolic_sizes import size_variable
    >>> n = size_variable(least=0)
    >>> required_least(n, largest(n, 3)), required_least(n, n * 2)
    (3, None)
    """
    operands = _operands("largest", required)
    numbers = [x for x in operands if type(x) is int]
    others = [repr(x) for x in operands if type(x) is not int]  # == may record guards
    return numbers[0] if len(numbers) == 1 and others == [repr(size)] else None


def common_size(*sizes: int) -> int:
    """The size that all ``sizes`` must be equal to: a number if there is one, else the first.

    >>> common_size(3), common_size(2, 2)
    (3, 2)
    """
    return next((size for size in sizes if type(size) is int), sizes[0])


def _extreme(kind: str, x: int, y: int) -> int:
    """The maximum or minimum (``kind``) of two sizes."""
    if type(x) is int and type(y) is int:
        return max(x, y) if kind == "largest" else min(x, y)
    if not isinstance(x, SymInt):
        return _new_extreme(kind, x, y)
    key = f"simplified {kind}", y
    result = x.results.get(key)
    if result is None:
        result = x.results[key] = _new_extreme(kind, x, y)
    return result


def _new_extreme(kind: str, x: int, y: int) -> int:
    least, most = bounds(x - y)
    has_extremes = _has_extremes(x) or _has_extremes(y)
    if (most is not None and most <= 0) or (has_extremes and _operands_show_at_most(x, y)):
        return y if kind == "largest" else x
    if (least is not None and least >= 0) or (has_extremes and _operands_show_at_most(y, x)):
        return x if kind == "largest" else y
    for whole, other in ((x, y), (y, x)) if has_extremes else ():
        extremes = _extremes(kind, whole)
        if len(extremes) == 1:
            remaining = whole - extremes[0]
            for kept, dropped in itertools.permutations(_operands(kind, extremes[0])):
                smaller, larger = (
                    (dropped + remaining, other) if kind == "largest" else (other, dropped + remaining)
                )
                if is_at_most(smaller, larger):  # max(max(n, 1) - 2, 0) is max(n - 2, 0)
                    return _extreme(kind, kept + remaining, other)
    return size_function(kind, *sorted((x, y), key=repr))


def _has_extremes(size: int) -> bool:
    """Whether a maximum or minimum is a factor in ``size``."""
    return isinstance(size, SymInt) and not _EXTREMES.isdisjoint([f.kind for m in size.terms for f in m])


def _extremes(kind: str, size: int) -> list[SymInt]:
    """The maxima or minima (``kind``) that are terms of ``size``."""
    terms = size.terms.items() if isinstance(size, SymInt) else ()
    return [SymInt({m: 1}) for m, c in terms if c == 1 and len(m) == 1 and m[0].kind == kind]


def _operands(kind: str, size: int) -> tuple[int, ...]:
    """The operands of ``size`` if it is a maximum or minimum (``kind``), or one times sizes from 0 on."""
    if not isinstance(size, SymInt) or len(size.terms) != 1:
        return ()
    ((monomial, coefficient),) = size.terms.items()
    extremes = [factor for factor in monomial if factor.kind == kind]
    if len(extremes) != 1:
        return ()
    scale = coefficient * math.prod(SymInt({(f,): 1}) for f in monomial if f is not extremes[0])
    return () if may_be_negative(scale) else tuple([part * scale for part in extremes[0].parts])
