"""The frequencies of discrete Fourier transforms, and the order of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import tensor
from dualflow.ops.signal import fourier
from dualflow.ops.static import static_int
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, IntLike, TensorLike


def fftfreq(n: IntLike, d: TensorLike = 1.0, device: object = None) -> Tensor:
    """The frequencies of :func:`dualflow.numpy.fft.fft` of ``n`` samples: from 0 up, then the negative ones.

    Args:
        n: the number of samples, an integer above 0.
        d: the spacing of the samples.

    Returns:
        A vector of ``n`` elements, float64.

    Raises:
        DTypeError: ``n`` is not an integer.
        InvalidArgumentError: ``n`` is 0 or less.

    >>> import dualflow as df
    >>> df.numpy.fft.fftfreq(4).numpy()
    array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _frequencies(imported("numpy.fft").fftfreq, n) / d


def rfftfreq(n: IntLike, d: TensorLike = 1.0, device: object = None) -> Tensor:
    """The frequencies of :func:`dualflow.numpy.fft.rfft` of ``n`` samples.

    Args:
        n: the number of samples, an integer above 0.
        d: the spacing of the samples.

    Returns:
        A vector of ``n // 2 + 1`` elements, float64.

    Raises:
        DTypeError: ``n`` is no integer.
        InvalidArgumentError: ``n`` is 0 or less.

    >>> import dualflow as df
    >>> df.numpy.fft.rfftfreq(4).numpy()
    array([0.  , 0.25, 0.5 ])
    """
    return _frequencies(imported("numpy.fft").rfftfreq, n) / d


def _frequencies(function: Callable[[int], Any], n: Any) -> Tensor:
    """The result of ``function``, such as ``np.fft.fftfreq``, for ``n`` samples of distance 1.

    Raises:
        DTypeError: ``n`` is no integer.
        InvalidArgumentError: ``n`` is 0 or less.
    """
    count = static_int(n, "n")
    if count < 1:
        raise InvalidArgumentError(f"Frequencies need n >= 1 samples, not {count}.")
    return tensor(function(count))


def fftshift(x: TensorLike, axes: AxisLike | None = None) -> Tensor:
    """The elements shifted so that the frequency 0 is in the middle of the axes.

    Args:
        axes: an axis or several; all by default.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: an axis is out of range.

    >>> import dualflow as df
    >>> df.numpy.fft.fftshift([0, 1, 2, -2, -1]).numpy()
    array([-2, -1,  0,  1,  2])
    """
    return fourier.fftshift(tensor(x), axes)


def ifftshift(x: TensorLike, axes: AxisLike | None = None) -> Tensor:
    """The inverse of :func:`fftshift`.

    Args:
        axes: an axis or several; all by default.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: an axis is out of range.

    >>> import dualflow as df
    >>> df.numpy.fft.ifftshift([-2, -1, 0, 1, 2]).numpy()
    array([ 0,  1,  2, -2, -1])
    """
    return fourier.ifftshift(tensor(x), axes)


complete_docstrings(globals())
make_entries(globals())
