"""Maximum, sum and mean of windows, with their gradients.

The gradient of a maximum goes to the first element of each window that has it, a nan before any number. For
each position it is the sum over the windows that hold the position and chose it, which a graph computes from
the gradients as they lie, without a copy for each window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.records import dataclass
from dualflow.core.shape import Shape
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, logical_and, logical_or, not_equal
from dualflow.ops.creation import constant, convert_to_tensor, ones_like
from dualflow.ops.neural.windows import Geometry, interleaved, over_strides, windows
from dualflow.ops.own_gradient import with_gradient
from dualflow.ops.reduction import reduce_max, reduce_min
from dualflow.ops.selection import masked, where

_NOWHERE: Final = -1
"""What stands for the chosen element around windows: no element has this number."""


@dataclass(frozen=True, slots=True)
class _OfMaximum:
    """The gradient of :func:`maxima`."""

    lie: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, x: Any) -> list[Any]:
        return [_routed(g, chosen(x, out, self.lie), self.lie, x.shape)]


@dataclass(frozen=True, slots=True)
class _OfRouted:
    lie: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, y: Any, choice: Any) -> list[Any]:
        return [_picked(g, choice, self.lie), None]


@dataclass(frozen=True, slots=True)
class _OfPicked:
    lie: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, x: Any, choice: Any) -> list[Any]:
        return [_routed(g, choice, self.lie, x.shape), None]


@dataclass(frozen=True, slots=True)
class _OfSum:
    lie: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, x: Any) -> list[Any]:
        return [_shared(g, self.lie, x.shape)]


@dataclass(frozen=True, slots=True)
class _OfShared:
    lie: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, y: Any) -> list[Any]:
        return [sums(g, self.lie)]


def maxima(x: Any, lie: Geometry) -> Any:
    """The maximum of each window of ``(batch, *axes, channels)``, real numbers."""

    def largest(x: Any) -> Any:
        return reduce_max(windows(x, lie, lowest(x)), lie.inner)

    return with_gradient(_OfMaximum(lie), largest, x)


def lowest(x: Any) -> float:
    return -math.inf if x.dtype.is_floating else int(x.dtype.min)


def chosen(x: Any, out: Any, lie: Geometry) -> Any:
    """Which element of each window, counted row by row, is the first that is ``out``, the maximum, or nan."""
    seen = windows(x, lie, lowest(x))
    found = logical_or(equal(seen, expand_dims(out, lie.inner)), not_equal(seen, seen))
    for within in inside(lie, x.shape[1:-1]):
        found = logical_and(found, within)
    return reduce_min(where(found, _places(lie), math.prod(lie.size)), lie.inner)


def _places(lie: Geometry) -> Any:
    return constant(np.arange(math.prod(lie.size), dtype=np.int32).reshape(*lie.size, 1))


def inside(lie: Geometry, spatial: Any) -> list[Any]:
    """For each axis with something around it, which elements of its windows are the tensor's."""
    found = []
    axes = len(lie.size)
    for axis, (n, count) in enumerate(zip(spatial, lie.counts(spatial), strict=True)):
        before, after = lie.pairs[axis]
        if n is not None and (before or after):
            at = _positions(lie, axis, count)
            shape = [1] * (2 + 2 * axes)
            shape[1 + axis], shape[1 + axes + axis] = at.shape
            found.append(constant(((at >= 0) & (at < n)).reshape(shape)))
    return found


def _positions(lie: Geometry, axis: int, count: Any) -> Any:
    """Where on an axis the elements of each window are: below 0 and beyond its end they are around it."""
    first = np.arange(count)[:, None] * lie.strides[axis] - lie.pairs[axis][0]
    return first + np.arange(lie.size[axis]) * lie.dilations[axis]


def _routed(g: Any, choice: Any, lie: Geometry, shape: Shape) -> Any:
    """Each window's ``g`` at the place of its chosen element, added up in a tensor of ``shape``."""
    return with_gradient(_OfRouted(lie), lambda g, choice: _route(g, choice, lie, shape), g, choice)


def _route(g: Any, choice: Any, lie: Geometry, shape: Shape) -> Any:
    reach = over_strides(lie, shape[1:-1], g.shape[1:-1])
    axes = len(lie.size)
    strides = tuple(range(1 + axes, 1 + 2 * axes))
    at = constant(_elements(lie, reach))
    here = equal(expand_dims(windows(choice, reach, _NOWHERE), strides), at)
    flows = masked(here, expand_dims(windows(g, reach), strides))
    return interleaved(reduce_sum(flows, range(1 + 2 * axes, 1 + 3 * axes)), lie, shape[1:-1])


def _elements(lie: Geometry, reach: Geometry) -> Any:
    """For each position of a stride and each window that may hold it, the number of the element that does.

    Of shape ``(*strides, *windows, 1)``; -2 where none does.
    """
    every = []
    for k, s, q in zip(lie.size, lie.strides, reach.size, strict=True):
        element = np.arange(s)[:, None] + s * (q - 1 - np.arange(q))
        every.append(np.where(element < k, element, -1))
    found = np.zeros((*lie.strides, *reach.size), np.int32)
    none = np.zeros(found.shape, bool)
    axes = len(lie.size)
    for axis, element in enumerate(every):
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = element.shape
        found = found * lie.size[axis] + element.reshape(shape)
        none |= (element < 0).reshape(shape)
    found[none] = _NOWHERE - 1
    return found.astype(np.int32)[..., None]


def _picked(x: Any, choice: Any, lie: Geometry) -> Any:
    """The chosen element of each window of ``x``."""

    def picked(x: Any, choice: Any) -> Any:
        here = equal(expand_dims(choice, lie.inner), _places(lie))
        return reduce_sum(masked(here, windows(x, lie)), lie.inner)

    return with_gradient(_OfPicked(lie), picked, x, choice)


def sums(x: Any, lie: Geometry) -> Any:
    """The sum of each window."""
    return with_gradient(_OfSum(lie), lambda x: reduce_sum(windows(x, lie), lie.inner), x)


def _shared(g: Any, lie: Geometry, shape: Shape) -> Any:
    """For each position of a tensor of ``shape`` the sum of ``g`` over the windows that hold it."""
    return with_gradient(_OfShared(lie), lambda g: _share(g, lie, shape), g)


def _share(g: Any, lie: Geometry, shape: Shape) -> Any:
    reach = over_strides(lie, shape[1:-1], g.shape[1:-1])
    axes = len(lie.size)
    seen = expand_dims(windows(g, reach), tuple(range(1 + axes, 1 + 2 * axes)))
    there = _elements(lie, reach) >= 0
    flows = masked(constant(there), seen)
    return interleaved(reduce_sum(flows, range(1 + 2 * axes, 1 + 3 * axes)), lie, shape[1:-1])


def means(x: Any, lie: Geometry) -> Any:
    """The mean of each window, of the elements that are not around the tensor."""
    total = sums(x, lie)
    if not any(a or b for a, b in lie.pairs):
        return total / math.prod(lie.size)
    if None in x.shape[1:-1]:
        return total / sums(ones_like(x), lie)
    number: Any = 1
    for axis, (n, count) in enumerate(zip(x.shape[1:-1], lie.counts(x.shape[1:-1]), strict=True)):
        at = _positions(lie, axis, count)
        present = ((at >= 0) & (at < n)).sum(-1)
        number = number * present.reshape(-1, *(1,) * (len(lie.size) - axis))
    return total / convert_to_tensor(number, x.dtype)
