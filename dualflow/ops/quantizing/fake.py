"""Fake quantization: floats rounded to a grid, with the gradients of quantization-aware training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, greater, greater_equal, less, less_equal, logical_and
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.quantizing.grids import along, clamped, floats, half_up, straight_through
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


def _rounded(x: Any, low: Any, high: Any, num_bits: Any, narrow_range: bool) -> Any:
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
    """The cotangents of ``x``, and of both ends for each element: the caller sums these."""
    grid = _grid(low, high, num_bits, narrow_range)
    inside = logical_and(greater_equal(x, grid.low), less_equal(x, grid.high))
    to_x = where(grid.is_only_zero, g, where(inside, g, 0))
    to_low = where(grid.is_only_zero, 0, where(less(x, grid.low), g, 0))
    to_high = where(grid.is_only_zero, 0, where(greater(x, grid.high), g, 0))
    return to_x, to_low, to_high


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

    The grid is shifted by less than a step so that 0 is on it. The gradient is 1 inside of the grid, else 0.
    Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
    Inference" (2018).

    Args:
        inputs: real numbers of any shape; integers become float32.
        min: the lower end, a number.
        max: the upper end, a number.
        num_bits: 2 to 16.
        narrow_range: whether to leave out the lowest point, so that the grid is symmetric.

    Returns:
        A tensor with the shape and dtype of ``inputs``.

    Raises:
        InvalidArgumentError: ``min`` is not less than ``max``, or another ``num_bits``.
        DTypeError: complex numbers.

    >>> import dualflow as df
    >>> df.quantization.fake_quant_with_min_max_args([-0.3, 0.4, 9.0], 0.0, 3.0, num_bits=2).numpy()
    array([0., 0., 3.], dtype=float32)
    """
    low, high = _checked_range(min, max)
    x = floats(inputs)
    ends = (convert_to_tensor(low, x.dtype), convert_to_tensor(high, x.dtype))
    return _rounded(x, *ends, num_bits, narrow_range)


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
        min: the lower end, a number.
        max: the upper end, a number.
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
    ends = (convert_to_tensor(low, x.dtype), convert_to_tensor(high, x.dtype))
    return _cotangents(floats(gradients), x, *ends, num_bits, narrow_range)[0]


def fake_quant_with_min_max_vars(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """:func:`fake_quant_with_min_max_args` with ends that are tensors, and have gradients.

    The gradients of the inputs below the grid are summed for ``min``, of those above for ``max``. Where both
    ends are 0, so is the result, and the gradient goes to the inputs.

    Args:
        inputs: real numbers of any shape; integers become float32.
        min: the lower end, a scalar.
        max: the upper end, a scalar.
        num_bits: 2 to 16.
        narrow_range: whether to leave out the lowest point, so that the grid is symmetric.

    Returns:
        A tensor with the shape and dtype of ``inputs``.

    Raises:
        InvalidArgumentError: an end is not a scalar, or ``num_bits`` is out of range.
        DTypeError: an input holds complex numbers.

    >>> import dualflow as df
    >>> df.quantization.fake_quant_with_min_max_vars([-0.3, 0.4, 9.0], 0.0, 3.0, num_bits=2).numpy()
    array([0., 0., 3.], dtype=float32)
    """
    x = floats(inputs)
    ends = (along(x, min, None, "min"), along(x, max, None, "max"))
    return _rounded(x, *ends, num_bits, narrow_range)


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
        min: the lower end, a scalar.
        max: the upper end, a scalar.
        num_bits: 2 to 16.
        narrow_range: whether the lowest point is left out.

    Returns:
        Three tensors with the shapes of ``inputs``, ``min`` and ``max``.

    Raises:
        InvalidArgumentError: an end is not a scalar, or ``num_bits`` is out of range.
        DTypeError: an input holds complex numbers.

    >>> import dualflow as df
    >>> slope_of = df.quantization.fake_quant_with_min_max_vars_gradient
    >>> slopes = slope_of([1.0, 2.0, 4.0], [-7.0, 0.0, 7.0], -5.0, 6.0)
    >>> [slope.numpy().tolist() for slope in slopes]
    [[0.0, 2.0, 0.0], 1.0, 4.0]
    """
    x = floats(inputs)
    ends = (along(x, min, None, "min"), along(x, max, None, "max"))
    to_x, to_low, to_high = _cotangents(floats(gradients), x, *ends, num_bits, narrow_range)
    return to_x, reduce_sum(to_low), reduce_sum(to_high)


def fake_quant_with_min_max_vars_per_channel(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """:func:`fake_quant_with_min_max_vars` with ends for each position of the last axis.

    Args:
        inputs: real numbers of shape ``(..., channels)``; integers become float32.
        min: the lower ends, of shape ``(channels,)``.
        max: the upper ends, of shape ``(channels,)``.
        num_bits: 2 to 16.
        narrow_range: whether to leave out the lowest point, so that the grid is symmetric.

    Returns:
        A tensor with the shape and dtype of ``inputs``.

    Raises:
        InvalidArgumentError: there isn't one end for each channel, or ``num_bits`` is out of range.
        DTypeError: an input holds complex numbers.

    >>> import dualflow as df
    >>> rounded = df.quantization.fake_quant_with_min_max_vars_per_channel
    >>> rounded([[9.0, 9.0]], [0.0, 0.0], [3.0, 6.0]).numpy()
    array([[3., 6.]], dtype=float32)
    """
    x = floats(inputs)
    ends = (along(x, min, -1, "min"), along(x, max, -1, "max"))
    return _rounded(x, *ends, num_bits, narrow_range)


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
        min: the lower ends, of shape ``(channels,)``.
        max: the upper ends, of shape ``(channels,)``.
        num_bits: 2 to 16.
        narrow_range: whether the lowest point is left out.

    Returns:
        Three tensors with the shapes of ``inputs``, ``min`` and ``max``.

    Raises:
        InvalidArgumentError: there isn't one end for each channel, or ``num_bits`` is out of range.
        DTypeError: an input holds complex numbers.

    >>> import dualflow as df
    >>> slopes = df.quantization.fake_quant_with_min_max_vars_per_channel_gradient(
    ...     [[1.0, 2.0]], [[-7.0, 2.0]], [-1.0, 0.0], [2.0, 6.0]
    ... )
    >>> [slope.numpy().tolist() for slope in slopes]
    [[[0.0, 2.0]], [1.0, 0.0], [0.0, 0.0]]
    """
    x = floats(inputs)
    ends = (along(x, min, -1, "min"), along(x, max, -1, "max"))
    to_x, to_low, to_high = _cotangents(floats(gradients), x, *ends, num_bits, narrow_range)
    before = list(range(len(x.shape) - 1))
    return to_x, reduce_sum(to_low, before), reduce_sum(to_high, before)
