"""The standard's Fourier transforms: ``dualflow.array_api.fft``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal

from dualflow.array_api.array import Array, as_floating_tensor, tensor_of
from dualflow.array_api.axes import axes_of, axis_of
from dualflow.core import dispatch
from dualflow.core.argument_types import AnyArray, AxisLike, DTypeLike
from dualflow.core.device_names import check_device
from dualflow.core.dtypes import as_dtype, float64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import fft as transforms
from dualflow.numpy.docstrings import complete_docstrings

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]
Norm = Literal["backward", "ortho", "forward"]
Sizes = Sequence[int] | None


def _real(x: Any) -> Any:
    """``x`` as a tensor of real floats.

    Raises:
        DTypeError: an input holds complex numbers.
    """
    tensor = as_floating_tensor(x)
    if tensor.dtype.is_complex:
        raise DTypeError(f"This transform is of real signals, not of {tensor.dtype.name}; use fft.fft.")
    return tensor


def _transform_axis(transform: Callable[..., Any], x: Any, n: int | None, axis: int, norm: str) -> Array:
    """A transform along one axis."""
    return Array(transform(x, n, axis_of(axis, len(x.shape)), norm))


def _transform_axes(transform: Callable[..., Any], x: Any, s: Sizes, axes: Sizes, norm: str) -> Array:
    """A transform over several axes; sizes ``s`` without ``axes`` apply to the last axes."""
    rank = len(x.shape)
    chosen = range(rank - len(s), rank) if axes is None and s is not None else axes
    return Array(transform(x, s, axes_of(chosen, rank), norm))


def fft(x: AnyArray, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The discrete Fourier transform along an axis; a complex array.

    Args:
        x: complex or real numbers of one axis or more.
        n: how many elements, to which ``x`` is cut off or filled up with zeros; as many as it has by default.
        axis: along which to transform.
        norm: "backward" divides the inverse transforms by ``n``, "forward" the others, "ortho" both by its
            square root.

    Returns:
        A complex array with the shape of ``x``, but ``n`` along ``axis``; complex64 for float32 and
        complex64.

    Raises:
        InvalidArgumentError: a size is below 1, or ``norm`` is unknown.

    >>> import dualflow.array_api as xp
    >>> xp.fft.fft(xp.asarray([1.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    return _transform_axis(transforms.fft, tensor_of(x), n, axis, norm)


def ifft(x: AnyArray, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of :func:`fft`, with its arguments.

    Returns:
        A complex array with the shape of ``x``, but ``n`` along ``axis``; complex64 for complex64.

    Raises:
        InvalidArgumentError: ``n`` is not positive, or ``norm`` is unknown.

    >>> import dualflow.array_api as xp
    >>> xp.fft.ifft(xp.asarray([2.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    return _transform_axis(transforms.ifft, tensor_of(x), n, axis, norm)


def fftn(x: AnyArray, /, *, s: Sizes = None, axes: Sizes = None, norm: Norm = "backward") -> Array:
    """The discrete Fourier transform over several axes; a complex array.

    Args:
        x: complex or real numbers.
        s: a size for each axis, to which ``x`` is cut off or filled up with zeros; its own size by default.
        axes: over which to transform: by default all, or as many last ones as ``s`` has sizes.
        norm: as :func:`fft` takes it.

    Returns:
        A complex array with the shape of ``x``, but ``s`` along ``axes``; complex64 for float32 and
        complex64.

    Raises:
        InvalidArgumentError: another number of sizes than of axes, a size is below 1, or ``norm`` is unknown.

    >>> import dualflow.array_api as xp
    >>> xp.fft.fftn(xp.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return _transform_axes(transforms.fftn, tensor_of(x), s, axes, norm)


def ifftn(x: AnyArray, /, *, s: Sizes = None, axes: Sizes = None, norm: Norm = "backward") -> Array:
    """The inverse of :func:`fftn`, with its arguments.

    Returns:
        A complex array with the shape of ``x``, but ``s`` along ``axes``; complex64 for complex64.

    Raises:
        InvalidArgumentError: ``s`` is not a positive size for each axis, an axis is out of range, or ``norm``
            is unknown.

    >>> import dualflow.array_api as xp
    >>> xp.fft.ifftn(xp.ones((2, 2))).tolist()
    [[(1+0j), 0j], [0j, 0j]]
    """
    return _transform_axes(transforms.ifftn, tensor_of(x), s, axes, norm)


def rfft(x: AnyArray, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The first half of :func:`fft` of real signals, of which the other half is the conjugate.

    Returns:
        A complex array with the shape of ``x``, but ``n // 2 + 1`` along ``axis``; complex64 for float32.

    Raises:
        DTypeError: an input holds complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.fft.rfft(xp.asarray([1.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    return _transform_axis(transforms.rfft, _real(x), n, axis, norm)


def irfft(x: AnyArray, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of :func:`rfft`.

    Args:
        n: the size of the result along the axis; ``2 * (size - 1)`` by default.

    Returns:
        A real array with the shape of ``x``, but ``n`` along ``axis``; float32 for complex64.

    Raises:
        InvalidArgumentError: ``n`` is not positive, or ``norm`` is unknown.

    >>> import dualflow.array_api as xp
    >>> xp.fft.irfft(xp.asarray([1.0, 1.0])).tolist()
    [1.0, 0.0]
    """
    return _transform_axis(transforms.irfft, tensor_of(x), n, axis, norm)


def rfftn(x: AnyArray, /, *, s: Sizes = None, axes: Sizes = None, norm: Norm = "backward") -> Array:
    """:func:`rfft` along the last of several axes, and :func:`fft` along the others; see :func:`fftn`.

    Returns:
        A complex array with the shape of ``x``, but ``s`` along ``axes``, where the last one has ``s[-1] // 2
        + 1``.

    Raises:
        DTypeError: an input holds complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.fft.rfftn(xp.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return _transform_axes(transforms.rfftn, _real(x), s, axes, norm)


def irfftn(x: AnyArray, /, *, s: Sizes = None, axes: Sizes = None, norm: Norm = "backward") -> Array:
    """The inverse of :func:`rfftn`.

    Args:
        s: the sizes of the result along ``axes``; by default those of ``x``, the last one ``2 * (size - 1)``.

    Returns:
        A real array with the shape of ``x``, but ``s`` along ``axes``; float32 for complex64.

    Raises:
        InvalidArgumentError: ``s`` is not a positive size for each axis, an axis is out of range, or ``norm``
            is unknown.

    >>> import dualflow.array_api as xp
    >>> xp.fft.irfftn(xp.ones((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _transform_axes(transforms.irfftn, tensor_of(x), s, axes, norm)


def hfft(x: AnyArray, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The Fourier transform of Hermitian signals, given the first half of each; it is real.

    ``n`` is the size of the result, by default twice one less than ``x`` has; the rest is as in :func:`fft`.

    Args:
        n: the size of the result along the axis; ``2 * (size - 1)`` by default.

    Returns:
        A real array with the shape of ``x``, but ``n`` along ``axis``; float32 for complex64.

    Raises:
        InvalidArgumentError: ``n`` is not positive, or ``norm`` is unknown.

    >>> import dualflow.array_api as xp
    >>> xp.fft.hfft(xp.asarray([1.0, 0.0])).tolist()
    [1.0, 1.0]
    """
    return _transform_axis(transforms.hfft, tensor_of(x), n, axis, norm)


def ihfft(x: AnyArray, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of :func:`hfft`: the first half of each signal.

    Returns:
        A complex array with the shape of ``x``, but ``n // 2 + 1`` along ``axis``; complex64 for float32.

    Raises:
        DTypeError: an input holds complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.fft.ihfft(xp.asarray([1.0, 1.0])).tolist()
    [(1-0j), -0j]
    """
    return _transform_axis(transforms.ihfft, _real(x), n, axis, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """The frequencies of :func:`fft`: from 0 up, then the negative ones.

    Args:
        n: how many elements were transformed.
        d: the time between two of them.
        dtype: a real floating dtype; float64 by default.
        device: the CPU, which is the only device.

    Returns:
        A vector of ``n`` elements, of the dtype.

    Raises:
        DTypeError: a dtype that is not real and floating.
        InvalidArgumentError: there are no elements, or the device is not the CPU.

    >>> import dualflow.array_api as xp
    >>> xp.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies(imported("numpy.fft").fftfreq, n, d, dtype, device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Array:
    """The frequencies of :func:`rfft`.

    Args:
        n: the number of samples.
        d: the spacing of the samples.
        dtype: the dtype; float64 by default.

    Returns:
        A vector of ``n // 2 + 1`` elements, of the dtype.

    Raises:
        InvalidArgumentError: ``n`` is not positive, or the device is not the CPU.

    >>> import dualflow.array_api as xp
    >>> xp.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies(imported("numpy.fft").rfftfreq, n, d, dtype, device)


def _frequencies(function: Callable[[int, float], Any], n: int, d: float, dtype: Any, device: Any) -> Array:
    check_device(device)
    target = float64 if dtype is None else as_dtype(dtype)
    if not target.is_floating:
        raise DTypeError(f"Frequencies are real floats, not {target.name}; use float32 or float64.")
    count = operator.index(n)
    if count < 1:
        raise InvalidArgumentError(f"There are frequencies of 1 element or more, not of {count}.")
    return Array(dispatch.current().constant(function(count, d).astype(target.dtype)))


def fftshift(x: AnyArray, /, *, axes: AxisLike | None = None) -> Array:
    """The elements shifted so that the frequency 0 is in the middle of the axes.

    Args:
        axes: an axis or several; all by default.

    Returns:
        An array with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: an axis is out of range.

    >>> import dualflow.array_api as xp
    >>> xp.fft.fftshift(xp.asarray([0, 1, -2, -1])).tolist()
    [-2, -1, 0, 1]
    """
    tensor = tensor_of(x)
    return Array(transforms.fftshift(tensor, axes_of(axes, len(tensor.shape))))


def ifftshift(x: AnyArray, /, *, axes: AxisLike | None = None) -> Array:
    """The inverse of :func:`fftshift`.

    Args:
        axes: an axis or several; all by default.

    Returns:
        An array with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: an axis is out of range.

    >>> import dualflow.array_api as xp
    >>> xp.fft.ifftshift(xp.asarray([-2, -1, 0, 1])).tolist()
    [0, 1, -2, -1]
    """
    tensor = tensor_of(x)
    return Array(transforms.ifftshift(tensor, axes_of(axes, len(tensor.shape))))


complete_docstrings(
    globals(),
    "is no array",
    x="an array of one axis or more.",
    device="the CPU, which is the only device; None by default.",
    n="the size of the axis, which is cut off or filled up with zeros; that of ``x`` by default.",
    s="the sizes of the axes, which are cut off or filled up with zeros; those of ``x`` by default.",
    axes="the axes; all by default, or the last ones if ``s`` is passed.",
    norm='"backward", "ortho" or "forward", as for :func:`fft`; "backward" by default.',
)
make_entries(globals())
_publish(globals())
