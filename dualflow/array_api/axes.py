"""Axes as the standard's functions take them: integers that may count from the end."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError


def axis_of(axis: Any, rank: int) -> int:
    """``axis`` counted from the front.

    Raises:
        OutOfRangeError: ``axis`` is outside of ``[-rank, rank)``.
        DTypeError: ``axis`` is not an integer.
    """
    try:
        index = operator.index(axis)
    except TypeError:
        raise DTypeError(f"An axis is an integer, such as 0 or -1, not {axis!r}.") from None
    if not -rank <= index < rank:
        raise OutOfRangeError(
            f"axis {index} is out of range for an array of {rank} axes: use {-rank} to {rank - 1}."
        )
    return index % rank


def only_axis(axis: Any, rank: int, function: str) -> int:
    """``axis`` counted from the front; None means the only axis of a vector.

    Raises:
        InvalidArgumentError: ``axis`` is None, and the array doesn't have exactly one axis.
    """
    if axis is None and rank != 1:
        raise InvalidArgumentError(
            f"{function} needs axis=... for an array of {rank} axes; only an array of one axis needs none."
        )
    return axis_of(0 if axis is None else axis, rank)


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes of an argument ``axis``, counted from the front; None means all axes.

    Raises:
        OutOfRangeError: one is outside of ``[-rank, rank)``.
        InvalidArgumentError: one occurs twice.
    """
    if axis is None:
        return tuple(range(rank))
    axes = tuple(axis_of(a, rank) for a in (axis if isinstance(axis, Iterable) else (axis,)))
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(f"axis {axis} names an axis twice; name each once.")
    return axes


def ints_of(value: Any, count: int, what: str) -> tuple[int, ...]:
    """``count`` integers; a single one is repeated.

    Raises:
        InvalidArgumentError: the number of integers is wrong.
    """
    integers = tuple(operator.index(i) for i in (value if isinstance(value, Iterable) else (value,) * count))
    if len(integers) != count:
        raise InvalidArgumentError(f"{what} {value} is not one integer for each of {count} axes.")
    return integers
