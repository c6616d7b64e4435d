"""Pooling: a reduction over sliding windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dtypes import as_dtype, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.ops.arrangement import reshape
from dualflow.ops.attribute_values import written_as
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.docstrings import documented
from dualflow.ops.late_sizes import once_sized
from dualflow.ops.neural.convolution import DynamicWindows, reject_strides_with_dilations
from dualflow.ops.neural.window_options import (
    batches,
    channels_last,
    channels_second,
    check_data_format,
    check_kind,
    geometry,
    has_channels_first,
    one_batch,
    per_axis,
)
from dualflow.ops.neural.window_reductions import chosen, maxima, means
from dualflow.ops.neural.windows import Geometry
from dualflow.ops.size_values import numbers_below, operand
from dualflow.ops.static import ints, require_static_sizes, shape_of, static_shape
from dualflow.ops.tensor_sizes import reshape_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntsLike, PaddingLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor

_POOL: Final = """Args:
    input: {takes} of shape ``{shape}``.
    ksize: the size of a window: an integer, or a list with one for each spatial axis or each axis of the
        input.
    strides: the distance between windows, given as ``ksize``; None for the size of a window.
    padding: "VALID" (windows are inside), "SAME" (one window per stride) or a list of pairs: the number of
        elements before and after each axis. They are left out of the {reduction}.
    data_format: {formats} if the channels are the second axis.

Returns:
    A tensor with the dtype of ``input`` and its shape, but for the spatial sizes: these are the numbers of
    windows, ``ceil(n / stride)`` for "SAME" and ``ceil((n - size + 1) / stride)`` for "VALID".

Raises:
    InvalidArgumentError: the shape or an option doesn't fit.
    DTypeError: ``input`` doesn't hold {takes}.
"""
_ANY: Final = '"N...C" or None; "NC..."'
_MAX: Final = {"takes": "floats or integers", "reduction": "maximum"}
_MEAN: Final = {"takes": "floats or complex numbers", "reduction": "mean"}


def _pooled(
    x: Any,
    size: Any,
    strides: Any,
    padding: PaddingLike,
    channels_first: bool,
    mean: bool,
    dilations: Any = None,
) -> Any:
    axes = len(x.shape) - 2
    check_kind(x, "fc" if mean else "fiu", "avg_pool" if mean else "max_pool")
    x = channels_last(x) if channels_first else x

    pooled = DynamicPooling(
        per_axis(size, axes, "ksize", channels_first),
        None if strides is None else per_axis(strides, axes, "strides", channels_first),
        padding,
        None if dilations is None else per_axis(dilations, axes, "dilations", channels_first),
        channels_first,
        mean,
    )
    late = None in x.shape[1:-1]
    result_tensor = once_sized(pooled, DynamicWindows(axes), x) if late else pooled(x)
    return channels_second(result_tensor) if channels_first else result_tensor


@written_as("dynamic_pooling", "size", "strides", "padding", "dilations", "first", "mean")
@dataclass(frozen=True, slots=True, eq=False)
class DynamicPooling:
    """The maximum or mean of windows of a tensor whose spatial sizes may be dynamic until it runs."""

    size: tuple[int, ...]
    strides: tuple[int, ...] | None
    padding: Any
    dilations: tuple[int, ...] | None
    first: bool
    mean: bool

    def __call__(self, x: Any) -> Any:
        layout = geometry(x.shape, self.size, self.strides, self.padding, self.dilations, self.first)
        return means(x, layout) if self.mean else maxima(x, layout)


def _with_rank(input: Any, axes: int | None, what: str) -> Any:
    x = convert_to_tensor(input)
    expected = (3, 4, 5) if axes is None else (axes + 2,)
    if len(x.shape) not in expected:
        ranks = " or ".join(map(str, expected))
        raise InvalidArgumentError(
            f"{what} takes (batch, *axes, channels), a tensor of rank {ranks}, not one of shape {x.shape}; "
            "df.reshape it first."
        )
    return x


def _over_channels(x: Any, ksize: Any, strides: Any, channels_first: bool) -> int:
    """The window size along the channel axis; 1 if windows are along other axes."""
    size = ints(ksize, "ksize")
    at = 1 if channels_first else -1
    if len(size) != len(x.shape) or size[at] == 1:
        return 1
    steps = size if strides is None else ints(strides, "strides")
    channels = x.shape[at]
    is_single = math.prod(size) == size[at] and tuple(steps) == tuple(size)
    if not is_single or channels is None or size[at] < 1 or channels % size[at]:
        raise InvalidArgumentError(
            f"windows {ksize} at distances {strides} on shape {x.shape}: windows along the channels divide "
            "them into runs, and are of size 1 along the other axes."
        )
    return size[at]


def _max_pool(
    input: Any, axes: int | None, ksize: Any, strides: Any, padding: Any, channels_first: bool
) -> Any:
    x = _with_rank(input, axes, "max_pool")
    run = _over_channels(x, ksize, strides, channels_first)
    if run > 1:
        x = channels_last(x) if channels_first else x
        check_kind(x, "fiu", "max_pool")
        flat = reshape(x, [-1 if None in x.shape else x.shape.num_elements() // run, run, 1])
        maximum = maxima(flat, Geometry((run,), (run,), (1,), ((0, 0),)))
        maximum = reshape(maximum, reshape_sizes([*x.shape[:-1], x.shape[-1] // run], x))
        return channels_second(maximum) if channels_first else maximum
    return _pooled(x, ksize, ksize if strides is None else strides, padding, channels_first, mean=False)


def _avg_pool(
    input: Any, axes: int | None, ksize: Any, strides: Any, padding: Any, channels_first: bool
) -> Any:
    x = _with_rank(input, axes, "avg_pool")
    return _pooled(x, ksize, ksize if strides is None else strides, padding, channels_first, mean=True)


@documented(_POOL, **_MAX, shape="(batch, *axes, channels)", formats=_ANY)
def max_pool(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The maximum of each window, over one to three axes; nan for a window with a nan.

    The gradient is that of the first maximum of each window. The window may span channels instead of spatial
    axes.

    >>> import dualflow as df
    >>> df.nn.max_pool2d(df.reshape(df.range(16.0), [1, 4, 4, 1]), 2, 2, "VALID").numpy().ravel()
    array([ 5.,  7., 13., 15.], dtype=float32)
    """
    channels_first = has_channels_first(data_format, len(shape_of(input)))
    return _max_pool(input, None, ksize, strides, padding, channels_first)


@documented(_POOL, **_MAX, shape="(batch, length, channels)", formats='"NWC" or None; "NCW"')
def max_pool1d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """The maximum of each window along one axis; see :func:`max_pool`.

    >>> import dualflow as df
    >>> df.nn.max_pool1d([[[1.0], [3.0], [8.0]]], 2, 1).numpy().ravel()
    array([3., 8.], dtype=float32)
    """
    return _max_pool(input, 1, ksize, strides, padding, check_data_format(data_format, "NWC", "NCW") == "NCW")


@documented(_POOL, **_MAX, shape="(batch, height, width, channels)", formats='"NHWC" or None; "NCHW"')
def max_pool2d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The maximum of each window of images; see :func:`max_pool`.

    >>> import dualflow as df
    >>> df.nn.max_pool2d(df.ones([1, 8, 8, 3]), ksize=2).shape
    (1, 4, 4, 3)
    """
    return _max_pool(
        input, 2, ksize, strides, padding, check_data_format(data_format, "NHWC", "NCHW") == "NCHW"
    )


@documented(
    _POOL, **_MAX, shape="(batch, depth, height, width, channels)", formats='"NDHWC" or None; "NCDHW"'
)
def max_pool3d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The maximum of each window of volumes; see :func:`max_pool`.

    >>> import dualflow as df
    >>> df.nn.max_pool3d(df.ones([1, 4, 4, 4, 3]), ksize=2).shape
    (1, 2, 2, 2, 3)
    """
    return _max_pool(
        input, 3, ksize, strides, padding, check_data_format(data_format, "NDHWC", "NCDHW") == "NCDHW"
    )


@documented(_POOL, **_MEAN, shape="(batch, *axes, channels)", formats=_ANY)
def avg_pool(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The mean of each window, over one to three axes.

    >>> import dualflow as df
    >>> df.nn.avg_pool([[[1.0], [3.0], [8.0]]], 2, 2, "SAME").numpy().ravel()
    array([2., 8.], dtype=float32)
    """
    channels_first = has_channels_first(data_format, len(shape_of(input)))
    return _avg_pool(input, None, ksize, strides, padding, channels_first)


@documented(_POOL, **_MEAN, shape="(batch, length, channels)", formats='"NWC" or None; "NCW"')
def avg_pool1d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window along one axis.

    >>> import dualflow as df
    >>> df.nn.avg_pool1d([[[1.0], [3.0], [8.0]]], 2, 2, "SAME").numpy().ravel()
    array([2., 8.], dtype=float32)
    """
    return _avg_pool(input, 1, ksize, strides, padding, check_data_format(data_format, "NWC", "NCW") == "NCW")


@documented(_POOL, **_MEAN, shape="(batch, height, width, channels)", formats='"NHWC" or None; "NCHW"')
def avg_pool2d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of images.

    >>> import dualflow as df
    >>> df.nn.avg_pool2d(df.reshape(df.range(16.0), [1, 4, 4, 1]), 2).numpy().ravel()
    array([ 2.5,  4.5, 10.5, 12.5], dtype=float32)
    """
    return _avg_pool(
        input, 2, ksize, strides, padding, check_data_format(data_format, "NHWC", "NCHW") == "NCHW"
    )


@documented(
    _POOL, **_MEAN, shape="(batch, depth, height, width, channels)", formats='"NDHWC" or None; "NCDHW"'
)
def avg_pool3d(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of volumes.

    >>> import dualflow as df
    >>> df.nn.avg_pool3d(df.ones([1, 4, 4, 4, 3]), ksize=2).shape
    (1, 2, 2, 2, 3)
    """
    return _avg_pool(
        input, 3, ksize, strides, padding, check_data_format(data_format, "NDHWC", "NCDHW") == "NCDHW"
    )


def pool(
    input: TensorLike,
    window_shape: ShapeLike,
    pooling_type: str,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = None,
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The maximum or mean of each window, also of windows with dilations.

    Args:
        input: numbers of shape ``(*batch, *axes, channels)``.
        window_shape: the size of a window, one number for each spatial axis.
        pooling_type: "MAX" for real numbers, or "AVG" for floats.
        strides: the distance between windows; None for 1.
        padding: "VALID", or without dilations "SAME".
        data_format: "N...C" or None if the channels are last; "NC..." if they are the second axis.
        dilations: the distance between the elements of a window; None for 1. Not both strides and dilations
            may be above 1.

    Returns:
        A tensor of shape ``(*batch, *windows, channels)`` with the dtype of ``input``.

    Raises:
        InvalidArgumentError: the shape or an option doesn't fit.
        DTypeError: the dtype doesn't fit ``pooling_type``.

    >>> import dualflow as df
    >>> df.nn.pool([[[1.0], [5.0], [2.0], [3.0]]], [2], "MAX", dilations=[2]).numpy().ravel()
    array([2., 5.], dtype=float32)
    """
    size = ints(window_shape, "window_shape")
    axes = len(size)
    kind = pooling_type.upper() if isinstance(pooling_type, str) else None
    if kind not in ("MAX", "AVG"):
        raise InvalidArgumentError(f"pooling_type is 'MAX' or 'AVG', not {pooling_type!r}.")
    x = convert_to_tensor(input)
    channels_first = has_channels_first(data_format, axes + 2)
    steps = per_axis(1 if strides is None else strides, axes, "strides", channels_first)
    rates = per_axis(1 if dilations is None else dilations, axes, "dilations", channels_first)
    reject_strides_with_dilations(steps, rates)
    if max(rates, default=1) > 1 and padding != "VALID":
        raise InvalidArgumentError(
            f"pooling with dilations {rates} takes padding 'VALID', not {padding!r}; df.pad the input."
        )
    x, batch = (x, None) if channels_first else one_batch(x, axes)
    pooled = _pooled(x, size, steps, padding, channels_first, kind == "AVG", rates)
    return batches(pooled, batch)


def max_pool_with_argmax(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: PaddingLike,
    data_format: str = "NHWC",
    output_dtype: DTypeLike = int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window, and its position.

    Args:
        input: real numbers of shape ``(batch, height, width, channels)``.
        ksize: the size of a window: an integer, or a list with one for each spatial axis or each axis of
            ``input``.
        strides: the distance between windows, given as ``ksize``.
        padding: "SAME", "VALID" or a list of pairs.
        data_format: "NHWC".
        output_dtype: the integer dtype of the positions; int64 by default.
        include_batch_in_index: whether positions count through the whole batch.

    Returns:
        The maxima, of shape ``(batch, rows, columns, channels)`` and the dtype of ``input``; and with the
        same shape their positions ``(row * width + column) * channels + channel`` in the image.

    Raises:
        InvalidArgumentError: the shape or an option doesn't fit, or a size is unknown in a trace.
        DTypeError: ``input`` doesn't hold real numbers.

    >>> import dualflow as df
    >>> value, place = df.nn.max_pool_with_argmax([[[[1.0], [5.0], [2.0], [3.0]]]], [1, 2], [1, 2], "VALID")
    >>> value.numpy().ravel().tolist(), place.numpy().ravel().tolist()
    ([5.0, 3.0], [1, 3])
    """
    check_data_format(data_format, "NHWC", "NHWC")
    x = _with_rank(input, 2, "max_pool_with_argmax")
    check_kind(x, "fiu", "max_pool_with_argmax")
    target = as_dtype(output_dtype)
    layout = geometry(x.shape, per_axis(ksize, 2, "ksize"), strides, padding, None)
    maximum = maxima(x, layout)
    height, width, channels = require_static_sizes(x.shape, "max_pool_with_argmax", range(1, 4))
    choice = cast(chosen(stop_gradient(x), stop_gradient(maximum), layout), int64)
    rows, columns = [
        cast(numbers_below(count), int64) * step - operand(before, int64)
        for count, step, (before, _) in zip(maximum.shape[1:-1], layout.strides, layout.pairs, strict=True)
    ]
    row = choice // layout.size[1] + rows[:, None, None]
    column = choice % layout.size[1] + columns[:, None]
    pixel = row * operand(width, int64) + column
    flat_index = pixel * operand(channels, int64) + cast(numbers_below(channels), int64)
    if include_batch_in_index:
        (batch,) = static_shape([x.shape[0]])
        image = cast(numbers_below(batch), int64)[:, None, None, None]
        flat_index = flat_index + image * operand(height * width * channels, int64)
    return maximum, cast(flat_index, target)
