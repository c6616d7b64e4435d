"""Discrete Fourier transforms by NumPy's names: ``df.numpy.fft``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import complex64, complex128, float16, float32, float64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.operands import axes_in_order, refuse, tensor, to
from dualflow.ops.complex_numbers import conj
from dualflow.ops.signal import fourier
from dualflow.ops.static import static_int
from dualflow.ops.tensor import Tensor

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
_NARROW: Final = (float16, float32, complex64)


def _signal(a: Any, of_reals: bool) -> Any:
    """``a`` in the dtype that a transform takes."""
    x = tensor(a)
    narrow = x.dtype in _NARROW
    if of_reals:
        return to(x, float32 if narrow else float64)
    return to(x, complex64 if narrow else complex128)


def _transformed(kind: str, a: Any, lengths: Any, axes: Any, norm: Any, out: Any) -> Tensor:
    """The transform over several axes, scaled by ``norm``.

    Raises:
        InvalidArgumentError: another ``norm``, a length that is not positive, or not as many as axes.
    """
    refuse(kind, out=out)
    x = _signal(a, kind == "rfft")
    rank = len(x.shape)
    if axes is None:
        axes = range(rank) if lengths is None else range(rank - len(lengths), rank)
    over = axes_in_order(axes, rank, "axes")
    requested = [None] * len(over) if lengths is None else [_length(n) for n in lengths]
    if len(requested) != len(over):
        raise InvalidArgumentError(
            f"s has one size for each axis, not {lengths} for {len(over)} axes: a transform over axes has as "
            "many lengths."
        )
    sizes = [x.shape[i] if n is None else n for i, n in zip(over, requested, strict=True)]
    if kind == "irfft" and over and requested[-1] is None and sizes[-1] is not None:
        sizes[-1] = 2 * (sizes[-1] - 1)
    if any(n is not None and n < 1 for n in sizes):
        raise InvalidArgumentError(f"A transform's lengths are positive, not {sizes}.")
    return fourier.transform(kind, x, over, tuple(requested), norm)


def _length(n: Any) -> int | None:
    return None if n is None else static_int(n, "a length")


def _one(kind: str, a: Any, n: Any, axis: int, norm: Any, out: Any) -> Tensor:
    return _transformed(kind, a, None if n is None else [n], [axis], norm, out)


def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """The transform along ``axis``.

    Args:
        a: numbers of one axis or more.
        n: the length, to which the axis is cut off or filled up with zeros.
        axis: the axis.
        norm: "backward" divides the inverse by the length, "forward" the transform, "ortho" both by its root.
        out: refused, as tensors don't change.

    Raises:
        InvalidArgumentError: a length that is not positive, or another ``norm``.

    >>> import dualflow as df
    >>> df.numpy.fft.fft([1.0, 0.0, -1.0, 0.0]).numpy()
    array([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j])
    """
    return _one("fft", a, n, axis, norm, out)


def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """The inverse of :func:`fft`."""
    return _one("ifft", a, n, axis, norm, out)


def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """The half of :func:`fft` of real numbers of which the other half is the mirror image."""
    return _one("rfft", a, n, axis, norm, out)


def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """The inverse of :func:`rfft`; ``n`` is the length of the result."""
    return _one("irfft", a, n, axis, norm, out)


def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """The transform, real, of a signal that mirrors itself, of which the first half is given."""
    x = _signal(a, False)
    size = 2 * (static_int(x.shape[axis], "the size of the axis") - 1) if n is None else _length(n)
    return irfft(conj(x), size, axis, _swapped(norm), out)


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """The inverse of :func:`hfft`."""
    return conj(rfft(a, n, axis, _swapped(norm), out))


def _swapped(norm: Any) -> Any:
    """The norm that divides the other one of a transform and its inverse."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """The transform over two axes; see :func:`fft`."""
    return _transformed("fft", a, s, axes, norm, out)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """The inverse of :func:`fft2`."""
    return _transformed("ifft", a, s, axes, norm, out)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """:func:`rfft` along the last of two axes, and the transform along the other."""
    return _transformed("rfft", a, s, axes, norm, out)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """The inverse of :func:`rfft2`."""
    return _transformed("irfft", a, s, axes, norm, out)


def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """The transform over all axes, or those named; ``s`` has their lengths."""
    return _transformed("fft", a, s, axes, norm, out)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """The inverse of :func:`fftn`."""
    return _transformed("ifft", a, s, axes, norm, out)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """:func:`rfft` along the last axis, and the transform along the others."""
    return _transformed("rfft", a, s, axes, norm, out)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """The inverse of :func:`rfftn`."""
    return _transformed("irfft", a, s, axes, norm, out)


def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Tensor:
    """The frequencies of a transform of ``n`` samples that are ``d`` apart.

    >>> import dualflow as df
    >>> df.numpy.fft.fftfreq(4).numpy()
    array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return tensor(np.fft.fftfreq(static_int(n, "n"))) / d


def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Tensor:
    """The frequencies of :func:`rfft` of ``n`` samples that are ``d`` apart."""
    return tensor(np.fft.rfftfreq(static_int(n, "n"))) / d


def fftshift(x: Any, axes: Any = None) -> Tensor:
    """The frequency 0 moved to the middle of the axes, all by default."""
    return fourier.fftshift(tensor(x), axes)


def ifftshift(x: Any, axes: Any = None) -> Tensor:
    """The inverse of :func:`fftshift`."""
    return fourier.ifftshift(tensor(x), axes)


make_entries(globals())
_publish(globals())
