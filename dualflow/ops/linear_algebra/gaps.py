"""Reciprocals of differences between eigenvalues or singular values, by which gradients divide.

Those of differences that are rounding errors would be huge and mean nothing: here they are small. What
counts is the size relative to the largest value.
"""

from __future__ import annotations

from typing import Any, Final

from dualflow.ops.arithmetic import abs, divide_no_nan
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.comparison import not_equal
from dualflow.ops.complex_numbers import conj, real
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.reduction import reduce_max
from dualflow.ops.selection import masked, where

_POLE_WIDTH: Final = 1e-20
"""The square of the difference, relative to the largest value, below which values count as equal."""


def _relative(values: Any) -> tuple[Any, Any]:
    """The values divided by their largest absolute value ``m``, and ``1 / m``; both are 0 if ``m`` is 0."""
    scale = stop_gradient(divide_no_nan(1.0, reduce_max(abs(values), -1, keepdims=True)))
    return values * cast(scale, values.dtype), scale


def _reciprocal(x: Any) -> Any:
    """``1 / x`` without a pole: ``x / (x ** 2 + _POLE_WIDTH)``, with gradient 0 where ``x`` is 0."""
    is_nonzero = not_equal(x, 0)
    safe = where(is_nonzero, x, cast(1, x.dtype))
    size = safe * safe if not x.dtype.is_complex else real(safe * conj(safe))
    return masked(is_nonzero, conj(safe) / cast(size + _POLE_WIDTH, x.dtype))


def inverse_gaps(values: Any) -> Any:
    """``1 / (values[j] - values[i])`` in row ``i`` and column ``j``; 0 where these are equal."""
    relative, scale = _relative(values)
    gaps = expand_dims(relative, -2) - expand_dims(relative, -1)
    return _reciprocal(gaps) * cast(expand_dims(scale, -1), values.dtype)


def inverse_gaps_of_squares(values: Any) -> Any:
    """``1 / (values[j] ** 2 - values[i] ** 2)`` in row ``i`` and column ``j``; 0 where these are equal."""
    relative, scale = _relative(values)
    row, column = expand_dims(relative, -2), expand_dims(relative, -1)
    scale = expand_dims(scale, -1)
    return _reciprocal((row - column) * (row + column)) * scale * scale


def inverses(values: Any) -> Any:
    """``1 / values``; 0 where these are 0."""
    relative, scale = _relative(values)
    return _reciprocal(relative) * scale
