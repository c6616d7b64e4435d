"""Transposed convolutions: the gradients of convolutions with respect to their input, as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.ops.contraction import MATMUL
from dualflow.ops.docstrings import documented
from dualflow.ops.neural.correlation import transposed
from dualflow.ops.neural.window_options import (
    channels_last,
    channels_second,
    check_data_format,
    check_kind,
    fix_window_sizes,
    geometry,
    has_channels_first,
)
from dualflow.ops.static import shape_argument

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor

_OVER_AXES: Final = """Args:
    input: numbers other than bools, of shape ``(batch, {axes}, channels)``.
    filters: of shape ``({window}, outputs / groups, channels)``.
    output_shape: the shape of the result, or its spatial sizes alone: a convolution of it has the shape of
        ``input``.
    strides: the strides of that convolution: an integer, or a list with one for each spatial axis.
    padding: the padding of that convolution: "SAME", "VALID" or a list of pairs.
    data_format: "{last}" or None; "{second}" if the channels are the second axis.
    dilations: the dilations of that convolution; None for 1.

Returns:
    A tensor of shape ``(batch, {axes}, outputs)``, in the order of ``data_format``, with the common dtype of
    ``input`` and ``filters``.

Raises:
    InvalidArgumentError: no convolution maps ``output_shape`` to the shape of ``input``, or an option
        doesn't fit.
    DTypeError: an input holds bools or strings.
"""


@documented(_OVER_AXES, axes="*axes", window="*window", last="N...C", second="NC...")
def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: IntsLike,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`convolution` with respect to its input, as a layer.

    >>> import dualflow as df
    >>> x, w = df.ones([1, 2, 1]), df.constant([[[1.0]], [[2.0]], [[3.0]]])
    >>> df.nn.conv_transpose(x, w, [1, 5, 1], strides=2, padding="VALID").numpy().ravel()
    array([1., 2., 4., 2., 3.], dtype=float32)
    """
    x, w = MATMUL.prepare((input, filters), dispatch.current())
    axes = len(w.shape) - 2
    channels_first = has_channels_first(data_format, axes + 2)
    return _conv_transpose(x, w, output_shape, strides, padding, channels_first, dilations)


def _conv_transpose(
    x: Any, w: Any, output_shape: Any, strides: Any, padding: Any, channels_first: bool, dilations: Any
) -> Any:
    axes = len(w.shape) - 2
    if axes < 1 or len(x.shape) != axes + 2:
        raise InvalidArgumentError(
            "a transposed convolution takes an input (batch, *axes, channels) and filters (*window, outputs, "
            f"channels), not shapes {x.shape} and {w.shape}."
        )
    check_kind(x, "fciu", "a transposed convolution")
    fix_window_sizes(w, axes)
    x = channels_last(x) if channels_first else x
    target = _output_shape(output_shape, x, w, channels_first)
    layout = geometry(target, w.shape[:-2], strides, padding, dilations, channels_first)
    counts = layout.counts(target[1:-1])
    fits = all(
        a is None or b is None or a == b
        for a, b in zip((target[0], *counts, w.shape[-1]), (*x.shape[:-1], x.shape[-1]), strict=True)
    )
    if not fits:
        raise InvalidArgumentError(
            f"a convolution of shape {target} with filters {w.shape} gives "
            f"{(target[0], *counts, w.shape[-1])}, not the input's shape {x.shape}: choose another "
            "output_shape."
        )
    result = transposed(x, w, layout, target)
    return channels_second(result) if channels_first else result


def _output_shape(output_shape: Any, x: Any, w: Any, channels_first: bool) -> Shape:
    """The result's shape, with its channels last."""
    axes = len(w.shape) - 2
    shape = tuple(None if d == -1 else d for d in shape_argument(output_shape, "output_shape"))
    if len(shape) == axes:
        return Shape((x.shape[0], *shape, w.shape[-2]))
    if len(shape) != axes + 2:
        raise InvalidArgumentError(
            f"output_shape {output_shape!r} is (batch, *{axes} axes, outputs), or the sizes of the axes."
        )
    if channels_first:
        shape = (shape[0], *shape[2:], shape[1])
    if shape[-1] is None:
        shape = (*shape[:-1], w.shape[-2])
    return Shape((x.shape[0] if shape[0] is None else shape[0], *shape[1:]))


def _transposed_over(axes: int, what: str, input: Any, filters: Any, *options: Any) -> Any:
    x, w = MATMUL.prepare((input, filters), dispatch.current())
    if len(w.shape) != axes + 2:
        raise InvalidArgumentError(
            f"{what} takes filters of shape (*{axes} sizes of a window, outputs, channels), not {w.shape}."
        )
    return _conv_transpose(x, w, *options)


@documented(_OVER_AXES, axes="length", window="window", last="NWC", second="NCW")
def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: IntsLike,
    padding: str = "SAME",
    data_format: str | None = "NWC",
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`conv1d` with respect to its input, as a layer.

    >>> import dualflow as df
    >>> df.nn.conv1d_transpose(df.ones([1, 4, 3]), df.ones([3, 5, 3]), [1, 8, 5], strides=2).shape
    (1, 8, 5)
    """
    channels_first = check_data_format(data_format, "NWC", "NCW") == "NCW"
    options = (output_shape, strides, padding, channels_first, dilations)
    return _transposed_over(1, "conv1d_transpose", input, filters, *options)


@documented(_OVER_AXES, axes="height, width", window="*window", last="NHWC", second="NCHW")
def conv2d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: IntsLike,
    padding: str = "SAME",
    data_format: str | None = "NHWC",
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`conv2d` with respect to its input, as a layer.

    >>> import dualflow as df
    >>> df.nn.conv2d_transpose(df.ones([1, 4, 4, 3]), df.ones([3, 3, 5, 3]), [1, 8, 8, 5], strides=2).shape
    (1, 8, 8, 5)
    """
    channels_first = check_data_format(data_format, "NHWC", "NCHW") == "NCHW"
    options = (output_shape, strides, padding, channels_first, dilations)
    return _transposed_over(2, "conv2d_transpose", input, filters, *options)


@documented(_OVER_AXES, axes="depth, height, width", window="*window", last="NDHWC", second="NCDHW")
def conv3d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: IntsLike,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`conv3d` with respect to its input, as a layer.

    >>> import dualflow as df
    >>> df.nn.conv3d_transpose(df.ones([1, 2, 2, 2, 3]), df.ones([2, 2, 2, 5, 3]), [4, 4, 4], strides=2).shape
    (1, 4, 4, 4, 5)
    """
    channels_first = check_data_format(data_format, "NDHWC", "NCDHW") == "NCDHW"
    options = (output_shape, strides, padding, channels_first, dilations)
    return _transposed_over(3, "conv3d_transpose", input, filters, *options)


def atrous_conv2d_transpose(
    value: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    rate: IntsLike,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The gradient of :func:`atrous_conv2d` with respect to its input, as a layer.

    Args:
        value: numbers other than bools, of shape ``(batch, height, width, channels)``.
        filters: of shape ``(*window, outputs / groups, channels)``.
        output_shape: the shape of the result, or its spatial sizes alone.
        rate: the distance between the elements of a window, an integer.
        padding: "SAME" or "VALID".

    Returns:
        A tensor of shape ``output_shape`` with the common dtype of ``value`` and ``filters``.

    Raises:
        InvalidArgumentError: no convolution maps ``output_shape`` to the shape of ``value``, or an option
            doesn't fit.
        DTypeError: an input holds bools or strings.

    >>> import dualflow as df
    >>> x, w = df.ones([1, 3, 3, 1]), df.ones([2, 2, 1, 1])
    >>> df.nn.atrous_conv2d_transpose(x, w, [1, 5, 5, 1], rate=2, padding="VALID").shape
    (1, 5, 5, 1)
    """
    return conv2d_transpose(value, filters, output_shape, 1, padding, "NHWC", rate)
