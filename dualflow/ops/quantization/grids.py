"""Parts of quantization: rounding, straight-through gradients, and ranges along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.ops.arithmetic import abs as magnitude
from dualflow.ops.arithmetic import maximum, minimum, sign
from dualflow.ops.arrangement import reshape
from dualflow.ops.attribute_values import written_value
from dualflow.ops.broadcasting import broadcast_like
from dualflow.ops.comparison import greater, greater_equal, less
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.custom_vjp import custom_vjp
from dualflow.ops.record import promote_together
from dualflow.ops.rounding import floor, trunc
from dualflow.ops.rounding import round as round_to_even
from dualflow.ops.selection import where


def straight_through(value: Any, x: Any) -> Any:
    """``value``, broadcast to ``x``, with the gradient of ``x`` (the straight-through estimator)."""
    value, x = promote_together(value, x)
    return custom_vjp(_straight_through_vjp, broadcast_like, value, x)


def _straight_through_vjp(needed: Any, g: Any, out: Any, value: Any, x: Any) -> list[Any]:
    return [None, g]


written_value("straight_through_gradient", _straight_through_vjp)


def half_away(x: Any) -> Any:
    """The nearest integers, halves rounded away from 0."""
    truncated = trunc(x)
    return where(greater_equal(magnitude(x - truncated), 0.5), truncated + sign(x), truncated)


def half_up(x: Any) -> Any:
    """The nearest integers, halves rounded up."""
    return floor(x + 0.5)


ROUNDINGS: Final[dict[str, Callable[[Any], Any]]] = {
    "HALF_AWAY_FROM_ZERO": half_away,
    "HALF_TO_EVEN": round_to_even,
    "HALF_UP": half_up,
}
QUANTIZED_DTYPES = ("int8", "uint8", "int16", "uint16", "int32")
"""The dtypes of quantized numbers. TensorFlow calls them qint8 and so on."""


def checked_dtype(dtype: Any) -> DType:
    """``dtype`` as a DType, checked to be one of :data:`QUANTIZED_DTYPES`.

    Raises:
        DTypeError: the dtype isn't one of them.
    """
    quantized = as_dtype(dtype)
    if quantized.name not in QUANTIZED_DTYPES:
        raise DTypeError(f"quantized numbers are {', '.join(QUANTIZED_DTYPES)}, not {quantized.name}.")
    return quantized


def floats(x: Any) -> Any:
    """Real numbers as floats: integers become float32.

    Raises:
        DTypeError: ``x`` holds complex numbers.
    """
    tensor = convert_to_tensor(x)
    if tensor.dtype.is_complex:
        raise DTypeError(f"only real numbers are quantized, not {tensor.dtype.name}; take their parts.")
    return tensor if tensor.dtype.is_floating else cast(tensor, "float32")


def checked_choice(value: str, what: str, choices: tuple[str, ...]) -> str:
    """``value``, checked to be one of ``choices``.

    Raises:
        InvalidArgumentError: ``value`` isn't one of them.
    """
    if value not in choices:
        raise InvalidArgumentError(f"{what} is one of {', '.join(choices)}, not {value!r}.")
    return value


def broadcast_bound(x: Any, values: Any, axis: int | None, what: str) -> Any:
    """A bound of a range in the dtype of ``x``: one number, or one for each index of ``axis``.

    Raises:
        InvalidArgumentError: ``values`` has another shape.
    """
    bounds = cast(convert_to_tensor(values), x.dtype)
    if axis is None:
        if len(bounds.shape):
            raise InvalidArgumentError(
                f"{what} is one number, not of shape {bounds.shape}; give the axis that it belongs to."
            )
        return bounds
    axis = normalize_axis(axis, len(x.shape))
    if len(bounds.shape) != 1 or bounds.shape[0] not in (x.shape[axis], None):
        raise InvalidArgumentError(
            f"{what} is one number for each index of axis {axis} of shape {x.shape}, not of shape "
            f"{bounds.shape}."
        )
    return reshape(bounds, [-1 if a == axis else 1 for a in range(len(x.shape))])


def range_bounds(x: Any, low: Any, high: Any, axis: int | None, names: tuple[str, str]) -> tuple[Any, Any]:
    """Both bounds of a range by :func:`broadcast_bound`; ``names`` are the arguments that errors name.

    Raises:
        InvalidArgumentError: a bound has another shape.
    """
    return broadcast_bound(x, low, axis, names[0]), broadcast_bound(x, high, axis, names[1])


def clamped(x: Any, low: Any, high: Any) -> Any:
    """``x`` clipped to two bounds, which get the gradients of elements outside; nan stays."""
    return where(less(x, low), low, where(greater(x, high), high, x))


def grid_around_zero(low: Any, high: Any, first: float, last: float) -> tuple[Any, Any]:
    """The scale and step of a grid around 0 that covers ``[low, high]`` with the integers ``first..last``.

    For an empty range they are the largest float and 0.
    """
    largest = float(low.dtype.max)

    def scale_and_step(bound: Any, level: float) -> tuple[Any, Any]:
        has_sign_of_level = greater(bound * level, 0)
        scale = where(has_sign_of_level, level / where(has_sign_of_level, bound, 1), largest)
        return scale, where(has_sign_of_level, bound / (level or 1.0), 0)

    (low_scale, low_step), (high_scale, high_step) = scale_and_step(low, first), scale_and_step(high, last)
    return minimum(low_scale, high_scale), maximum(low_step, high_step)
