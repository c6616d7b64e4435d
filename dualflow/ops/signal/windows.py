"""Window functions: weights that fade out the ends of a frame. They are known before a graph runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.creation import constant
from dualflow.ops.static import known_value, static_float, static_int

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

Array = np.ndarray[Any, Any]


def _places(window_length: Any) -> Array:
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
    places, whole = _places(window_length), known_value(periodic)
    if whole is None:
        raise DTypeError("periodic must be known while tracing, but it is symbolic; pass a Python bool.")
    if whole.size != 1:
        raise DTypeError(f"periodic is a bool, not {periodic!r}.")
    even = len(places) % 2 == 0
    span = len(places) - (0 if bool(whole) and even else 1)
    if len(places) == 1:
        return _window(np.ones(1), dtype)
    return _window(base - (1 - base) * np.cos(2 * np.pi * places / span), dtype)


def hann_window(
    window_length: Any, periodic: Any = True, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """The Hann window, ``0.5 - 0.5 * cos(2 * pi * n / N)``.

    Args:
        window_length: how many weights, known now.
        periodic: whether a window of even length is the beginning of a symmetric one that is longer by 1, as
            spectra want it; a window of odd length is symmetric always, as in TensorFlow.
        dtype: a float dtype.

    Raises:
        DTypeError: a dtype that is no float, or a length that is not known.
        InvalidArgumentError: a negative length.

    >>> import dualflow as df
    >>> df.signal.hann_window(4).numpy()
    array([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    return _raised_cosine(window_length, periodic, dtype, 0.5)


def hamming_window(
    window_length: Any, periodic: Any = True, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """The Hamming window, ``0.54 - 0.46 * cos(2 * pi * n / N)``; see :func:`hann_window`."""
    return _raised_cosine(window_length, periodic, dtype, 0.54)


def vorbis_window(window_length: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """Vorbis's window, ``sin(pi / 2 * sin(pi / N * (n + 1 / 2)) ** 2)``; see :func:`hann_window`."""
    places = _places(window_length)
    return _window(np.sin(np.pi / 2 * np.sin(np.pi / max(1, len(places)) * (places + 0.5)) ** 2), dtype)


def _kaiser(length: int, beta: Any) -> Array:
    return np.kaiser(length, static_float(beta, "beta"))


def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """The Kaiser window, ``i0(beta * sqrt(1 - x ** 2)) / i0(beta)`` for ``x`` from -1 to 1.

    ``beta`` is a number known now; see :func:`hann_window` for the other arguments.
    """
    return _window(_kaiser(len(_places(window_length)), beta), dtype)


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """The roots of a Kaiser window's running sums, mirrored: squares of weights half a window apart add to 1.

    See :func:`kaiser_window`.
    """
    sums = np.cumsum(_kaiser(len(_places(window_length)) // 2 + 1, beta))
    half = np.sqrt(sums[:-1] / sums[-1])
    return _window(np.concatenate([half, half[::-1]]), dtype)
