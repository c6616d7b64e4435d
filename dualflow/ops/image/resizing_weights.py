"""The source pixels of a resized axis and their weights: one row for each new pixel.

Centres of pixels are at halves, and each method is that of TensorFlow 2, with its rounding. The code is
written once for arrays and tensors: sizes that are numbers give arrays, symbolic sizes give tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import float32, float64, int64
from dualflow.core.records import NamedTuple
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal
from dualflow.ops.conversion import cast
from dualflow.ops.exponential import exp
from dualflow.ops.joining import stack
from dualflow.ops.positions import iota
from dualflow.ops.rounding import ceil, floor
from dualflow.ops.rounding import round as rint
from dualflow.ops.selection import where
from dualflow.ops.tensor_sizes import size_as_tensor
from dualflow.ops.trigonometric import sin
from dualflow.sizes.size_functions import largest, smallest
from dualflow.sizes.symbolic_sizes import UndecidedSize


class Taps(NamedTuple):
    """The positions of the old pixels of each new one, of shape ``(new, count)``, and their weights.

    Both are arrays, or tensors if a size is symbolic.
    """

    places: Any
    weights: Any


class _Arrays:
    """Functions of NumPy arrays."""

    floor, ceil, rint, exp, sinc = np.floor, np.ceil, np.rint, np.exp, np.sinc
    where, maximum, minimum, stack = np.where, np.maximum, np.minimum, np.stack

    @staticmethod
    def size(n: int) -> Any:
        """A size as float32, as in TensorFlow."""
        return np.float32(n)

    @staticmethod
    def integer(n: int) -> Any:
        """A size as an integer."""
        return n

    @staticmethod
    def numbers(count: int) -> Any:
        """``0, 1, ..., count - 1`` as float32."""
        return np.arange(count, dtype=np.float32)

    @staticmethod
    def to(x: Any, dtype: Any) -> Any:
        return x.astype(dtype.dtype)

    @staticmethod
    def total(x: Any) -> Any:
        """The sums of rows."""
        return x.sum(1, keepdims=True)


class _Tensors:
    """The functions of :class:`_Arrays`, for tensors."""

    floor, ceil, rint, exp = floor, ceil, rint, exp
    where, maximum, minimum, stack = where, maximum, minimum, stack

    @staticmethod
    def sinc(x: Any) -> Any:
        y = math.pi * where(equal(x, 0), 1e-20, x)
        return sin(y) / y

    @staticmethod
    def size(n: int) -> Any:
        return cast(size_as_tensor(n), float32)

    integer = staticmethod(size_as_tensor)

    @staticmethod
    def numbers(count: int) -> Any:
        return iota((count,), 0, float32)

    to = staticmethod(cast)

    @staticmethod
    def total(x: Any) -> Any:
        return reduce_sum(x, 1, keepdims=True)


class ResamplingKernel(NamedTuple):
    """The weight of a pixel by its distance, up to a radius."""

    radius: float
    weight: Callable[[Any, Any], Any]


def _triangle(xp: Any, x: Any) -> Any:
    return xp.maximum(0, 1 - x)


def _cubic(xp: Any, x: Any) -> Any:
    """The kernel of Keys' cubic convolution (1981), with a slope of -0.5."""
    near, far = (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return xp.where(x < 1, near, xp.where(x < 2, far, 0))


def _mitchell(xp: Any, x: Any) -> Any:
    """The cubic kernel of Mitchell and Netravali (1988), for B = C = 1/3."""
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return xp.where(x < 1, near, xp.where(x < 2, far, 0))


def _gaussian(xp: Any, x: Any) -> Any:
    return xp.where(x < 1.5, xp.exp(-2 * x * x), 0)


def _lanczos(radius: int) -> ResamplingKernel:
    return ResamplingKernel(radius, lambda xp, x: xp.where(x < radius, xp.sinc(x) * xp.sinc(x / radius), 0))


_KERNELS: Final = {
    "bilinear": ResamplingKernel(1, _triangle),
    "bicubic": ResamplingKernel(2, _cubic),
    "mitchellcubic": ResamplingKernel(2, _mitchell),
    "gaussian": ResamplingKernel(1.5, _gaussian),
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
}
METHODS: Final = (*_KERNELS, "nearest", "area")
_STEPS: Final = 1024
"""The number of steps to which positions between pixels are rounded for cubics without antialiasing."""


def taps(method: str, old: int, new: int, antialias: bool) -> Taps:
    """The source pixels and weights with which an axis of ``old`` pixels is resized to ``new``."""
    xp = _Arrays if type(old) is int and type(new) is int else _Tensors
    if method == "nearest":
        return _nearest(xp, old, new)
    if method == "area":
        return _area(xp, old, new)
    kernel = _KERNELS[method]
    if antialias or method not in ("bilinear", "bicubic"):
        return _sampled(xp, kernel, old, new, antialias)
    return _interpolated(xp, kernel, old, new)


def _centres(xp: Any, old: int, new: int) -> Any:
    """The positions of the new centres among the old pixels, in float32 as in TensorFlow."""
    return (xp.numbers(new) + np.float32(0.5)) * (xp.size(old) / xp.size(largest(new, 1)))


def _indices(xp: Any, indices: Any, old: int) -> Any:
    """``indices`` as indices of the pixels that are nearest to them."""
    return xp.minimum(xp.maximum(xp.to(indices, int64), 0), xp.integer(old - 1))


def _nearest(xp: Any, old: int, new: int) -> Taps:
    indices = _indices(xp, xp.floor(_centres(xp, old, new)), old)[:, None]
    return Taps(indices, xp.to(indices * 0 + 1, float64))


def _area(xp: Any, old: int, new: int) -> Taps:
    """The fraction of each old pixel inside of the new one."""
    scale = xp.size(old) / xp.size(largest(new, 1))
    edges = xp.numbers(new + 1) * scale
    low, high = edges[:-1, None], edges[1:, None]
    first = xp.floor(low)
    count = int((np.ceil(high) - first).max(initial=1)) if xp is _Arrays else old // largest(new, 1) + 2
    indices = xp.to(first, float64) + xp.to(xp.numbers(count)[None, :], float64)
    low, high = xp.to(low, float64), xp.to(high, float64)
    shares = xp.maximum(xp.minimum(indices + 1, high) - xp.maximum(indices, low), 0) / xp.to(scale, float64)
    return Taps(_indices(xp, indices, old), shares)


def _interpolated(xp: Any, kernel: ResamplingKernel, old: int, new: int) -> Taps:
    """The pixels on both sides; a linear kernel repeats the edge, a cubic one leaves out pixels beyond it."""
    centres = _centres(xp, old, new) - np.float32(0.5)
    first = xp.floor(centres)
    part = centres - first
    if kernel.radius == 1:
        indices = xp.stack([first, xp.ceil(centres)], 1)
        return Taps(_indices(xp, indices, old), xp.stack([1 - part, part], 1))
    steps = xp.to(xp.rint(part * np.float32(_STEPS)) / np.float32(_STEPS), float64)[:, None]
    around = np.arange(-1.0, 3.0)
    indices = xp.to(first, float64)[:, None] + around
    return _normalised(xp, indices, kernel.weight(xp, abs(around - steps)), old)


def _sampled(xp: Any, kernel: ResamplingKernel, old: int, new: int, antialias: bool) -> Taps:
    """The kernel's weights for the pixels around each centre, in float32 as in TensorFlow."""
    half, one = np.float32(0.5), np.float32(1)
    scale = one / (xp.size(new) / xp.size(old))
    centres = ((xp.numbers(new) + half) * scale)[:, None]
    wide = xp.maximum(scale, one) if antialias else one
    reach = np.float32(kernel.radius) * wide
    if not antialias or xp is _Arrays:
        count = _smaller(2 * math.ceil(reach) + 1, old)
    else:
        count = smallest(2 * math.ceil(kernel.radius) * largest(-(-old // largest(new, 1)), 1) + 1, old)
    first = xp.minimum(xp.maximum(xp.ceil(centres - reach - half), 0), xp.size(largest(0, old - count)))
    indices = first + xp.numbers(count)[None, :]
    return _normalised(xp, indices, kernel.weight(xp, abs(indices + half - centres) / wide), old)


def _smaller(x: int, y: int) -> int:
    """The smaller size: one of them if they can be compared, else a symbolic minimum."""
    try:
        return min(x, y)
    except UndecidedSize:
        return smallest(x, y)


def _normalised(xp: Any, indices: Any, weights: Any, old: int) -> Taps:
    """``weights`` set to 0 for pixels outside of the image, and divided by their sum."""
    index = xp.to(indices, int64)
    weights = xp.where((index >= 0) & (index < xp.integer(old)), weights, 0)
    total = xp.total(weights)
    return Taps(_indices(xp, indices, old), weights / xp.where(abs(total) > 1e-30, total, 1))
