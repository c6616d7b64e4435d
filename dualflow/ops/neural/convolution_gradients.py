"""The gradients of convolutions over any number of axes, as functions of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.ops.contraction import MATMUL
from dualflow.ops.neural.correlation import filter_product, transposed
from dualflow.ops.neural.window_options import channels_last, channels_second, geometry, has_channels_first
from dualflow.ops.static import static_shape

if TYPE_CHECKING:
    from dualflow.core.argument_types import PaddingLike
    from dualflow.ops.tensor import Tensor


def _check_outputs(y: Any, counts: Any, outputs: Any) -> None:
    expected = (y.shape[0], *counts, outputs)
    if tuple(y.shape) != expected:
        raise InvalidArgumentError(
            f"the gradient of a convolution with outputs of shape {expected} has that shape, not {y.shape}."
        )


def conv_backprop_input(
    input_sizes: Any,
    filters: Any,
    out_backprop: Any,
    strides: Any,
    padding: PaddingLike,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`dualflow.nn.convolution` with respect to its input.

    Args:
        input_sizes: the input's shape.
        filters: ``(*window, channels / groups, outputs)``.
        out_backprop: the gradient of the result.
        strides: of the convolution.
        padding: of the convolution.
        data_format: of the convolution.
        dilations: of the convolution.

    Returns:
        Of shape ``input_sizes``.

    Raises:
        InvalidArgumentError: shapes or options that do not fit.
    """
    y, w = MATMUL.prepare((out_backprop, filters), dispatch.current())
    sizes = static_shape(input_sizes)
    channels_first = has_channels_first(data_format, len(w.shape))
    y = channels_last(y) if channels_first else y
    shape = Shape((sizes[0], *sizes[2:], sizes[1]) if channels_first else sizes)
    layout = geometry(shape, w.shape[:-2], strides, padding, dilations, channels_first)
    _check_outputs(y, layout.counts(shape[1:-1]), w.shape[-1])
    gradient = transposed(y, w, layout, shape)
    return channels_second(gradient) if channels_first else gradient


def conv_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: PaddingLike,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`dualflow.nn.convolution` with respect to its filters, of shape ``filter_sizes``.

    The other arguments are those of :func:`conv_backprop_input`.

    Raises:
        InvalidArgumentError: shapes or options that do not fit.
    """
    x, y = MATMUL.prepare((input, out_backprop), dispatch.current())
    shape = Shape(static_shape(filter_sizes))
    channels_first = has_channels_first(data_format, len(shape))
    x, y = (channels_last(x), channels_last(y)) if channels_first else (x, y)
    layout = geometry(x.shape, shape[:-2], strides, padding, dilations, channels_first)
    _check_outputs(y, layout.counts(x.shape[1:-1]), shape[-1])
    return filter_product(x, y, layout, shape)
