"""The three products of convolutions and their gradients, each the derivative of the others.

With ``x`` an input, ``w`` a filter and ``y`` an output, ``sum(y * correlated(x, w))`` is
``sum(x * transposed(y, w))`` and ``sum(w * filter_product(x, y))``; so the gradients of any order are these
functions again. A transposed convolution with strides is one without, by the filter of each stride's
positions, whose channels are then interleaved (Shi et al., "Is the deconvolution layer the same as a
convolutional layer?", 2016).

Groups of few channels are products of elements and sums over windows, which a graph computes from the windows
in their place in the input; others are matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import Dim, Shape
from dualflow.ops.arithmetic import multiply
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.attribute_values import written_as
from dualflow.ops.broadcasting import broadcast_to, reduce_sum
from dualflow.ops.contraction import matmul
from dualflow.ops.custom_vjp import custom_vjp
from dualflow.ops.neural.windows import (
    Geometry,
    interleaved,
    over_strides,
    padded,
    spread_filter,
    sum_windows,
    windows,
)
from dualflow.ops.repetition import pad, reverse
from dualflow.ops.tensor_sizes import reshape_sizes

_FEW: Final = 16
"""The largest number of pairs of input and output channels of a group that use no matrix product."""
_LANES: Final = 16
"""The smallest number of columns of a matrix product that fill a vector."""


@written_as("correlation_gradient", "geometry")
@dataclass(frozen=True, slots=True)
class CorrelationVjp:
    """The gradient of :func:`correlated`."""

    geometry: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, x: Any, w: Any) -> list[Any]:
        return [
            transposed(g, w, self.geometry, x.shape) if needed[0] else None,
            filter_product(x, g, self.geometry, w.shape) if needed[1] else None,
        ]


@written_as("transposed_correlation_gradient", "geometry")
@dataclass(frozen=True, slots=True)
class TransposedCorrelationVjp:
    """The gradient of :func:`transposed`."""

    geometry: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, y: Any, w: Any) -> list[Any]:
        return [
            correlated(g, w, self.geometry) if needed[0] else None,
            filter_product(g, y, self.geometry, w.shape) if needed[1] else None,
        ]


@written_as("filter_product_gradient", "geometry")
@dataclass(frozen=True, slots=True)
class _FilterProductVjp:
    """The gradient of :func:`filter_product`."""

    geometry: Geometry

    def __call__(self, needed: Sequence[bool], g: Any, out: Any, x: Any, y: Any) -> list[Any]:
        return [
            transposed(y, g, self.geometry, x.shape) if needed[0] else None,
            correlated(x, g, self.geometry) if needed[1] else None,
        ]


def correlated(x: Any, w: Any, geometry: Geometry) -> Any:
    """The product of each window of ``x`` with the filter ``w``.

    Args:
        x: of shape ``(batch, *axes, channels)``.
        w: of shape ``(*size, channels / groups, outputs)`` and the same dtype.
        geometry: the layout of the windows.

    Returns:
        A tensor of shape ``(batch, *windows, outputs)``.

    Raises:
        InvalidArgumentError: the filter's channels do not divide the input's, or the groups its outputs.
    """
    _groups(x.shape[-1], w.shape)
    return custom_vjp(CorrelationVjp(geometry), lambda x, w: _correlated(x, w, geometry), x, w)


def transposed(y: Any, w: Any, geometry: Geometry, shape: Shape) -> Any:
    """For each position, the sum over the windows that contain it of output times filter element.

    Args:
        y: of shape ``(batch, *windows, outputs)``.
        w: of shape ``(*size, channels / groups, outputs)`` and the same dtype.
        geometry: the layout of the windows.
        shape: the input's, ``(batch, *axes, channels)``; the batch is not read.

    Returns:
        A tensor of that shape.

    Raises:
        InvalidArgumentError: the groups do not fit, or an axis whose size must be known is unknown.
    """
    _groups(shape[-1], w.shape)
    return custom_vjp(
        TransposedCorrelationVjp(geometry), lambda y, w: _transposed(y, w, geometry, shape), y, w
    )


def filter_product(x: Any, y: Any, geometry: Geometry, shape: Shape) -> Any:
    """The sum over all windows of ``x`` times the outputs ``y`` there, with the ``shape`` of a filter."""
    return custom_vjp(_FilterProductVjp(geometry), lambda x, y: _filter_product(x, y, geometry, shape), x, y)


def _groups(channels: Any, shape: Shape) -> int:
    """The number of groups into which a filter of this shape divides the channels."""
    inner, outer = shape[-2:]
    if not inner or not channels or channels % inner or not outer or outer % (channels // inner):
        raise InvalidArgumentError(
            f"filters of shape {shape} do not fit {channels} channels: their last but one size divides the "
            "channels, into groups that divide the outputs."
        )
    return int(channels // inner)


def _correlated(x: Any, w: Any, geometry: Geometry) -> Any:
    inner, outer = w.shape[-2:]
    groups, count = _groups(x.shape[-1], w.shape), math.prod(geometry.size)
    batch = x.shape[0]
    if groups == 1:
        patches = windows(x, geometry)
        result = [batch, *patches.shape[1 : 1 + len(geometry.size)], outer]
        rows = reshape(patches, [_rows(result), count * inner])
        return reshape(matmul(rows, reshape(w, [count * inner, outer])), reshape_sizes(result, x))
    if _few(groups, inner, outer):
        patches = windows(_repeated(x, outer // groups), geometry)
        products = multiply(patches, _by_channel(w, groups))
        return _summed(reduce_sum(products, geometry.inner), groups, inner)
    patches = windows(x, geometry)
    result = reshape_sizes([batch, *patches.shape[1 : 1 + len(geometry.size)], outer], x)
    grouped = matmul(_by_group(patches, geometry, groups), _columns(w, groups))
    return reshape(transpose(grouped, (1, 0, 2)), result)


def _rows(shape: Sequence[Dim]) -> int:
    """The product of all sizes but the last, for ``reshape``; the last one is not 0."""
    return -1 if None in shape else math.prod(shape[:-1])  # type: ignore[arg-type]


def _few(groups: int, inner: int, outer: int) -> bool:
    return inner * (outer // groups) <= _FEW


def _repeated(x: Any, times: int) -> Any:
    """``x`` with each channel repeated ``times`` times."""
    if times == 1:
        return x
    sizes = reshape_sizes(x.shape, x)
    return reshape(broadcast_to(expand_dims(x, -1), [*x.shape, times]), [*sizes[:-1], sizes[-1] * times])


def _by_channel(w: Any, groups: int) -> Any:
    """A filter reshaped to ``(*size, groups * channels of a group * outputs of a group)``."""
    size, (inner, outer) = w.shape[:-2], w.shape[-2:]
    if inner > 1:
        axes = len(size)
        grouped = reshape(w, [*size, inner, groups, outer // groups])
        w = transpose(grouped, (*range(axes), axes + 1, axes, axes + 2))
    return reshape(w, [*size, inner * outer])


def _summed(y: Any, groups: int, inner: int) -> Any:
    """Sums over the channels of each group, which are in the order of :func:`_by_channel`."""
    if inner == 1:
        return y
    sizes, each = reshape_sizes(y.shape, y), y.shape[-1] // (groups * inner)
    sums = reduce_sum(reshape(y, [*sizes[:-1], groups, inner, each]), -2)
    return reshape(sums, [*sizes[:-1], groups * each])


def _by_group(patches: Any, geometry: Geometry, groups: int) -> Any:
    """Windows as the rows of a matrix for each group."""
    axes, inner = len(geometry.size), patches.shape[-1] // groups
    rows, count = _rows(patches.shape[: axes + 2]), math.prod(geometry.size)
    flat = reshape(patches, [rows, count, groups, inner])
    return reshape(transpose(flat, (2, 0, 1, 3)), [groups, rows, count * inner])


def _columns(w: Any, groups: int) -> Any:
    """A filter as the columns of a matrix for each group."""
    count, (inner, outer) = math.prod(w.shape[:-2]), w.shape[-2:]
    grouped = transpose(reshape(w, [count, inner, groups, outer // groups]), (2, 0, 1, 3))
    return reshape(grouped, [groups, count * inner, outer // groups])


def _transposed(y: Any, w: Any, geometry: Geometry, shape: Shape) -> Any:
    channels, spatial = shape[-1], shape[1:-1]
    groups, (inner, outer) = _groups(channels, w.shape), w.shape[-2:]
    is_static = None not in (*spatial, *y.shape[1:-1])
    if groups == 1 and is_static and 2 * inner <= outer and _better_by_columns(inner, geometry):
        return _columns_summed(y, w, geometry, spatial)
    w, geometry = spread_filter(w, geometry)
    axes, strides = len(geometry.size), geometry.strides
    reach = over_strides(geometry, spatial, y.shape[1:-1])
    runs = reach.size
    fill = [(0, q * s - k) for q, s, k in zip(runs, strides, geometry.size, strict=True)]
    if any(after for _, after in fill):
        w = pad(w, [*fill, (0, 0), (0, 0)])
    split_sizes = [n for q, s in zip(runs, strides, strict=True) for n in (q, s)]
    w = reverse(reshape(w, [*split_sizes, inner, groups, outer // groups]), range(0, 2 * axes, 2))
    first, last = range(0, 2 * axes, 2), range(1, 2 * axes, 2)
    w = transpose(w, (*first, 2 * axes + 2, 2 * axes + 1, *last, 2 * axes))
    w = reshape(w, [*runs, outer // groups, groups * math.prod(strides) * inner])
    result = _correlated(y, w, reach)
    if max(strides) > 1:
        counts = result.shape[1 : 1 + axes]
        batch = result.shape[0]
        result = reshape(result, reshape_sizes([batch, *counts, groups, *strides, inner], y))
        order = (*range(1 + axes), *range(2 + axes, 2 + 2 * axes), 1 + axes, 2 + 2 * axes)
        result = reshape(transpose(result, order), reshape_sizes([batch, *counts, *strides, channels], y))
        return interleaved(result, geometry, spatial)
    return result


def _better_by_columns(inner: int, geometry: Geometry) -> bool:
    """Whether :func:`_columns_summed` is faster: products of windows would be narrow, or mostly with zeros.

    Over strides, the filter covers whole strides and the places between the elements of a window.
    """
    spans = zip(geometry.size, geometry.dilated_size, geometry.strides, strict=True)
    covered = [k if s == 1 else -(-reach // s) * s for k, reach, s in spans]
    return inner < _LANES or math.prod(covered) > 2 * math.prod(geometry.size)


def _columns_summed(y: Any, w: Any, geometry: Geometry, spatial: Any) -> Any:
    """:func:`_transposed` as a matrix product, whose rows are windows that are added where they overlap."""
    inner, outer = w.shape[-2:]
    count = math.prod(geometry.size)
    rows = reshape(y, [_rows(y.shape), outer])
    shares = matmul(rows, reshape(w, [count * inner, outer]), transpose_b=True)
    patches = reshape(shares, reshape_sizes([*y.shape[:-1], *geometry.size, inner], y))
    wide = [n + a + b for n, (a, b) in zip(spatial, geometry.pairs, strict=True)]
    summed = sum_windows(patches, geometry.size, geometry.strides, geometry.dilations, wide)
    return padded(summed, tuple((-a, -b) for a, b in geometry.pairs))


def _filter_product(x: Any, y: Any, geometry: Geometry, shape: Shape) -> Any:
    inner, outer = shape[-2:]
    groups, axes = _groups(x.shape[-1], shape), len(geometry.size)
    if groups == 1:
        patches = windows(x, geometry)
        rows = reshape(patches, [_rows(y.shape), math.prod(geometry.size) * inner])
        return reshape(matmul(rows, reshape(y, [_rows(y.shape), outer]), transpose_a=True), list(shape))
    each = outer // groups
    if _few(groups, inner, outer):
        patches = windows(_repeated(x, each), geometry)
        outputs = y
        if inner > 1:
            sizes = reshape_sizes(y.shape, y)
            grouped = expand_dims(reshape(y, [*sizes[:-1], groups, each]), -2)
            outputs = reshape(
                broadcast_to(grouped, [*y.shape[:-1], groups, inner, each]), [*sizes[:-1], inner * outer]
            )
        products = multiply(patches, expand_dims(outputs, geometry.inner))
        sums = reshape(reduce_sum(products, range(1 + axes)), [*shape[:-2], groups, inner, each])
        order = (*range(axes), axes + 1, axes, axes + 2)
        return reshape(transpose(sums, order), list(shape))
    rows = _by_group(windows(x, geometry), geometry, groups)
    columns = transpose(reshape(y, [_rows(y.shape), groups, each]), (1, 0, 2))
    sums = matmul(rows, columns, transpose_a=True)
    return reshape(transpose(sums, (1, 0, 2)), list(shape))
