"""Sliding windows over the spatial axes, which are between the first and the last."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import Dim, Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import add_n
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.attribute_values import written_as
from dualflow.ops.batching_rules import BatchingRule
from dualflow.ops.indexing import getitem
from dualflow.ops.op_kinds import View
from dualflow.ops.record import Op, register
from dualflow.ops.repetition import PAD
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import require_static_sizes
from dualflow.ops.tensor_sizes import reshape_sizes
from dualflow.sizes.size_functions import always_equal, largest

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]


@written_as("window_layout", "size", "strides", "dilations", "pairs")
@dataclass(frozen=True, slots=True)
class Geometry:
    """The layout of windows on a tensor ``(batch, *axes, channels)``; every field has an entry for each axis.

    Attributes:
        size: the size of a window.
        strides: the distance between windows.
        dilations: the distance between the elements of a window.
        pairs: the paddings before and after each axis; negative ones cut off elements.
    """

    size: Sizes
    strides: Sizes
    dilations: Sizes
    pairs: Padding

    @property
    def dilated_size(self) -> Sizes:
        """The size of a window with its dilations: the number of elements that it spans."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.size, self.dilations, strict=True))

    @property
    def inner(self) -> tuple[int, ...]:
        """The axes of the elements of a window in the result of :func:`windows`."""
        axes = len(self.size)
        return tuple(range(1 + axes, 1 + 2 * axes))

    def counts(self, spatial: Any) -> list[Dim]:
        """The numbers of windows on axes of the sizes ``spatial``, padded."""
        wide = [None if n is None else n + a + b for n, (a, b) in zip(spatial, self.pairs, strict=True)]
        return _counts(wide, self.size, self.strides, self.dilations)


def window_count(size: Dim, window: int, stride: int, dilation: int) -> Dim:
    """The number of windows that fit on an axis."""
    if size is None:
        return None
    return largest(0, (size - (window - 1) * dilation - 1) // stride + 1)


def _counts(spatial: Any, size: Sizes, strides: Sizes, dilations: Sizes) -> list[Dim]:
    return [window_count(*axis) for axis in zip(spatial, size, strides, dilations, strict=True)]


def _infer(x: TensorSpec, size: Sizes, strides: Sizes, dilations: Sizes) -> TensorSpec:
    if len(x.shape) != len(size) + 2:
        raise InvalidArgumentError(
            f"windows over {len(size)} axes take a tensor of rank {len(size) + 2} (batch, axes, channels), "
            f"not of shape {x.shape}."
        )
    counts = _counts(x.shape[1:-1], size, strides, dilations)
    return TensorSpec.of(Shape([x.shape[0], *counts, *size, x.shape[-1]]), x.dtype)


def _view(x: Any, size: Sizes, strides: Sizes, dilations: Sizes) -> Any:
    counts = _counts(x.shape[1:-1], size, strides, dilations)
    over = x.strides[1:-1]
    steps = [s * by for s, by in zip(over, strides, strict=True)]
    inner = [s * by for s, by in zip(over, dilations, strict=True)]
    shape = (x.shape[0], *counts, *size, x.shape[-1])
    strides_of_view = (x.strides[0], *steps, *inner, x.strides[-1])
    if isinstance(x, np.ndarray):
        return as_strided(x, shape, strides_of_view, writeable=False)
    return x.strided(shape, strides_of_view)


def _vjp(g: Any, out: Any, x: Any, size: Sizes, strides: Sizes, dilations: Sizes) -> Any:
    return sum_windows(g, size, strides, dilations, x.shape[1:-1])


WINDOWS = register(
    Op(
        name="windows",
        doc="""Every window of ``size`` at distances ``strides``, its elements ``dilations`` apart.""",
        infer=_infer,
        kernel=_view,
        kind=View(_view, sliding=True),
        batching_rule=BatchingRule(merged=True),
        vjp=(_vjp,),
        samples=(
            Sample(
                (Domain(-50, 50, "fi", (2, 6, 5, 3)),),
                {"size": (2, 3), "strides": (2, 1), "dilations": (1, 1)},
            ),
            Sample((Domain(-50, 50, "fi", (2, 7, 1)),), {"size": (2,), "strides": (1,), "dilations": (3,)}),
        ),
    )
)


def windows(x: Any, geometry: Geometry, value: float = 0) -> Any:
    """Every window of ``(batch, *axes, channels)``, as ``(batch, *windows, *size, channels)``."""
    attrs = {"size": geometry.size, "strides": geometry.strides, "dilations": geometry.dilations}
    return dispatch.current().apply(WINDOWS, (padded(x, geometry.pairs, value),), attrs)


def padded(x: Any, pairs: Padding, value: float = 0) -> Any:
    """``x`` padded with ``value`` on each spatial axis; negative paddings truncate."""
    if any(a < 0 or b < 0 for a, b in pairs):
        ends = [-b if n is None else n + min(b, 0) for n, (_, b) in zip(x.shape[1:-1], pairs, strict=True)]
        cuts = [slice(max(-a, 0), end if b < 0 else None) for end, (a, b) in zip(ends, pairs, strict=True)]
        x, pairs = getitem(x, (slice(None), *cuts)), tuple((max(a, 0), max(b, 0)) for a, b in pairs)
    if not any(a or b for a, b in pairs):
        return x
    return dispatch.current().apply(PAD, (x,), {"paddings": ((0, 0), *pairs, (0, 0)), "value": value})


def sum_windows(g: Any, size: Sizes, strides: Sizes, dilations: Sizes, spatial: Any) -> Any:
    """A tensor with spatial sizes ``spatial``: the sum of the windows ``g`` at their positions.

    The elements of a window fall into runs of one stride, each of which is a tensor of the whole size, moved.
    """
    axes, spatial = len(size), require_static_sizes(spatial, "the gradient of windows")
    if any(s > 1 and d > 1 for s, d in zip(strides, dilations, strict=True)):
        g = _dilated(g, axes + 1, size, dilations)
        size = tuple((k - 1) * d + 1 for k, d in zip(size, dilations, strict=True))
        dilations = (1,) * axes
    runs = tuple(-(-k // s) for k, s in zip(size, strides, strict=True))
    fill = [(0, q * s - k) for q, s, k in zip(runs, strides, size, strict=True)]
    if any(after for _, after in fill):
        around = ((0, 0),) * (1 + axes) + (*fill, (0, 0))
        g = dispatch.current().apply(PAD, (g,), {"paddings": around, "value": 0})
    lengths = [-(-n // s) for n, s in zip(spatial, strides, strict=True)]
    parts = []
    for run in itertools.product(*map(range, runs)):
        every = (slice(None),) * (1 + axes)
        part = getitem(g, (*every, *[slice(q * s, (q + 1) * s) for q, s in zip(run, strides, strict=True)]))
        left = [n - count for n, count in zip(lengths, g.shape[1 : 1 + axes], strict=True)]
        before = [min(q * d, n) for q, d, n in zip(run, dilations, left, strict=True)]
        around = ((0, 0), *[(a, n - a) for a, n in zip(before, left, strict=True)], *((0, 0),) * (axes + 1))
        parts.append(dispatch.current().apply(PAD, (part,), {"paddings": around, "value": 0}))
    return interleaved(add_n(parts), Geometry(size, strides, dilations, ((0, 0),) * axes), spatial)


def _dilated(x: Any, first: int, size: Sizes, distances: Sizes) -> Any:
    """``x`` dilated by zeros: elements of its axes from ``first`` on are ``distances`` apart."""
    for axis, (k, d) in enumerate(zip(size, distances, strict=True), first):
        if d > 1:
            before, after = x.shape[:axis], x.shape[axis + 1 :]
            around = ((0, 0),) * (axis + 1) + ((0, d - 1),) + ((0, 0),) * len(after)
            wide = reshape(x, reshape_sizes([*before, k, 1, *after], x))
            wide = dispatch.current().apply(PAD, (wide,), {"paddings": around, "value": 0})
            merged = reshape(wide, reshape_sizes([*before, k * d, *after], x))
            x = getitem(merged, (slice(None),) * axis + (slice(0, (k - 1) * d + 1),))
    return x


def spread_filter(w: Any, geometry: Geometry) -> tuple[Any, Geometry]:
    """A filter ``(*size, ...)``, dilated by zeros along axes with both strides and dilations."""
    rates = tuple(d if s > 1 else 1 for s, d in zip(geometry.strides, geometry.dilations, strict=True))
    if max(rates) == 1:
        return w, geometry
    size = tuple((k - 1) * d + 1 for k, d in zip(geometry.size, rates, strict=True))
    remaining_rates = tuple(d // by for d, by in zip(geometry.dilations, rates, strict=True))
    return _dilated(w, 0, geometry.size, rates), Geometry(
        size, geometry.strides, remaining_rates, geometry.pairs
    )


def over_strides(geometry: Geometry, spatial: Any, counts: Any) -> Geometry:
    """The layout of windows over the window axis: for each stride of the input, the windows that cover it.

    Element ``e`` of such a window is a window whose element ``stride * (size - 1 - e) + r`` is at position
    ``r`` of the stride, if it has one.

    Raises:
        InvalidArgumentError: with strides, for dynamic sizes.
    """
    runs = tuple(-(-k // s) for k, s in zip(geometry.size, geometry.strides, strict=True))
    pairs = []
    for k, s, d, (a, b), q, n, count in zip(
        geometry.size,
        geometry.strides,
        geometry.dilations,
        geometry.pairs,
        runs,
        spatial,
        counts,
        strict=True,
    ):
        if n is not None and count is not None:
            begin, end = a // s, -(-(a + n) // s)
            pairs.append(((q - 1) * d - begin, end - count))
        elif s == 1:
            pairs.append(((k - 1) * d - a, (k - 1) * d - b))
        else:
            require_static_sizes([n, count], "the gradient of windows with strides")
    return Geometry(runs, (1,) * len(runs), geometry.dilations, tuple(pairs))


def interleaved(y: Any, geometry: Geometry, spatial: Any) -> Any:
    """``(batch, *lengths, *strides, channels)`` as ``(batch, *spatial, channels)``: strides interleaved."""
    strides = geometry.strides
    axes = len(strides)
    wide = [None if n is None else n * s for n, s in zip(y.shape[1 : 1 + axes], strides, strict=True)]
    if max(strides) > 1:
        order = [a for i in range(axes) for a in (1 + i, 1 + axes + i)]
        y = transpose(y, (0, *order, 1 + 2 * axes))
    y = reshape(y, reshape_sizes([y.shape[0], *wide, y.shape[-1]], y))
    if all(map(always_equal, y.shape[1:-1], spatial)):
        return y
    begins = [a % s for s, (a, _) in zip(strides, geometry.pairs, strict=True)]
    return getitem(y, (slice(None), *[slice(a, a + n) for a, n in zip(begins, spatial, strict=True)]))
