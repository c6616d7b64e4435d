"""Window functions: weights that fade out the ends of a frame. They are computed while tracing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.creation import constant
from dualflow.ops.docstrings import documented
from dualflow.ops.static import static_float, static_int, static_value

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike
    from dualflow.ops.tensor import Tensor

Array = np.ndarray[Any, Any]


_SECTIONS: Final = """Args:
    window_length: the number of weights, an integer known while tracing.{more}
    dtype: a float dtype; float32 by default.

Returns:
    A tensor of shape ``(window_length,)`` and dtype ``dtype``.

Raises:
    DTypeError: ``dtype`` is not a float dtype, or another argument is not known while tracing.
    InvalidArgumentError: ``window_length`` is negative.
"""
_PERIODIC: Final = """
    periodic: whether a window of even length is the beginning of a symmetric one that is longer by 1, as
        spectra require; windows of odd length are always symmetric, as in TensorFlow."""
_BETA: Final = """
    beta: the shape parameter, a number known while tracing: larger ones make the window narrower."""


def _sample_indices(window_length: Any) -> Array:
    length = static_int(window_length, "window_length")
    if length < 0:
        raise InvalidArgumentError(f"a window's length is not negative: {length}.")
    return np.arange(length, dtype=np.float64)


def _window(values: Array, dtype: Any) -> Tensor:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise DTypeError(f"windows are floats, not {kind.name}; choose another dtype.")
    return constant(values.astype(kind.dtype))


def _raised_cosine(window_length: Any, periodic: Any, dtype: Any, base: float) -> Tensor:
    samples, is_periodic = _sample_indices(window_length), static_value(periodic)
    if is_periodic is None:
        raise DTypeError("periodic must be known while tracing, but it is symbolic; pass a Python bool.")
    if is_periodic.size != 1:
        raise DTypeError(f"periodic is a bool, not {periodic!r}.")
    even = len(samples) % 2 == 0
    span = len(samples) - (0 if bool(is_periodic) and even else 1)
    if len(samples) == 1:
        return _window(np.ones(1), dtype)
    return _window(base - (1 - base) * np.cos(2 * np.pi * samples / span), dtype)


@documented(_SECTIONS, more=_PERIODIC)
def hann_window(
    window_length: IntLike, periodic: bool = True, dtype: DTypeLike = float32, name: str | None = None
) -> Tensor:
    """The Hann window, ``0.5 - 0.5 * cos(2 * pi * n / N)``.

    >>> import dualflow as df
    >>> df.signal.hann_window(4).numpy()
    array([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    return _raised_cosine(window_length, periodic, dtype, 0.5)


@documented(_SECTIONS, more=_PERIODIC)
def hamming_window(
    window_length: IntLike, periodic: bool = True, dtype: DTypeLike = float32, name: str | None = None
) -> Tensor:
    """The Hamming window, ``0.54 - 0.46 * cos(2 * pi * n / N)``.

    >>> import dualflow as df
    >>> df.signal.hamming_window(4).numpy().round(2)
    array([0.08, 0.54, 1.  , 0.54], dtype=float32)
    """
    return _raised_cosine(window_length, periodic, dtype, 0.54)


@documented(_SECTIONS, more="")
def vorbis_window(window_length: IntLike, dtype: DTypeLike = float32, name: str | None = None) -> Tensor:
    """Vorbis's window, ``sin(pi / 2 * sin(pi / N * (n + 1 / 2)) ** 2)``.

    >>> import dualflow as df
    >>> df.signal.vorbis_window(4).numpy().round(3)
    array([0.228, 0.974, 0.974, 0.228], dtype=float32)
    """
    samples = _sample_indices(window_length)
    return _window(np.sin(np.pi / 2 * np.sin(np.pi / max(1, len(samples)) * (samples + 0.5)) ** 2), dtype)


def _kaiser(length: int, beta: Any) -> Array:
    return np.kaiser(length, static_float(beta, "beta"))


@documented(_SECTIONS, more=_BETA)
def kaiser_window(
    window_length: IntLike, beta: TensorLike = 12.0, dtype: DTypeLike = float32, name: str | None = None
) -> Tensor:
    """The Kaiser window, ``i0(beta * sqrt(1 - x ** 2)) / i0(beta)`` for ``x`` from -1 to 1.

    >>> import dualflow as df
    >>> df.signal.kaiser_window(3, beta=0.0).numpy()
    array([1., 1., 1.], dtype=float32)
    """
    return _window(_kaiser(len(_sample_indices(window_length)), beta), dtype)


@documented(_SECTIONS, more=_BETA)
def kaiser_bessel_derived_window(
    window_length: IntLike, beta: TensorLike = 12.0, dtype: DTypeLike = float32, name: str | None = None
) -> Tensor:
    """The square roots of a Kaiser window's running sums, mirrored.

    Squares of weights half a window apart add to 1.

    >>> import dualflow as df
    >>> df.signal.kaiser_bessel_derived_window(2).numpy().round(3)
    array([0.707, 0.707], dtype=float32)
    """
    sums = np.cumsum(_kaiser(len(_sample_indices(window_length)) // 2 + 1, beta))
    half = np.sqrt(sums[:-1] / sums[-1])
    return _window(np.concatenate([half, half[::-1]]), dtype)
