"""Fake quantization: floats rounded to a grid, with the gradients of quantization-aware training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, greater, greater_equal, less, less_equal, logical_and
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.quantization.grids import clamped, floats, half_up, range_bounds, straight_through
from dualflow.ops.selection import where
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


class _Grid(NamedTuple):
    """A quantization grid: its bounds, its scale and the inverse, and whether 0 is its only point."""

    low: Any
    high: Any
    scale: Any
    inverse_scale: Any
    is_only_zero: Any


def _grid(low: Any, high: Any, num_bits: Any, narrow_range: bool) -> _Grid:
    """The grid of ``2**num_bits`` points (one less for a narrow range), shifted so that 0 is a point."""
    bits = static_int(num_bits, "num_bits")
    if not 2 <= bits <= 16:
        raise InvalidArgumentError(f"num_bits is 2..16, not {bits}.")
    first, last = (1.0 if narrow_range else 0.0), 2.0**bits - 1
    is_zero = logical_and(equal(low, 0), equal(high, 0))
    scale = where(is_zero, 1, (high - low) / (last - first))
    zero_point = first - low / scale
    zero_point = where(
        less(zero_point, first), first, where(greater(zero_point, last), last, half_up(zero_point))
    )
    inverse_scale = (last - first) / where(is_zero, 1, high - low)
    return _Grid((first - zero_point) * scale, (last - zero_point) * scale, scale, inverse_scale, is_zero)


def _fake_quantized(x: Any, low: Any, high: Any, num_bits: Any, narrow_range: bool) -> Any:
    """``x`` at the nearest grid points; its gradient is that of ``x`` clipped to the grid."""
    grid = _grid(low, high, num_bits, narrow_range)
    clipped = clamped(x, straight_through(grid.low, low), straight_through(grid.high, high))
    zero_point = half_up(-grid.low * grid.inverse_scale)
    levels = half_up((clamped(x, grid.low, grid.high) - grid.low) * grid.inverse_scale - zero_point)
    return where(
        grid.is_only_zero, straight_through(zeros_like(x), x), straight_through(levels * grid.scale, clipped)
    )


def _cotangents(
    g: Any, x: Any, low: Any, high: Any, num_bits: Any, narrow_range: bool
) -> tuple[Any, Any, Any]:
    """The cotangents of ``x`` and of both bounds, elementwise: the caller sums those of the bounds."""
    grid = _grid(low, high, num_bits, narrow_range)
    inside = logical_and(greater_equal(x, grid.low), less_equal(x, grid.high))
    x_cotangent = where(grid.is_only_zero, g, where(inside, g, 0))
    low_cotangent = where(grid.is_only_zero, 0, where(less(x, grid.low), g, 0))
    high_cotangent = where(grid.is_only_zero, 0, where(greater(x, grid.high), g, 0))
    return x_cotangent, low_cotangent, high_cotangent


def _checked_range(low: float, high: float) -> tuple[float, float]:
    if not low < high:
        raise InvalidArgumentError(f"min should be less than max, not {low} and {high}.")
    return float(low), float(high)


def fake_quant_with_min_max_args(
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Floats rounded to the nearest of the ``2**num_bits`` points of a grid from ``min`` to ``max``.

    The grid is shifted by less than a step so that 0 is on it. The gradient is 1 inside the grid, else 0.
    Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
    Inference" (2018).

    Args:
        inputs: real numbers of any shape; integers become float32.
        min: the lower bound, a number.
        max: the upper bound, a number.
        num_bits: 2 to 16.
        narrow_range: whether to leave out the lowest point, so that the grid is symmetric.

    Returns:
        A tensor with the shape and dtype of ``inputs``.

    Raises:
        InvalidArgumentError: ``min`` is not less than ``max``, or ``num_bits`` is out of range.
        DTypeError: ``inputs`` holds complex numbers.

    >>> import dualflow as df
    >>> df.quantization.fake_quant_with_min_max_args([-0.3, 0.4, 9.0], 0.0, 3.0, num_bits=2).numpy()
    array([0., 0., 3.], dtype=float32)
    """
    low, high = _checked_range(min, max)
    x = floats(inputs)
    bounds = (convert_to_tensor(low, x.dtype), convert_to_tensor(high, x.dtype))
    return _fake_quantized(x, *bounds, num_bits, narrow_range)


def fake_quant_with_min_max_args_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`fake_quant_with_min_max_args` with respect to ``inputs``.

    Args:
        gradients: the gradient of the result, with the shape of ``inputs``.
        inputs: real numbers of any shape.
        min: the lower bound, a number.
        max: the upper bound, a number.
        num_bits: 2 to 16.
        narrow_range: whether the lowest point is left out.

    Returns:
        A tensor with the shape and dtype of ``inputs``.

    Raises:
        InvalidArgumentError: ``min`` is not less than ``max``, or ``num_bits`` is out of range.
        DTypeError: an input holds complex numbers.

    >>> import dualflow as df
    >>> df.quantization.fake_quant_with_min_max_args_gradient([1.0, 1.0], [-7.0, 0.0]).numpy()
    array([0., 1.], dtype=float32)
    """
    low, high = _checked_range(min, max)
    x = floats(inputs)
    bounds = (convert_to_tensor(low, x.dtype), convert_to_tensor(high, x.dtype))
    return _cotangents(floats(gradients), x, *bounds, num_bits, narrow_range)[0]


def fake_quant_with_min_max_vars(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Fake quantization with trainable bounds ``min`` and ``max``.

    The rounding is that of :func:`fake_quant_with_min_max_args`. The gradient of ``min`` is the sum over
    inputs below the grid, that of ``max`` over inputs above it. If both bounds are 0, so is the result, and
    the gradient goes to the inputs.

    Args:
        inputs: real numbers of any shape; integers become float32.
        min: the lower bound, a scalar.
        max: the upper bound, a scalar.
        num_bits: 2 to 16.
        narrow_range: whether to leave out the lowest point, so that the grid is symmetric.

    Returns:
        A tensor with the shape and dtype of ``inputs``.

    Raises:
        InvalidArgumentError: a bound is not a scalar, or ``num_bits`` is out of range.
        DTypeError: an input holds complex numbers.

    >>> import dualflow as df
    >>> df.quantization.fake_quant_with_min_max_vars([-0.3, 0.4, 9.0], 0.0, 3.0, num_bits=2).numpy()
    array([0., 0., 3.], dtype=float32)
    """
    x = floats(inputs)
    bounds = range_bounds(x, min, max, None, ("min", "max"))
    return _fake_quantized(x, *bounds, num_bits, narrow_range)


def fake_quant_with_min_max_vars_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of :func:`fake_quant_with_min_max_vars` with respect to its inputs, ``min`` and ``max``.

    Args:
        gradients: the gradient of the result, with the shape of ``inputs``.
        inputs: real numbers of any shape.
        min: the lower bound, a scalar.
        max: the upper bound, a scalar.
        num_bits: 2 to 16.
        narrow_range: whether the lowest point is left out.

    Returns:
        Three tensors with the shapes of ``inputs``, ``min`` and ``max``.

    Raises:
        InvalidArgumentError: a bound is not a scalar, or ``num_bits`` is out of range.
        DTypeError: an input holds complex numbers.

    >>> import dualflow as df
    >>> slope_of = df.quantization.fake_quant_with_min_max_vars_gradient
    >>> slopes = slope_of([1.0, 2.0, 4.0], [-7.0, 0.0, 7.0], -5.0, 6.0)
    >>> [slope.numpy().tolist() for slope in slopes]
    [[0.0, 2.0, 0.0], 1.0, 4.0]
    """
    x = floats(inputs)
    bounds = range_bounds(x, min, max, None, ("min", "max"))
    x_cotangent, low_cotangent, high_cotangent = _cotangents(
        floats(gradients), x, *bounds, num_bits, narrow_range
    )
    return x_cotangent, reduce_sum(low_cotangent), reduce_sum(high_cotangent)


def fake_quant_with_min_max_vars_per_channel(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Fake quantization with trainable bounds for each channel, an index of the last axis.

    Args:
        inputs: real numbers of shape ``(..., channels)``; integers become float32.
        min: the lower bounds, of shape ``(channels,)``.
        max: the upper bounds, of shape ``(channels,)``.
        num_bits: 2 to 16.
        narrow_range: whether to leave out the lowest point, so that the grid is symmetric.

    Returns:
        A tensor with the shape and dtype of ``inputs``.

    Raises:
        InvalidArgumentError: there isn't one bound for each channel, or ``num_bits`` is out of range.
        DTypeError: an input holds complex numbers.

    >>> import dualflow as df
    >>> rounded = df.quantization.fake_quant_with_min_max_vars_per_channel
    >>> rounded([[9.0, 9.0]], [0.0, 0.0], [3.0, 6.0]).numpy()
    array([[3., 6.]], dtype=float32)
    """
    x = floats(inputs)
    bounds = range_bounds(x, min, max, -1, ("min", "max"))
    return _fake_quantized(x, *bounds, num_bits, narrow_range)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: TensorLike,
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of :func:`fake_quant_with_min_max_vars_per_channel` with respect to its three inputs.

    Args:
        gradients: the gradient of the result, with the shape of ``inputs``.
        inputs: real numbers of shape ``(..., channels)``.
        min: the lower bounds, of shape ``(channels,)``.
        max: the upper bounds, of shape ``(channels,)``.
        num_bits: 2 to 16.
        narrow_range: whether the lowest point is left out.

    Returns:
        Three tensors with the shapes of ``inputs``, ``min`` and ``max``.

    Raises:
        InvalidArgumentError: there isn't one bound for each channel, or ``num_bits`` is out of range.
        DTypeError: an input holds complex numbers.

    >>> import dualflow as df
    >>> slopes = df.quantization.fake_quant_with_min_max_vars_per_channel_gradient(
    ...     [[1.0, 2.0]], [[-7.0, 2.0]], [-1.0, 0.0], [2.0, 6.0]
    ... )
    >>> [slope.numpy().tolist() for slope in slopes]
    [[[0.0, 2.0]], [1.0, 0.0], [0.0, 0.0]]
    """
    x = floats(inputs)
    bounds = range_bounds(x, min, max, -1, ("min", "max"))
    x_cotangent, low_cotangent, high_cotangent = _cotangents(
        floats(gradients), x, *bounds, num_bits, narrow_range
    )
    before = list(range(len(x.shape) - 1))
    return x_cotangent, reduce_sum(low_cotangent, before), reduce_sum(high_cotangent, before)
