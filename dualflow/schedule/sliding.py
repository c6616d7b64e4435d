"""Ops for convolutions: products and sums of sliding windows, which read the tensor itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.core.records import NamedTuple
from dualflow.ops.op_kinds import MatMul
from dualflow.ops.record import Op
from dualflow.sizes.symbolic_sizes import is_static

MAX_AXES = 3
"""The largest number of axes that windows slide over."""


class SlidingAxis(NamedTuple):
    """An axis of a tensor that windows slide along.

    Attributes:
        size: the size of the tensor.
        before: the number of zeros before its first element.
        windows: the number of windows.
        stride: the distance between windows.
        length: the number of elements of a window.
        dilation: the distance between the elements of a window.
    """

    size: int
    before: int
    windows: int
    stride: int
    length: int
    dilation: int


class SlidingWindows(NamedTuple):
    """The geometry of windows on a tensor ``(batch, *axes, channels)`` that is padded with zeros."""

    axes: tuple[SlidingAxis, ...]
    channels: int

    @property
    def contiguous_elements(self) -> int:
        """The number of elements of a window that are contiguous in the tensor."""
        last = self.axes[-1]
        return self.channels * (last.length if last.dilation == 1 else 1)

    @property
    def has_static_filter(self) -> bool:
        """Whether the channels, and the length, stride and dilation of windows along each axis are static."""
        return is_static([self.channels, *[n for a in self.axes for n in (a.stride, a.length, a.dilation)]])


def _multiplied(x: Any, y: Any, *onto: Any, windows: SlidingWindows, **attrs: Any) -> Any:
    """The NumPy kernel of a product of windows."""
    rows = _rows(x, windows)
    left = rows.T if attrs.get("transpose_a") else rows
    product = left @ (y.T if attrs.get("transpose_b") else y)
    return sum(onto, product * product.dtype.type(attrs.get("scale", 1.0)))


def _summed(x: Any, y: Any, *, windows: SlidingWindows) -> Any:
    """The NumPy kernel of a sum of windows."""
    counts, channels = [a.windows for a in windows.axes], windows.channels
    products = _rows(x, windows).reshape(-1, y.size // channels, channels) * y.reshape(-1, channels)
    return products.sum(1).reshape(x.shape[0], *counts, channels)


def _rows(x: Any, windows: SlidingWindows) -> Any:
    """The matrix whose rows are the windows."""
    axes = windows.axes
    ends = [(a.windows - 1) * a.stride + (a.length - 1) * a.dilation + 1 for a in axes]
    around = [(a.before, max(0, end - a.before - a.size)) for a, end in zip(axes, ends, strict=True)]
    padded = np.pad(x, [(0, 0), *around, (0, 0)])
    steps = padded.strides[1:-1]
    apart = [s * a.stride for s, a in zip(steps, axes, strict=True)]
    inside = [s * a.dilation for s, a in zip(steps, axes, strict=True)]
    shape = (x.shape[0], *[a.windows for a in axes], *[a.length for a in axes], windows.channels)
    view = as_strided(padded, shape, (padded.strides[0], *apart, *inside, padded.strides[-1]))
    return view.reshape(math.prod(shape[: 1 + len(axes)]), -1)


WINDOW_PRODUCT = Op(
    name="window_product",
    doc="The matrix whose rows are windows of ``x``, times ``y``; attrs: those of a product, and windows.",
    infer=lambda *specs, **attrs: (),
    kernel=_multiplied,
    kind=MatMul(),
)

WINDOW_SUM = Op(
    name="window_sum",
    doc="The windows of ``x`` times ``y``, summed over each window per channel; attrs: windows.",
    infer=lambda *specs, **attrs: (),
    kernel=_summed,
    kind=MatMul(),
)
