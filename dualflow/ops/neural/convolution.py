"""Convolutions over one axis or more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.attribute_values import written_as
from dualflow.ops.contraction import MATMUL
from dualflow.ops.late_sizes import once_sized
from dualflow.ops.neural.correlation import correlated
from dualflow.ops.neural.window_options import (
    batches,
    channels_last,
    channels_second,
    check_data_format,
    check_kind,
    fix_window_sizes,
    geometry,
    has_channels_first,
    one_batch,
    per_axis,
)

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, PaddingLike, TensorLike
    from dualflow.ops.tensor import Tensor


def convolution(
    input: TensorLike,
    filters: TensorLike,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = None,
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution (cross-correlation) of ``input`` with ``filters``, over one axis or more.

    Args:
        input: numbers other than bools, of shape ``(*batch, *axes, channels)``.
        filters: of shape ``(*window, channels / groups, outputs)``, where the number of groups divides both.
        strides: the distance between windows: an integer, or one for each axis; None for 1.
        padding: "VALID" (windows are inside), "SAME" (zeros around, one window per stride) or a list of
            pairs: the number of zeros before and after each axis.
        data_format: "N...C" or None if the channels are last; "NC..." if they are the second axis.
        dilations: the distance between the elements of a window: an integer, or one for each axis; None for
            1.

    Returns:
        A tensor of shape ``(*batch, *windows, outputs)`` with the common dtype of ``input`` and ``filters``.
        Along an axis of ``n`` elements, with a window that spans ``w``, the number of windows is
        ``ceil(n / stride)`` for "SAME" and ``ceil((n - w + 1) / stride)`` for "VALID".

    Raises:
        InvalidArgumentError: shapes or options don't fit, or both strides and dilations are above 1, which
            :func:`conv1d`, :func:`conv2d` and :func:`conv3d` allow.
        DTypeError: an input holds bools or strings.

    >>> import dualflow as df
    >>> df.nn.convolution(df.ones([1, 4, 1]), df.ones([3, 1, 1]), padding="SAME").numpy().ravel()
    array([2., 3., 3., 2.], dtype=float32)
    """
    x, w = MATMUL.prepare((input, filters), dispatch.current())
    axes = _window_axes(w)
    channels_first = has_channels_first(data_format, axes + 2)
    steps, rates = 1 if strides is None else strides, 1 if dilations is None else dilations
    reject_strides_with_dilations(
        per_axis(steps, axes, "strides", channels_first), per_axis(rates, axes, "dilations", channels_first)
    )
    return _convolved(x, w, steps, padding, channels_first, rates)


def reject_strides_with_dilations(strides: tuple[int, ...], dilations: tuple[int, ...]) -> None:
    """Raise an error for strides together with dilations."""
    if max(strides, default=1) > 1 and max(dilations, default=1) > 1:
        raise InvalidArgumentError(
            f"strides {strides} and dilations {dilations} do not go together; give one of them, or take "
            "df.nn.conv1d, conv2d or conv3d."
        )


def _window_axes(w: Any) -> int:
    """The number of axes of the window of filters."""
    axes = len(w.shape) - 2
    if axes < 1:
        raise InvalidArgumentError(
            f"filters have the shape (*window, channels, outputs), not {w.shape}; df.reshape gives them one."
        )
    return axes


def _convolved(x: Any, w: Any, strides: Any, padding: Any, channels_first: bool, dilations: Any) -> Any:
    axes = _window_axes(w)
    if channels_first:
        x = channels_last(x)
    check_kind(x, "fciu", "a convolution")
    fix_window_sizes(w, axes)

    correlation = DynamicCorrelation(
        axes,
        per_axis(strides, axes, "strides", channels_first),
        padding,
        None if dilations is None else per_axis(dilations, axes, "dilations", channels_first),
        channels_first,
    )
    late = None in x.shape[-axes - 1 : -1]
    result_tensor = once_sized(correlation, DynamicWindows(axes), x, w) if late else correlation(x, w)
    return channels_second(result_tensor) if channels_first else result_tensor


@written_as("dynamic_correlation", "axes", "strides", "padding", "dilations", "first")
@dataclass(frozen=True, slots=True, eq=False)
class DynamicCorrelation:
    """A convolution of images whose sizes may be dynamic until it runs.

    Attributes:
        axes: the number of spatial axes.
        strides, padding, dilations: as the arguments of :func:`convolution`.
        first: whether the padding is for tensors whose channels are the second axis.
    """

    axes: int
    strides: tuple[int, ...]
    padding: Any
    dilations: tuple[int, ...] | None
    first: bool

    def __call__(self, x: Any, w: Any) -> Any:
        x, batch = one_batch(x, self.axes)
        layout = geometry(
            x.shape, w.shape[:-2], self.strides, self.padding, self.dilations, channels_first=self.first
        )
        return batches(correlated(x, w, layout), batch)


@written_as("dynamic_windows", "axes")
@dataclass(frozen=True, slots=True)
class DynamicWindows:
    """The rule for results of windows over ``axes`` spatial axes: those sizes are dynamic.

    The channels are those of the filters, or without filters the input's.
    """

    axes: int

    def __call__(self, x: TensorSpec, *filters: TensorSpec) -> TensorSpec:
        channels = filters[0].shape[-1] if filters else x.shape[-1]
        return TensorSpec.of(Shape([*x.shape[: -self.axes - 1], *[None] * self.axes, channels]), x.dtype)


def _convolution_over(
    axes: int,
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    channels_first: bool,
    dilations: Any,
    what: str,
) -> Any:
    x, w = MATMUL.prepare((input, filters), dispatch.current())
    if len(w.shape) != axes + 2:
        raise InvalidArgumentError(
            f"{what} takes filters of shape (*{axes} sizes of a window, channels, outputs), not {w.shape}."
        )
    return _convolved(x, w, strides, padding, channels_first, dilations)


def conv1d(
    input: TensorLike,
    filters: TensorLike,
    stride: IntsLike = 1,
    padding: PaddingLike = "VALID",
    data_format: str | None = "NWC",
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution (cross-correlation) of sequences of vectors with ``filters``.

    Args:
        input: numbers other than bools, of shape ``(*batch, length, channels)``.
        filters: of shape ``(window, channels / groups, outputs)``.
        stride: the distance between windows, an integer or a list of one.
        padding: "VALID", "SAME" or a pair for each axis, see :func:`convolution`.
        data_format: "NWC" or None; "NCW" if the channels are the second axis.
        dilations: the distance between the elements of a window; None for 1.

    Returns:
        A tensor of shape ``(*batch, windows, outputs)`` with the common dtype of ``input`` and ``filters``.

    Raises:
        InvalidArgumentError: ``filters`` doesn't have three axes, its channels don't divide those of the
            input, or an option is not one of these.
        DTypeError: an input holds bools or strings.

    >>> import dualflow as df
    >>> df.nn.conv1d([[[1.0], [2.0], [4.0]]], [[[-1.0]], [[1.0]]]).numpy().ravel()
    array([1., 2.], dtype=float32)
    """
    channels_first = check_data_format(data_format, "NWC", "NCW") == "NCW"
    return _convolution_over(1, input, filters, stride, padding, channels_first, dilations, "conv1d")


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    strides: IntsLike = 1,
    padding: PaddingLike = "VALID",
    data_format: str | None = "NHWC",
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution (cross-correlation) of images with ``filters``.

    Args:
        input: numbers other than bools, of shape ``(*batch, height, width, channels)``.
        filters: of shape ``(window height, window width, channels / groups, outputs)``.
        strides: the distance between windows: an integer, or a list of one, two or four (one for each axis of
            the input, in its order); 1 by default.
        padding: "VALID" (windows are inside), "SAME" (zeros around, one window per stride) or a list of
            pairs: the number of zeros before and after each of the four axes of the input.
        data_format: "NHWC" or None; "NCHW" if the channels are the second axis, for all options.
        dilations: the distance between the elements of a window, given as ``strides``; None for 1.

    Returns:
        A tensor of shape ``(*batch, rows, columns, outputs)``, or ``(batch, outputs, rows, columns)`` for
        "NCHW", with the common dtype of ``input`` and ``filters``. There are ``ceil(height / stride)`` rows
        for "SAME", ``ceil((height - window height + 1) / stride)`` for "VALID".

    Raises:
        InvalidArgumentError: ``filters`` doesn't have four axes, its channels don't divide those of the
            input, or an option is not one of these.
        DTypeError: an input holds bools or strings.

    >>> import dualflow as df
    >>> images, filters = df.ones([1, 8, 8, 3]), df.ones([3, 3, 3, 5])
    >>> df.nn.conv2d(images, filters, strides=2, padding="SAME").shape
    (1, 4, 4, 5)
    """
    channels_first = check_data_format(data_format, "NHWC", "NCHW") == "NCHW"
    return _convolution_over(2, input, filters, strides, padding, channels_first, dilations, "conv2d")


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    strides: IntsLike = 1,
    padding: PaddingLike = "VALID",
    data_format: str | None = "NDHWC",
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The convolution (cross-correlation) of volumes with ``filters``.

    Args:
        input: numbers other than bools, of shape ``(*batch, depth, height, width, channels)``.
        filters: of shape ``(window depth, window height, window width, channels / groups, outputs)``.
        strides: the distance between windows: an integer, or a list of one, three or five; 1 by default.
        padding: "VALID", "SAME" or a list of pairs, see :func:`convolution`.
        data_format: "NDHWC" or None; "NCDHW" if the channels are the second axis, for all options.
        dilations: the distance between the elements of a window, given as ``strides``; None for 1.

    Returns:
        A tensor of shape ``(*batch, *windows, outputs)`` with the common dtype of ``input`` and ``filters``.

    Raises:
        InvalidArgumentError: ``filters`` doesn't have five axes, its channels don't divide those of the
            input, or an option is not one of these.
        DTypeError: an input holds bools or strings.

    >>> import dualflow as df
    >>> df.nn.conv3d(df.ones([1, 4, 4, 4, 2]), df.ones([2, 2, 2, 2, 3])).shape
    (1, 3, 3, 3, 3)
    """
    channels_first = check_data_format(data_format, "NDHWC", "NCDHW") == "NCDHW"
    return _convolution_over(3, input, filters, strides, padding, channels_first, dilations, "conv3d")


def atrous_conv2d(
    value: TensorLike, filters: TensorLike, rate: IntsLike, padding: PaddingLike, name: str | None = None
) -> Tensor:
    """:func:`conv2d` with a window whose elements are ``rate`` apart on both axes.

    Args:
        value: numbers other than bools, of shape ``(*batch, height, width, channels)``.
        filters: of shape ``(window height, window width, channels / groups, outputs)``.
        rate: the distance between the elements of a window, an integer.
        padding: "VALID", "SAME" or a list of pairs, see :func:`conv2d`.

    Returns:
        A tensor of shape ``(*batch, rows, columns, outputs)`` with the common dtype of the inputs.

    Raises:
        InvalidArgumentError: ``filters`` doesn't have four axes, its channels don't divide those of the
            input, or an option is not one of these.
        DTypeError: an input holds bools or strings.

    >>> import dualflow as df
    >>> df.nn.atrous_conv2d(df.ones([1, 5, 5, 1]), df.ones([2, 2, 1, 1]), rate=2, padding="VALID").shape
    (1, 3, 3, 1)
    """
    return conv2d(value, filters, 1, padding, "NHWC", rate)
