"""Checks and conversions of labels, predictions and weights, for losses and metrics."""

from __future__ import annotations

from typing import Any

from dualflow.core.dtypes import float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import expand_dims, squeeze
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like
from dualflow.ops.shapes import shape as shape_of


def required_tensor(value: Any, what: str) -> Any:
    """``value`` as a tensor.

    Raises:
        InvalidArgumentError: it is None.
    """
    if value is None:
        raise InvalidArgumentError(f"{what} must not be None.")
    return convert_to_tensor(value)


def as_numbers(x: Any) -> Any:
    """A tensor as float32, the dtype in which losses and metrics compute."""
    return x if x.dtype is float32 else cast(x, float32)


def require_one_shape(labels: Any, predictions: Any) -> None:
    """Raise unless labels and predictions may have equal shapes.

    Raises:
        InvalidArgumentError: their shapes differ.
    """
    if not labels.shape.is_compatible_with(predictions.shape):
        raise InvalidArgumentError(
            f"Shapes {predictions.shape} and {labels.shape} are incompatible: predictions and labels must "
            "have equal shapes; reshape one of them."
        )


def squeeze_to_equal_rank(labels: Any, predictions: Any) -> tuple[Any, Any]:
    """Labels and predictions of equal shape: a last axis of size 1 that only one of them has is dropped.

    Raises:
        InvalidArgumentError: they still differ.
    """
    missing_axes = len(predictions.shape) - len(labels.shape)
    if missing_axes == 1 and predictions.shape[-1] in (None, 1):
        predictions = squeeze(predictions, [-1])
    elif missing_axes == -1 and labels.shape[-1] in (None, 1):
        labels = squeeze(labels, [-1])
    require_one_shape(labels, predictions)
    return labels, predictions


def fit_weights(weights: Any, values: Any) -> Any:
    """Weights as a tensor of the rank of ``values`` that broadcasts to them, or a scalar.

    Raises:
        InvalidArgumentError: weights don't broadcast to ``values``.
    """
    w = convert_to_tensor(weights)
    missing_axes = len(w.shape) - len(values.shape)
    if missing_axes == 1 and w.shape[-1] in (None, 1):
        w = squeeze(w, [-1])
    elif missing_axes == -1 and len(w.shape):
        w = expand_dims(w, -1)
    sizes = zip(w.shape, values.shape, strict=False)
    if len(w.shape) and (
        len(w.shape) != len(values.shape) or any(a not in (None, 1, b) and b is not None for a, b in sizes)
    ):
        raise InvalidArgumentError(
            f"weights can not be broadcast to values: weights of shape {convert_to_tensor(weights).shape}, "
            f"values of shape {values.shape}. Weights are a scalar, or have the size of each axis or 1."
        )
    return w


def broadcast_weights(weights: Any, values: Any) -> Any:
    """Weights broadcast to the shape of ``values``; see :func:`fit_weights`."""
    w = as_numbers(fit_weights(weights, values))
    if values.shape.is_static:
        return broadcast_to(w, values.shape)
    return w * ones_like(values, float32) if len(w.shape) else broadcast_to(w, shape_of(values))
