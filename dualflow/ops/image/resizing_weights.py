"""The source pixels of a resized axis and their weights: one row for each new pixel.

Centres of pixels are at halves, and each method is that of TensorFlow 2, with its rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.core.records import NamedTuple

Array = np.ndarray[Any, Any]


class Taps(NamedTuple):
    """The positions of the old pixels of each new one, of shape ``(new, count)``, and their weights."""

    places: Array
    weights: Array


class ResamplingKernel(NamedTuple):
    """The weight of a pixel by its distance, up to a radius."""

    radius: float
    weight: Callable[[Array], Array]


def _triangle(x: Array) -> Array:
    return np.maximum(0, 1 - x)


def _cubic(x: Array) -> Array:
    """The kernel of Keys' cubic convolution (1981), with a slope of -0.5."""
    near, far = (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _mitchell(x: Array) -> Array:
    """The cubic kernel of Mitchell and Netravali (1988), for B = C = 1/3."""
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _gaussian(x: Array) -> Array:
    return np.where(x < 1.5, np.exp(-2 * x * x), 0)


def _lanczos(radius: int) -> ResamplingKernel:
    return ResamplingKernel(radius, lambda x: np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0))


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
    if method == "nearest":
        return _nearest(old, new)
    if method == "area":
        return _area(old, new)
    kernel = _KERNELS[method]
    if antialias or method not in ("bilinear", "bicubic"):
        return _sampled(kernel, old, new, antialias)
    return _interpolated(kernel, old, new)


def _centres(old: int, new: int) -> Array:
    """The positions of the new centres among the old pixels, in float32 as in TensorFlow."""
    scale = np.float32(old) / np.float32(max(new, 1))
    return (np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale


def _nearest(old: int, new: int) -> Taps:
    places = np.clip(np.floor(_centres(old, new)), 0, old - 1).astype(np.int64)
    return Taps(places[:, None], np.ones((new, 1)))


def _area(old: int, new: int) -> Taps:
    """The fraction of each old pixel inside of the new one."""
    scale = np.float32(old) / np.float32(max(new, 1))
    edges = np.arange(new + 1, dtype=np.float32) * scale
    low, high = edges[:-1, None], edges[1:, None]
    first = np.floor(low)
    count = int((np.ceil(high) - first).max(initial=1))
    places = first + np.arange(count)
    shares = np.clip(np.minimum(places + 1, high) - np.maximum(places, low), 0, None) / scale
    return Taps(np.clip(places, 0, old - 1).astype(np.int64), shares)


def _interpolated(kernel: ResamplingKernel, old: int, new: int) -> Taps:
    """The pixels on both sides; a linear kernel repeats the edge, a cubic one leaves out pixels beyond it."""
    centres = _centres(old, new) - np.float32(0.5)
    first = np.floor(centres)
    part = (centres - first)[:, None]
    if kernel.radius == 1:
        places = np.stack([first, np.ceil(centres)], 1)
        return Taps(np.clip(places, 0, old - 1).astype(np.int64), np.hstack([1 - part, part]))
    places = first[:, None] + np.arange(-1, 3)
    weights = kernel.weight(abs(np.arange(-1, 3) - np.rint(part * _STEPS) / _STEPS))
    return _normalised(places, weights, old)


def _sampled(kernel: ResamplingKernel, old: int, new: int, antialias: bool) -> Taps:
    """The kernel's weights for the pixels around each centre, in float32 as in TensorFlow."""
    half, one = np.float32(0.5), np.float32(1)
    scale = one / (np.float32(new) / np.float32(old))
    centres = ((np.arange(new, dtype=np.float32) + half) * scale)[:, None]
    wide = np.float32(max(scale, one) if antialias else one)
    reach = np.float32(kernel.radius) * wide
    count = min(2 * math.ceil(reach) + 1, old)
    first = np.clip(np.ceil(centres - reach - half), 0, max(0, old - count))
    places = first + np.arange(count, dtype=np.float32)
    return _normalised(places, kernel.weight(abs(places + half - centres) / wide), old)


def _normalised(places: Array, weights: Array, old: int) -> Taps:
    """``weights`` set to 0 for pixels outside of the image, and divided by their sum."""
    weights = np.where((places >= 0) & (places < old), weights, 0)
    total = weights.sum(1, keepdims=True)
    normalised = np.divide(weights, total, out=weights, where=abs(total) > 1e-30)
    return Taps(np.clip(places, 0, old - 1).astype(np.int64), normalised)
