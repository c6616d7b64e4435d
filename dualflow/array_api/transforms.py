"""The standard's Fourier transforms."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import numpy as np

from dualflow.array_api.array import Array, in_floats, tensor_of
from dualflow.array_api.axes import axes_of, axis_of
from dualflow.core import dispatch
from dualflow.core.device_names import check_device
from dualflow.core.dtypes import as_dtype, complex64, float64, promote
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import cast
from dualflow.ops.signal import fourier

Norm = Literal["backward", "ortho", "forward"]
_OTHER_WAY: Final[dict[Any, Norm]] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _complex(x: Any) -> Any:
    """Real numbers as complex ones of their precision."""
    tensor = in_floats(x)
    return tensor if tensor.dtype.is_complex else cast(tensor, promote(tensor.dtype, complex64))


def _real(x: Any) -> Any:
    """Real floats.

    Raises:
        DTypeError: complex numbers.
    """
    tensor = in_floats(x)
    if tensor.dtype.is_complex:
        raise DTypeError(f"This transform is of real signals, not of {tensor.dtype.name}; use fft.fft.")
    return tensor


def _along(function: Callable[..., Any], x: Any, n: int | None, axis: int, norm: str) -> Array:
    """A transform along one axis."""
    lengths = None if n is None else [operator.index(n)]
    return Array(function(x, lengths, axes=[axis_of(axis, len(x.shape))], norm=norm))


def _over(
    function: Callable[..., Any], x: Any, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str
) -> Array:
    """A transform over several axes: with sizes alone, over as many last ones."""
    rank = len(x.shape)
    given = range(rank - len(s), rank) if axes is None and s is not None else axes
    over = axes_of(given, rank)
    if s is not None and len(s) != len(over):
        raise InvalidArgumentError(f"s has one size for each axis, not {s} for {len(over)} axes.")
    return Array(function(x, s, axes=over, norm=norm))


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The discrete Fourier transform along an axis.

    Args:
        x: complex or real numbers of one axis or more.
        n: how many elements, to which ``x`` is cut off or filled up with zeros; as many as it has by default.
        axis: along which to transform.
        norm: "backward" divides the inverse transforms by ``n``, "forward" the others, "ortho" both by its
            square root.

    Returns:
        Complex numbers.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: another norm.

    >>> import dualflow.array_api as xp
    >>> xp.fft.fft(xp.asarray([1.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    return _along(fourier.fftnd, _complex(x), n, axis, norm)


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of :func:`fft`.

    Args:
        x: complex or real numbers of one axis or more.
        n: how many elements, to which ``x`` is cut off or filled up with zeros; as many as it has by default.
        axis: along which to transform.
        norm: "backward" divides the inverse transforms by ``n``, "forward" the others, "ortho" both by its
            square root.

    Returns:
        Complex numbers.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: another norm.

    >>> import dualflow.array_api as xp
    >>> xp.fft.ifft(xp.asarray([2.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    return _along(fourier.ifftnd, _complex(x), n, axis, norm)


def fftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The discrete Fourier transform over several axes.

    Args:
        x: complex or real numbers.
        s: a size for each axis, to which ``x`` is cut off or filled up with zeros; its own size by default.
        axes: over which to transform: by default all, or as many last ones as ``s`` has sizes.
        norm: as :func:`fft` takes it.

    Returns:
        Complex numbers.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: another number of sizes than of axes, or another norm.

    >>> import dualflow.array_api as xp
    >>> xp.fft.fftn(xp.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return _over(fourier.fftnd, _complex(x), s, axes, norm)


def ifftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The inverse of :func:`fftn`.

    Args:
        x: complex or real numbers.
        s: a size for each axis, to which ``x`` is cut off or filled up with zeros; its own size by default.
        axes: over which to transform: by default all, or as many last ones as ``s`` has sizes.
        norm: as :func:`ifft` takes it.

    Returns:
        Complex numbers.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: another number of sizes than of axes, or another norm.

    >>> import dualflow.array_api as xp
    >>> xp.fft.ifftn(xp.ones((2, 2))).tolist()
    [[(1+0j), 0j], [0j, 0j]]
    """
    return _over(fourier.ifftnd, _complex(x), s, axes, norm)


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The discrete Fourier transform of real signals, without what mirrors the rest.

    Args:
        x: real numbers of one axis or more.
        n: how many elements, to which ``x`` is cut off or filled up with zeros; as many as it has by default.
        axis: along which to transform.
        norm: "backward" divides the inverse transforms by ``n``, "forward" the others, "ortho" both by its
            square root.

    Returns:
        Complex numbers, ``n // 2 + 1`` along the axis.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        DTypeError: complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.fft.rfft(xp.asarray([1.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    return _along(fourier.rfftnd, _real(x), n, axis, norm)


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of :func:`rfft`.

    Args:
        x: complex or real numbers of one axis or more.
        n: the size of the result, by default twice one less than ``x`` has.
        axis: along which to transform.
        norm: "backward" divides the inverse transforms by ``n``, "forward" the others, "ortho" both by its
            square root.

    Returns:
        Real numbers.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: another norm.

    >>> import dualflow.array_api as xp
    >>> xp.fft.irfft(xp.asarray([1.0, 1.0])).tolist()
    [1.0, 0.0]
    """
    return _along(fourier.irfftnd, _complex(x), n, axis, norm)


def rfftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The transform of real signals over several axes: :func:`rfft` along the last, :func:`fft` along others.

    Args:
        x: real numbers.
        s: a size for each axis, to which ``x`` is cut off or filled up with zeros; its own size by default.
        axes: over which to transform: by default all, or as many last ones as ``s`` has sizes.
        norm: as :func:`rfft` takes it.

    Returns:
        Complex numbers.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: another number of sizes than of axes, or another norm.

    >>> import dualflow.array_api as xp
    >>> xp.fft.rfftn(xp.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return _over(fourier.rfftnd, _real(x), s, axes, norm)


def irfftn(
    x: Any,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The inverse of :func:`rfftn`.

    Args:
        x: complex or real numbers.
        s: a size for each axis of the result; that of the last is by default twice one less than ``x`` has.
        axes: over which to transform: by default all, or as many last ones as ``s`` has sizes.
        norm: as :func:`irfft` takes it.

    Returns:
        Real numbers.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: another number of sizes than of axes, or another norm.

    >>> import dualflow.array_api as xp
    >>> xp.fft.irfftn(xp.ones((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _over(fourier.irfftnd, _complex(x), s, axes, norm)


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The transform of signals whose second half mirrors the first, conjugated, and is left out.

    Args:
        x: complex or real numbers of one axis or more.
        n: the size of the result, by default twice one less than ``x`` has.
        axis: along which to transform.
        norm: "backward" divides the inverse transforms by ``n``, "forward" the others, "ortho" both by its
            square root.

    Returns:
        Real numbers.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: another norm.

    >>> import dualflow.array_api as xp
    >>> xp.fft.hfft(xp.asarray([1.0, 0.0])).tolist()
    [1.0, 1.0]
    """
    return _along(fourier.irfftnd, conj(_complex(x)), n, axis, _OTHER_WAY.get(norm, norm))


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of :func:`hfft`.

    Args:
        x: real numbers of one axis or more.
        n: how many elements, to which ``x`` is cut off or filled up with zeros; as many as it has by default.
        axis: along which to transform.
        norm: "backward" divides the inverse transforms by ``n``, "forward" the others, "ortho" both by its
            square root.

    Returns:
        Complex numbers, ``n // 2 + 1`` along the axis.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        DTypeError: complex numbers.

    >>> import dualflow.array_api as xp
    >>> xp.fft.ihfft(xp.asarray([1.0, 1.0])).tolist()
    [(1-0j), -0j]
    """
    return Array(conj(_along(fourier.rfftnd, _real(x), n, axis, _OTHER_WAY.get(norm, norm))))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of what :func:`fft` returns.

    Args:
        n: how many elements were transformed.
        d: the time between two of them.
        dtype: a real floating dtype; float64 by default.
        device: the CPU, which is the only device.

    Raises:
        DTypeError: a dtype that is not real and floating.
        InvalidArgumentError: no elements, or another device.

    >>> import dualflow.array_api as xp
    >>> xp.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of what :func:`rfft` returns; arguments are those of :func:`fftfreq`.

    Raises:
        DTypeError: a dtype that is not real and floating.
        InvalidArgumentError: no elements, or another device.

    >>> import dualflow.array_api as xp
    >>> xp.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(function: Callable[[int, float], Any], n: int, d: float, dtype: Any, device: Any) -> Array:
    check_device(device)
    wanted = float64 if dtype is None else as_dtype(dtype)
    if not wanted.is_floating:
        raise DTypeError(f"Frequencies are real floats, not {wanted.name}; use float32 or float64.")
    count = operator.index(n)
    if count < 1:
        raise InvalidArgumentError(f"There are frequencies of 1 element or more, not of {count}.")
    return Array(dispatch.current().constant(function(count, d).astype(wanted.dtype)))


def fftshift(x: Any, /, *, axes: Any = None) -> Array:
    """The frequency 0 moved to the middle of each axis, or of those given.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        DTypeError: ``x`` is no array.

    >>> import dualflow.array_api as xp
    >>> xp.fft.fftshift(xp.asarray([0, 1, -2, -1])).tolist()
    [-2, -1, 0, 1]
    """
    tensor = tensor_of(x)
    return Array(fourier.fftshift(tensor, axes_of(axes, len(tensor.shape))))


def ifftshift(x: Any, /, *, axes: Any = None) -> Array:
    """The inverse of :func:`fftshift`.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        DTypeError: ``x`` is no array.

    >>> import dualflow.array_api as xp
    >>> xp.fft.ifftshift(xp.asarray([-2, -1, 0, 1])).tolist()
    [0, 1, -2, -1]
    """
    tensor = tensor_of(x)
    return Array(fourier.ifftshift(tensor, axes_of(axes, len(tensor.shape))))


make_entries(globals())
