"""Pooling: a reduction over sliding windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import as_dtype, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import reshape
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.late_sizes import once_sized
from dualflow.ops.neural.convolution import refuse_both
from dualflow.ops.neural.window_options import (
    batches,
    channels_first,
    channels_last,
    channels_second,
    check_kind,
    geometry,
    named,
    one_batch,
    per_axis,
)
from dualflow.ops.neural.window_reductions import chosen, maxima, means
from dualflow.ops.neural.windows import Geometry, sizes_of
from dualflow.ops.static import ints, known_sizes, shape_of, static_shape

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def _pooled(
    x: Any,
    size: Any,
    strides: Any,
    padding: Any,
    first: bool,
    mean: bool,
    dilations: Any = None,
) -> Any:
    axes = len(x.shape) - 2
    check_kind(x, "fc" if mean else "fiu", "avg_pool" if mean else "max_pool")
    x = channels_last(x) if first else x

    def pooled(x: Any) -> Any:
        lie = geometry(x.shape, per_axis(size, axes, "ksize", first), strides, padding, dilations, first)
        return means(x, lie) if mean else maxima(x, lie)

    def result(x: TensorSpec) -> TensorSpec:
        return TensorSpec.of(Shape([x.shape[0], *[None] * axes, x.shape[-1]]), x.dtype)

    found = once_sized(pooled, result, x) if None in x.shape[1:-1] else pooled(x)
    return channels_second(found) if first else found


def _ranked(input: Any, axes: int | None, what: str) -> Any:
    x = convert_to_tensor(input)
    wanted = (3, 4, 5) if axes is None else (axes + 2,)
    if len(x.shape) not in wanted:
        ranks = " or ".join(map(str, wanted))
        raise InvalidArgumentError(
            f"{what} takes (batch, *axes, channels), a tensor of rank {ranks}, not one of shape {x.shape}; "
            "df.reshape it first."
        )
    return x


def _over_channels(x: Any, ksize: Any, strides: Any, first: bool) -> int:
    """The size of windows that lie along the channels; 1 for those along other axes."""
    size = ints(ksize, "ksize")
    at = 1 if first else -1
    if len(size) != len(x.shape) or size[at] == 1:
        return 1
    steps = size if strides is None else ints(strides, "strides")
    channels = x.shape[at]
    alone = math.prod(size) == size[at] and tuple(steps) == tuple(size)
    if not alone or channels is None or size[at] < 1 or channels % size[at]:
        raise InvalidArgumentError(
            f"windows {ksize} at distances {strides} on shape {x.shape}: windows along the channels divide "
            "them into runs, and are of size 1 along the other axes."
        )
    return size[at]


def _maximum(input: Any, axes: int | None, ksize: Any, strides: Any, padding: Any, first: bool) -> Any:
    x = _ranked(input, axes, "max_pool")
    run = _over_channels(x, ksize, strides, first)
    if run > 1:
        x = channels_last(x) if first else x
        check_kind(x, "fiu", "max_pool")
        flat = reshape(x, [-1 if None in x.shape else x.shape.num_elements() // run, run, 1])
        found = maxima(flat, Geometry((run,), (run,), (1,), ((0, 0),)))
        found = reshape(found, sizes_of([*x.shape[:-1], x.shape[-1] // run]))
        return channels_second(found) if first else found
    return _pooled(x, ksize, ksize if strides is None else strides, padding, first, mean=False)


def _average(input: Any, axes: int | None, ksize: Any, strides: Any, padding: Any, first: bool) -> Any:
    x = _ranked(input, axes, "avg_pool")
    return _pooled(x, ksize, ksize if strides is None else strides, padding, first, mean=True)


def max_pool(
    input: Any,
    ksize: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The maximum of each window of ``(batch, *axes, channels)``; the gradient goes to the first maximum.

    Args:
        input: floats or integers, with one to three axes.
        ksize: the window's size, for all axes or each; along the channels too, but not together.
        strides: the distance between windows; the window's size by default.
        padding: "VALID", "SAME" or (before, after) pairs.
        data_format: "N...C" by default; "NC..." if the channels come second.
        name: ignored; as in TensorFlow.

    Returns:
        ``(batch, *windows, channels)``, in the input's dtype; nan for a window with a nan.

    Raises:
        InvalidArgumentError: shapes or options that do not fit.
        DTypeError: bools or complex numbers.

    >>> import dualflow as df
    >>> df.nn.max_pool2d(df.reshape(df.range(16.0), [1, 4, 4, 1]), 2, 2, "VALID").numpy().ravel()
    array([ 5.,  7., 13., 15.], dtype=float32)
    """
    first = channels_first(data_format, len(shape_of(input)))
    return _maximum(input, None, ksize, strides, padding, first)


def max_pool1d(
    input: Any,
    ksize: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """:func:`max_pool` of ``(batch, length, channels)``, or with "NCW" ``(batch, channels, length)``."""
    return _maximum(input, 1, ksize, strides, padding, named(data_format, "NWC", "NCW") == "NCW")


def max_pool2d(
    input: Any,
    ksize: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """:func:`max_pool` of ``(batch, height, width, channels)``, or with "NCHW" the channels second."""
    return _maximum(input, 2, ksize, strides, padding, named(data_format, "NHWC", "NCHW") == "NCHW")


def max_pool3d(
    input: Any,
    ksize: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """:func:`max_pool` over three axes, or with "NCDHW" the channels second."""
    return _maximum(input, 3, ksize, strides, padding, named(data_format, "NDHWC", "NCDHW") == "NCDHW")


def avg_pool(
    input: Any,
    ksize: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The mean of each window of floats, padding not counted; see :func:`max_pool`.

    >>> import dualflow as df
    >>> df.nn.avg_pool1d([[[1.0], [3.0], [8.0]]], 2, 2, "SAME").numpy().ravel()
    array([2., 8.], dtype=float32)
    """
    first = channels_first(data_format, len(shape_of(input)))
    return _average(input, None, ksize, strides, padding, first)


def avg_pool1d(
    input: Any,
    ksize: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """:func:`avg_pool` of ``(batch, length, channels)``, or with "NCW" ``(batch, channels, length)``."""
    return _average(input, 1, ksize, strides, padding, named(data_format, "NWC", "NCW") == "NCW")


def avg_pool2d(
    input: Any,
    ksize: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """:func:`avg_pool` of ``(batch, height, width, channels)``, or with "NCHW" the channels second."""
    return _average(input, 2, ksize, strides, padding, named(data_format, "NHWC", "NCHW") == "NCHW")


def avg_pool3d(
    input: Any,
    ksize: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """:func:`avg_pool` over three axes, or with "NCDHW" the channels second."""
    return _average(input, 3, ksize, strides, padding, named(data_format, "NDHWC", "NCDHW") == "NCDHW")


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The maximum or mean of each window of ``(batch, *axes, channels)``.

    Args:
        input: numbers; several axes of the batch are one.
        window_shape: the window's size, one for each axis.
        pooling_type: "MAX" or "AVG".
        strides: the distance between windows; 1 by default.
        padding: "VALID", or without dilations "SAME".
        data_format: "N...C" by default; "NC..." if the channels come second.
        dilations: the distance between the elements of a window, not together with strides; 1 by default.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: shapes or options that do not fit.

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
    first = channels_first(data_format, axes + 2)
    steps = per_axis(1 if strides is None else strides, axes, "strides", first)
    apart = per_axis(1 if dilations is None else dilations, axes, "dilations", first)
    refuse_both(steps, apart)
    if max(apart, default=1) > 1 and padding != "VALID":
        raise InvalidArgumentError(
            f"pooling with dilations {apart} takes padding 'VALID', not {padding!r}; df.pad the input."
        )
    x, batch = (x, None) if first else one_batch(x, axes)
    found = _pooled(x, size, steps, padding, first, kind == "AVG", apart)
    return batches(found, batch)


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    output_dtype: Any = int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window, and where it is.

    Args:
        input: real numbers of shape ``(batch, height, width, channels)``.
        ksize: the window's size, for both axes or each.
        strides: the distance between windows.
        padding: "SAME" or "VALID".
        data_format: "NHWC".
        output_dtype: of the positions: int32 or int64.
        include_batch_in_index: whether positions count through the whole batch.
        name: ignored; as in TensorFlow.

    Returns:
        The maxima, and for each its position ``(row * width + column) * channels + channel``.

    Raises:
        InvalidArgumentError: shapes or options that do not fit.

    >>> import dualflow as df
    >>> value, place = df.nn.max_pool_with_argmax([[[[1.0], [5.0], [2.0], [3.0]]]], [1, 2], [1, 2], "VALID")
    >>> value.numpy().ravel().tolist(), place.numpy().ravel().tolist()
    ([5.0, 3.0], [1, 3])
    """
    named(data_format, "NHWC", "NHWC")
    x = _ranked(input, 2, "max_pool_with_argmax")
    check_kind(x, "fiu", "max_pool_with_argmax")
    target = as_dtype(output_dtype)
    lie = geometry(x.shape, per_axis(ksize, 2, "ksize"), strides, padding, None)
    found = maxima(x, lie)
    height, width, channels = known_sizes(x.shape, "max_pool_with_argmax", range(1, 4))
    choice = cast(chosen(stop_gradient(x), stop_gradient(found), lie), int64)
    rows, columns = [
        np.arange(count) * step - before
        for count, step, (before, _) in zip(found.shape[1:-1], lie.strides, lie.pairs, strict=True)
    ]
    row = choice // lie.size[1] + rows[:, None, None]
    column = choice % lie.size[1] + columns[:, None]
    place = (row * width + column) * channels + np.arange(channels)
    if include_batch_in_index:
        batch = static_shape([x.shape[0]])
        place = place + np.arange(*batch)[:, None, None, None] * (height * width * channels)
    return found, cast(place, target)
