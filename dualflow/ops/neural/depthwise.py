"""Convolutions of each channel on its own, their gradients, and separable convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.ops.arrangement import reshape
from dualflow.ops.contraction import MATMUL
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.neural.convolution import conv2d, reject_strides_with_dilations
from dualflow.ops.neural.correlation import filter_product, transposed
from dualflow.ops.neural.window_options import (
    channels_last,
    channels_second,
    check_data_format,
    fix_window_sizes,
    geometry,
    per_axis,
)
from dualflow.ops.static import static_shape

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, PaddingLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: IntsLike = 1,
    padding: PaddingLike = "VALID",
    data_format: str | None = None,
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """A convolution of each channel with ``multiplier`` filters of its own.

    Args:
        input: numbers other than bools, of shape ``(batch, height, width, channels)``.
        filter: of shape ``(window height, window width, channels, multiplier)``.
        strides: the distance between windows: an integer, or a list of two or four.
        padding: "SAME", "VALID" or a list of pairs.
        data_format: "NHWC" or None; "NCHW" if the channels are the second axis.
        dilations: the distance between the elements of a window; None for 1. Not both strides and dilations
            may be above 1.

    Returns:
        A tensor of shape ``(batch, rows, columns, channels * multiplier)`` with the common dtype of the
        inputs; the results of a channel are adjacent.

    Raises:
        InvalidArgumentError: shapes or options don't fit.
        DTypeError: an input holds bools or strings.

    >>> import dualflow as df
    >>> x = df.constant([[[[1.0, 10.0], [2.0, 20.0]]]])
    >>> df.nn.depthwise_conv2d(x, df.ones([1, 2, 2, 1])).numpy().ravel()
    array([ 3., 30.], dtype=float32)
    """
    channels_first = check_data_format(data_format, "NHWC", "NCHW") == "NCHW"
    reject_strides_with_dilations(
        per_axis(strides, 2, "strides", channels_first),
        per_axis(1 if dilations is None else dilations, 2, "dilations", channels_first),
    )
    x, w = MATMUL.prepare((input, filter), dispatch.current())
    fix_window_sizes(w, 2)
    channels = x.shape[1 if channels_first else -1] if len(x.shape) > 1 else None
    if len(w.shape) != 4 or channels != w.shape[2]:
        raise InvalidArgumentError(
            f"a filter of shape {w.shape} does not fit an input of shape {x.shape}: it has the shape "
            "(h, w, channels, multiplier)."
        )
    return conv2d(x, _as_groups(w), strides, padding, data_format, dilations)


def _as_groups(w: Any) -> Any:
    """A depthwise filter as that of a convolution with a group for each channel."""
    height, width, channels, multiplier = w.shape
    return reshape(w, [height, width, 1, channels * multiplier])


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: IntsLike = 1,
    padding: PaddingLike = "VALID",
    data_format: str | None = None,
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """:func:`depthwise_conv2d`, then a convolution with windows of one element, which mixes the channels.

    Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions" (2017).

    Args:
        input: numbers other than bools, of shape ``(batch, height, width, channels)``.
        depthwise_filter: of shape ``(window height, window width, channels, multiplier)``.
        pointwise_filter: of shape ``(1, 1, channels * multiplier, outputs)``.
        strides: the strides of the first convolution.
        padding: the padding of the first convolution.
        data_format: "NHWC" or None; "NCHW" if the channels are the second axis.
        dilations: the dilations of the first convolution; None for 1.

    Returns:
        A tensor of shape ``(batch, rows, columns, outputs)`` with the common dtype of the inputs.

    Raises:
        InvalidArgumentError: shapes or options don't fit.
        DTypeError: an input holds bools or strings.

    >>> import dualflow as df
    >>> x, depth, point = df.ones([1, 4, 4, 3]), df.ones([2, 2, 3, 2]), df.ones([1, 1, 6, 5])
    >>> df.nn.separable_conv2d(x, depth, point, padding="SAME").shape
    (1, 4, 4, 5)
    """
    point = convert_to_tensor(pointwise_filter)
    channels = convert_to_tensor(depthwise_filter).shape
    if len(point.shape) != 4 or tuple(point.shape[:2]) != (1, 1) or len(channels) != 4:
        raise InvalidArgumentError(
            f"filters of shapes {channels} and {point.shape} are not (h, w, channels, multiplier) and "
            "(1, 1, channels * multiplier, outputs)."
        )
    if point.shape[2] != Shape(channels[2:]).num_elements():
        raise InvalidArgumentError(
            f"a pointwise filter of shape {point.shape} does not fit a depthwise {channels}: its "
            f"third size must be channels * multiplier = {Shape(channels[2:]).num_elements()}."
        )
    depthwise = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(depthwise, point, 1, "VALID", data_format)


def depthwise_conv2d_backprop_input(
    input_sizes: ShapeLike,
    filter: TensorLike,
    out_backprop: TensorLike,
    strides: IntsLike,
    padding: PaddingLike,
    data_format: str = "NHWC",
    dilations: IntsLike = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`depthwise_conv2d` with respect to its input.

    Args:
        input_sizes: the shape of the input.
        filter: of shape ``(window height, window width, channels, multiplier)``.
        out_backprop: the gradient of the result.
        strides: the strides of the convolution.
        padding: the padding of the convolution.
        data_format: "NHWC", or "NCHW" if the channels are the second axis.
        dilations: the dilations of the convolution.

    Returns:
        A tensor of shape ``input_sizes`` with the common dtype of ``filter`` and ``out_backprop``.

    Raises:
        InvalidArgumentError: shapes or options don't fit.

    >>> import dualflow as df
    >>> y, w = df.ones([1, 1, 2, 1]), df.ones([1, 2, 1, 1])
    >>> df.nn.depthwise_conv2d_backprop_input([1, 1, 3, 1], w, y, 1, "VALID").numpy().ravel()
    array([1., 2., 1.], dtype=float32)
    """
    channels_first = check_data_format(data_format, "NHWC", "NCHW") == "NCHW"
    y, w = MATMUL.prepare((out_backprop, filter), dispatch.current())
    y = channels_last(y) if channels_first else y
    sizes = static_shape(input_sizes)
    shape = Shape((sizes[0], *sizes[2:], sizes[1]) if channels_first else sizes)
    layout = geometry(shape, w.shape[:2], strides, padding, dilations, channels_first=channels_first)
    gradient = transposed(y, _as_groups(w), layout, shape)
    return channels_second(gradient) if channels_first else gradient


def depthwise_conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: ShapeLike,
    out_backprop: TensorLike,
    strides: IntsLike,
    padding: PaddingLike,
    data_format: str = "NHWC",
    dilations: IntsLike = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`depthwise_conv2d` with respect to its filter.

    Args:
        input: of shape ``(batch, height, width, channels)``.
        filter_sizes: the shape of the filter.
        out_backprop: the gradient of the result.
        strides: the strides of the convolution.
        padding: the padding of the convolution.
        data_format: "NHWC", or "NCHW" if the channels are the second axis.
        dilations: the dilations of the convolution.

    Returns:
        A tensor of shape ``filter_sizes`` with the common dtype of ``input`` and ``out_backprop``.

    Raises:
        InvalidArgumentError: shapes or options don't fit.

    >>> import dualflow as df
    >>> x, y = df.reshape(df.range(3.0), [1, 1, 3, 1]), df.ones([1, 1, 2, 1])
    >>> df.nn.depthwise_conv2d_backprop_filter(x, [1, 2, 1, 1], y, 1, "VALID").numpy().ravel()
    array([1., 3.], dtype=float32)
    """
    channels_first = check_data_format(data_format, "NHWC", "NCHW") == "NCHW"
    x, y = MATMUL.prepare((input, out_backprop), dispatch.current())
    x, y = (channels_last(x), channels_last(y)) if channels_first else (x, y)
    sizes = static_shape(filter_sizes)
    layout = geometry(x.shape, sizes[:2], strides, padding, dilations, channels_first=channels_first)
    shape = Shape((*sizes[:2], 1, sizes[2] * sizes[3]))
    return reshape(filter_product(x, y, layout, shape), list(sizes))
