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

from dualflow.core.dtypes import int32
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.attribute_values import written_as
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, logical_and, logical_or, not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor, ones_like
from dualflow.ops.custom_vjp import custom_vjp
from dualflow.ops.neural.windows import Geometry, interleaved, over_strides, windows
from dualflow.ops.reduction import reduce_max, reduce_min
from dualflow.ops.selection import masked, where
from dualflow.ops.size_values import numbers_below, operand
from dualflow.sizes.symbolic_sizes import SymInt

_NOWHERE: Final = -1
"""The index of the chosen element for windows that consist of padding: equal to no element's index."""


@written_as("window_maximum_gradient", "layout")
@dataclass(frozen=True, slots=True)
class MaxPoolVjp:
    """The gradient of :func:`maxima`."""

    layout: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, x: Any) -> list[Any]:
        return [_routed(g, chosen(x, out, self.layout), self.layout, x.shape)]


@written_as("routed_gradient", "layout")
@dataclass(frozen=True, slots=True)
class _RoutedVjp:
    layout: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, y: Any, choice: Any) -> list[Any]:
        return [_picked(g, choice, self.layout), None]


@written_as("picked_gradient", "layout")
@dataclass(frozen=True, slots=True)
class _PickedVjp:
    layout: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, x: Any, choice: Any) -> list[Any]:
        return [_routed(g, choice, self.layout, x.shape), None]


@written_as("window_sum_gradient", "layout")
@dataclass(frozen=True, slots=True)
class SumPoolVjp:
    layout: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, x: Any) -> list[Any]:
        return [_shared(g, self.layout, x.shape)]


@written_as("shared_gradient", "layout")
@dataclass(frozen=True, slots=True)
class _SharedVjp:
    layout: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, y: Any) -> list[Any]:
        return [sums(g, self.layout)]


def maxima(x: Any, layout: Geometry) -> Any:
    """The maximum of each window of ``(batch, *axes, channels)``, real numbers."""

    def largest(x: Any) -> Any:
        return reduce_max(windows(x, layout, lowest(x)), layout.inner)

    return custom_vjp(MaxPoolVjp(layout), largest, x)


def lowest(x: Any) -> float:
    return -math.inf if x.dtype.is_floating else int(x.dtype.min)


def chosen(x: Any, out: Any, layout: Geometry) -> Any:
    """The index, within each window, of the first element that equals the maximum ``out`` or is nan."""
    patches = windows(x, layout, lowest(x))
    is_maximum = logical_or(equal(patches, expand_dims(out, layout.inner)), not_equal(patches, patches))
    for within in inside(layout, x.shape[1:-1]):
        is_maximum = logical_and(is_maximum, within)
    return reduce_min(where(is_maximum, _places(layout), math.prod(layout.size)), layout.inner)


def _places(layout: Geometry) -> Any:
    return constant(np.arange(math.prod(layout.size), dtype=np.int32).reshape(*layout.size, 1))


def inside(layout: Geometry, spatial: Any) -> list[Any]:
    """A mask for each padded axis: the elements of windows that are inside of the tensor."""
    conditions = []
    axes = len(layout.size)
    for axis, (n, count) in enumerate(zip(spatial, layout.counts(spatial), strict=True)):
        before, after = layout.pairs[axis]
        if n is not None and (before or after):
            is_inside = _is_inside(layout, axis, n, count)
            shape = [1] * (2 + 2 * axes)
            shape[1 + axis], shape[1 + axes + axis] = is_inside.shape
            conditions.append(reshape(convert_to_tensor(is_inside), shape))
    return conditions


def _is_inside(layout: Geometry, axis: int, n: int, count: Any) -> Any:
    """Which elements of each window are on an axis of ``n`` elements, not in its padding.

    Returns bools of shape ``(count, size)``: an array, or a tensor if sizes are symbolic.
    """
    first = numbers_below(count)[:, None] * layout.strides[axis] - operand(layout.pairs[axis][0])
    position = first + np.arange(layout.size[axis], dtype=np.int32) * layout.dilations[axis]
    return (position >= 0) & (position < operand(n))


def _routed(g: Any, choice: Any, layout: Geometry, shape: Shape) -> Any:
    """A tensor of ``shape``: the sum of ``g`` of the windows whose chosen element is at each position."""
    return custom_vjp(_RoutedVjp(layout), lambda g, choice: _route(g, choice, layout, shape), g, choice)


def _route(g: Any, choice: Any, layout: Geometry, shape: Shape) -> Any:
    reach = over_strides(layout, shape[1:-1], g.shape[1:-1])
    axes = len(layout.size)
    strides = tuple(range(1 + axes, 1 + 2 * axes))
    at = constant(_elements(layout, reach))
    is_chosen = equal(expand_dims(windows(choice, reach, _NOWHERE), strides), at)
    flows = masked(is_chosen, expand_dims(windows(g, reach), strides))
    return interleaved(reduce_sum(flows, range(1 + 2 * axes, 1 + 3 * axes)), layout, shape[1:-1])


def _elements(layout: Geometry, reach: Geometry) -> Any:
    """The index within a window, for each offset of a stride and each window that may cover that position.

    Of shape ``(*strides, *windows, 1)``; -2 where none does.
    """
    every = []
    for k, s, q in zip(layout.size, layout.strides, reach.size, strict=True):
        element = np.arange(s)[:, None] + s * (q - 1 - np.arange(q))
        every.append(np.where(element < k, element, -1))
    numbers = np.zeros((*layout.strides, *reach.size), np.int32)
    is_outside = np.zeros(numbers.shape, bool)
    axes = len(layout.size)
    for axis, element in enumerate(every):
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = element.shape
        numbers = numbers * layout.size[axis] + element.reshape(shape)
        is_outside |= (element < 0).reshape(shape)
    numbers[is_outside] = _NOWHERE - 1
    return numbers.astype(np.int32)[..., None]


def _picked(x: Any, choice: Any, layout: Geometry) -> Any:
    """The chosen element of each window of ``x``."""

    def picked(x: Any, choice: Any) -> Any:
        is_chosen = equal(expand_dims(choice, layout.inner), _places(layout))
        return reduce_sum(masked(is_chosen, windows(x, layout)), layout.inner)

    return custom_vjp(_PickedVjp(layout), picked, x, choice)


def sums(x: Any, layout: Geometry) -> Any:
    """The sum of each window."""
    return custom_vjp(SumPoolVjp(layout), lambda x: reduce_sum(windows(x, layout), layout.inner), x)


def _shared(g: Any, layout: Geometry, shape: Shape) -> Any:
    """A tensor of ``shape``: the sum of ``g`` over the windows that cover each position."""
    return custom_vjp(_SharedVjp(layout), lambda g: _share(g, layout, shape), g)


def _share(g: Any, layout: Geometry, shape: Shape) -> Any:
    reach = over_strides(layout, shape[1:-1], g.shape[1:-1])
    axes = len(layout.size)
    patches = expand_dims(windows(g, reach), tuple(range(1 + axes, 1 + 2 * axes)))
    is_covered = _elements(layout, reach) >= 0
    flows = masked(constant(is_covered), patches)
    return interleaved(reduce_sum(flows, range(1 + 2 * axes, 1 + 3 * axes)), layout, shape[1:-1])


def means(x: Any, layout: Geometry) -> Any:
    """The mean of each window, of the elements that are inside of the tensor."""
    total = sums(x, layout)
    if not any(a or b for a, b in layout.pairs):
        return total / math.prod(layout.size)
    if None in x.shape[1:-1]:
        return total / sums(ones_like(x), layout)
    return total / cast(counts_inside(layout, x.shape[1:-1]), x.dtype)


def counts_inside(layout: Geometry, spatial: Any) -> Any:
    """The number of elements of each window that are inside of a tensor with the sizes ``spatial``."""
    if not any(a or b for a, b in layout.pairs):
        return math.prod(layout.size)
    product: Any = 1
    for axis, (n, count) in enumerate(zip(spatial, layout.counts(spatial), strict=True)):
        is_inside = _is_inside(layout, axis, n, count)
        present = reduce_sum(cast(is_inside, int32), -1) if isinstance(n, SymInt) else is_inside.sum(-1)
        product = product * present[(slice(None), *(None,) * (len(layout.size) - axis))]
    return product
