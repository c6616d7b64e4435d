"""Convolutions and pooling: a matrix product, or a reduction, over sliding windows."""

from __future__ import annotations

import math
from typing import Any

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.contraction import MATMUL, matmul
from dualflow.ops.creation import convert_to_tensor, ones
from dualflow.ops.reduction import reduce_max
from dualflow.ops.repetition import PAD
from dualflow.ops.static import ints, static_shape
from dualflow.ops.windows import Sizes, sum_windows, window_count, windows

Padding = tuple[tuple[int, int], ...]


def _per_axis(value: Any, axes: int, what: str) -> Sizes:
    """One number for each spatial axis, from one for all, one each, or one for every axis of the tensor."""
    found = ints(value, what)
    if len(found) == 1:
        found = found * axes
    if len(found) == axes + 2:
        if found[0] != 1 or found[-1] != 1:
            raise InvalidArgumentError(f"{what} {value} must be 1 for the batch and the channels.")
        found = found[1:-1]
    if len(found) != axes or min(found) < 1:
        raise InvalidArgumentError(
            f"{what} is a positive integer, or one for each of {axes} axes, not {value!r}."
        )
    return found


def _paddings(padding: Any, spatial: Any, size: Sizes, strides: Sizes, dilations: Sizes) -> Padding:
    """How many elements go before and after each spatial axis."""
    if not isinstance(padding, str):
        pairs = tuple((int(a), int(b)) for a, b in padding)
        return pairs[1:-1] if len(pairs) == len(size) + 2 else pairs
    kind = padding.upper()
    if kind == "VALID":
        return ((0, 0),) * len(size)
    if kind != "SAME":
        raise InvalidArgumentError(f"padding is 'SAME', 'VALID' or (before, after) pairs, not {padding!r}.")
    return tuple(_same(*axis) for axis in zip(spatial, size, strides, dilations, strict=True))


def _same(length: int | None, window: int, stride: int, dilation: int) -> tuple[int, int]:
    """The padding that makes one window for each ``stride`` elements, the odd one going behind."""
    reach = (window - 1) * dilation + 1
    if length is None:
        if stride != 1:
            raise InvalidArgumentError("padding 'SAME' with strides needs to know the sizes while tracing.")
        total = reach - 1
    else:
        total = max(0, (-(-length // stride) - 1) * stride + reach - length)
    return total // 2, total - total // 2


def _padded(x: Any, pairs: Padding, value: float) -> Any:
    if not any(a or b for a, b in pairs):
        return x
    return dispatch.current().apply(PAD, (x,), {"paddings": ((0, 0), *pairs, (0, 0)), "value": value})


def _channels_first(data_format: str | None, rank: int) -> bool:
    if data_format is None or (data_format.startswith("N") and data_format.endswith("C")):
        return False
    if data_format.startswith("NC") and len(data_format) == rank:
        return True
    raise InvalidArgumentError(f"data_format is 'N...C' or 'NC...' with {rank} letters, not {data_format!r}.")


def _channels_last(x: Any) -> Any:
    rank = len(x.shape)
    return transpose(x, (0, *range(2, rank), 1))


def _channels_second(x: Any) -> Any:
    rank = len(x.shape)
    return transpose(x, (0, rank - 1, *range(1, rank - 1)))


def convolution(
    input: Any,
    filters: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = 1,
    name: str | None = None,
) -> Any:
    """The convolution (cross-correlation) of ``input`` with ``filters``, over one axis or more.

    Args:
        input: floats of shape ``(batch, *axes, channels)``.
        filters: of shape ``(*window, channels / groups, outputs)``.
        strides: the distance between windows, for all axes or each.
        padding: "VALID" (windows lie inside), "SAME" (zeros around, one window a stride) or pairs of
            how many zeros go before and after each axis.
        data_format: "N...C" by default; "NC..." if the channels come second.
        dilations: the distance between the elements of a window.
        name: ignored; as in TensorFlow.

    Returns:
        Of shape ``(batch, *windows, outputs)``.

    Raises:
        InvalidArgumentError: shapes or options that do not fit.

    >>> import dualflow as df
    >>> df.nn.convolution(df.ones([1, 4, 1]), df.ones([3, 1, 1]), padding="SAME").numpy().ravel()
    array([2., 3., 3., 2.], dtype=float32)
    """
    x, w = MATMUL.prepare((input, filters), dispatch.current())
    axes = len(w.shape) - 2
    first = _channels_first(data_format, axes + 2)
    x = _channels_last(x) if first else x
    found = _convolved(x, w, *_options(x, w.shape[:-2], strides, padding, dilations))
    return _channels_second(found) if first else found


def _options(
    x: Any, window: Any, strides: Any, padding: Any, dilations: Any
) -> tuple[Sizes, Sizes, Sizes, Padding]:
    """Window, strides, dilations and paddings, one entry for each spatial axis of ``x``."""
    size = tuple(window)
    if len(x.shape) != len(size) + 2 or not x.dtype.is_inexact:
        raise InvalidArgumentError(
            f"a window over {len(size)} axes takes floats of shape (batch, *{len(size)} axes, channels), "
            f"not {x.dtype.name} of shape {x.shape}."
        )
    steps = _per_axis(strides, len(size), "strides")
    apart = _per_axis(1 if dilations is None else dilations, len(size), "dilations")
    return size, steps, apart, _paddings(padding, x.shape[1:-1], size, steps, apart)


def _convolved(x: Any, w: Any, size: Sizes, strides: Sizes, dilations: Sizes, pairs: Padding) -> Any:
    channels, inner, outer = x.shape[-1], w.shape[-2], w.shape[-1]
    if not inner or channels is None or channels % inner or outer % (channels // inner):
        raise InvalidArgumentError(
            f"filters of shape {w.shape} do not fit {channels} channels: their last but one size divides "
            "the channels, into groups that divide the outputs."
        )
    seen = windows(_padded(x, pairs, 0), size, strides, dilations)
    result = [-1 if d is None else d for d in (*seen.shape[: len(size) + 1], outer)]
    count, groups = math.prod(size), channels // inner
    if groups == 1:
        return reshape(matmul(reshape(seen, [-1, count * inner]), reshape(w, [count * inner, outer])), result)
    rows = transpose(reshape(seen, [-1, count, groups, inner]), (2, 0, 1, 3))
    rows = reshape(rows, [groups, -1, count * inner])
    columns = reshape(
        transpose(reshape(w, [count, inner, groups, -1]), (2, 0, 1, 3)), [groups, count * inner, -1]
    )
    return reshape(transpose(matmul(rows, columns), (1, 0, 2)), result)


def conv1d(
    input: Any,
    filters: Any,
    stride: Any = 1,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """:func:`convolution` of ``(batch, length, channels)`` with filters ``(window, channels, outputs)``."""
    return convolution(input, filters, stride, padding, _named(data_format, "NWC", "NCW"), dilations)


def conv2d(
    input: Any,
    filters: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """:func:`convolution` of ``(batch, height, width, channels)`` with filters ``(h, w, channels, outputs)``.

    >>> import dualflow as df
    >>> df.nn.conv2d(df.ones([1, 8, 8, 3]), df.ones([3, 3, 3, 5]), strides=2, padding="SAME").shape
    (1, 4, 4, 5)
    """
    return convolution(input, filters, strides, padding, _named(data_format, "NHWC", "NCHW"), dilations)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """Each channel's own convolution: ``filter`` is of shape ``(h, w, channels, multiplier)``."""
    filter = convert_to_tensor(filter)
    height, width, channels, multiplier = filter.shape
    grouped = reshape(filter, [height, width, 1, channels * multiplier])
    return convolution(input, grouped, strides, padding, _named(data_format, "NHWC", "NCHW"), dilations)


def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The gradient of :func:`conv2d` with respect to its input, as a layer: ``strides`` spread the input out.

    Args:
        input: floats of shape ``(batch, height, width, channels)``.
        filters: of shape ``(h, w, outputs, channels)``.
        output_shape: ``(batch, height, width, outputs)``, which :func:`conv2d` would turn into the input's.
        strides: as of that convolution.
        padding: as of that convolution.
        data_format: "NHWC" only.
        dilations: as of that convolution.
        name: ignored; as in TensorFlow.
    """
    x, w = MATMUL.prepare((input, filters), dispatch.current())
    if data_format not in (None, "NHWC") or len(w.shape) != 4:
        raise InvalidArgumentError(
            "conv2d_transpose takes the NHWC format and filters (h, w, outputs, channels)."
        )
    target = static_shape(output_shape)
    size = tuple(w.shape[:2])
    steps, apart = (
        _per_axis(strides, 2, "strides"),
        _per_axis(1 if dilations is None else dilations, 2, "dilations"),
    )
    pairs = _paddings(padding, target[1:-1], size, steps, apart)
    wide = [d + a + b for d, (a, b) in zip(target[1:-1], pairs, strict=True)]
    counts = tuple(window_count(*axis) for axis in zip(wide, size, steps, apart, strict=True))
    if len(target) != 4 or tuple(x.shape) != (target[0], *counts, w.shape[-1]) or target[-1] != w.shape[-2]:
        raise InvalidArgumentError(
            f"conv2d of {target} with {w.shape} does not give the input's shape {x.shape}."
        )
    columns = matmul(reshape(x, [-1, x.shape[-1]]), reshape(w, [-1, w.shape[-1]]), transpose_b=True)
    spread = reshape(columns, [target[0], *counts, *size, target[-1]])
    whole = sum_windows(spread, size, steps, apart, (target[0], *wide, target[-1]))
    return whole[(slice(None), *[slice(a, a + d) for d, (a, _) in zip(target[1:-1], pairs, strict=True)])]


def _named(data_format: str | None, last: str, first: str) -> str | None:
    if data_format not in (None, last, first):
        raise InvalidArgumentError(f"data_format is {last!r} or {first!r}, not {data_format!r}.")
    return data_format


# Pooling


def _pooled(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, mean: bool) -> Any:
    x = convert_to_tensor(input)
    axes = len(x.shape) - 2
    first = _channels_first(data_format, axes + 2)
    x = _channels_last(x) if first else x
    window = _per_axis(ksize, axes, "ksize")
    size, steps, apart, pairs = _options(x, window, ksize if strides is None else strides, padding, 1)
    inner = tuple(range(1 + axes, 1 + 2 * axes))
    seen = windows(_padded(x, pairs, 0 if mean else -math.inf), size, steps, apart)
    found = _mean(seen, x, size, steps, pairs, inner) if mean else reduce_max(seen, inner)
    return _channels_second(found) if first else found


def _mean(seen: Any, x: Any, size: Sizes, steps: Sizes, pairs: Padding, inner: tuple[int, ...]) -> Any:
    """The mean over windows, of the elements that are not padding."""
    total = reduce_sum(seen, inner)
    if not any(a or b for a, b in pairs):
        return total / math.prod(size)
    one = ones([1, *x.shape[1:-1], 1], x.dtype)
    return total / reduce_sum(windows(_padded(one, pairs, 0), size, steps, (1,) * len(size)), inner)


def max_pool(
    input: Any,
    ksize: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """The maximum of each window of ``(batch, *axes, channels)``; equal maxima share the gradient.

    Args:
        input: floats.
        ksize: the window's size, for all axes or each.
        strides: the distance between windows; the window's size by default.
        padding: "VALID", "SAME" or (before, after) pairs.
        data_format: "N...C" by default; "NC..." if the channels come second.
        name: ignored; as in TensorFlow.

    >>> import dualflow as df
    >>> df.nn.max_pool2d(df.reshape(df.range(16.0), [1, 4, 4, 1]), 2, 2, "VALID").numpy().ravel()
    array([ 5.,  7., 13., 15.], dtype=float32)
    """
    return _pooled(input, ksize, strides, padding, data_format, mean=False)


def avg_pool(
    input: Any,
    ksize: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """The mean of each window, padding not counted; see :func:`max_pool`."""
    return _pooled(input, ksize, strides, padding, data_format, mean=True)
