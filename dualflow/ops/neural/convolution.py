"""Convolutions: a matrix product over sliding windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.contraction import MATMUL, matmul
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.neural.window_options import (
    Padding,
    channels_first,
    channels_last,
    channels_second,
    options,
    padded,
    paddings,
    per_axis,
)
from dualflow.ops.neural.windows import Sizes, sum_windows, window_count, windows
from dualflow.ops.static import static_shape

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def convolution(
    input: Any,
    filters: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The convolution (cross-correlation) of ``input`` with ``filters``, over one axis or more.

    Args:
        input: floats of shape ``(batch, *axes, channels)``.
        filters: of shape ``(*window, channels / groups, outputs)``.
        strides: the distance between windows, for all axes or each; 1 by default.
        padding: "VALID" (windows lie inside), "SAME" (zeros around, one window a stride) or pairs of
            how many zeros go before and after each axis.
        data_format: "N...C" by default; "NC..." if the channels come second.
        dilations: the distance between the elements of a window; 1 by default.
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
    first = channels_first(data_format, axes + 2)
    x = channels_last(x) if first else x
    found = _convolved(x, w, *options(x, w.shape[:-2], 1 if strides is None else strides, padding, dilations))
    return channels_second(found) if first else found


def _convolved(x: Any, w: Any, size: Sizes, strides: Sizes, dilations: Sizes, pairs: Padding) -> Any:
    channels, inner, outer = x.shape[-1], w.shape[-2], w.shape[-1]
    if not inner or channels is None or channels % inner or outer % (channels // inner):
        raise InvalidArgumentError(
            f"filters of shape {w.shape} do not fit {channels} channels: their last but one size divides "
            "the channels, into groups that divide the outputs."
        )
    seen = windows(padded(x, pairs, 0), size, strides, dilations)
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
) -> Tensor:
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
) -> Tensor:
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
) -> Tensor:
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
) -> Tensor:
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
        per_axis(strides, 2, "strides"),
        per_axis(1 if dilations is None else dilations, 2, "dilations"),
    )
    pairs = paddings(padding, target[1:-1], size, steps, apart)
    wide = [d + a + b for d, (a, b) in zip(target[1:-1], pairs, strict=True)]
    counts = tuple(window_count(*axis) for axis in zip(wide, size, steps, apart, strict=True))
    if len(target) != 4 or tuple(x.shape) != (target[0], *counts, w.shape[-1]) or target[-1] != w.shape[-2]:
        raise InvalidArgumentError(
            f"conv2d of {target} with {w.shape} does not give the input's shape {x.shape}: choose another "
            "output_shape."
        )
    columns = matmul(reshape(x, [-1, x.shape[-1]]), reshape(w, [-1, w.shape[-1]]), transpose_b=True)
    spread = reshape(columns, [target[0], *counts, *size, target[-1]])
    whole = sum_windows(spread, size, steps, apart, (target[0], *wide, target[-1]))
    return whole[(slice(None), *[slice(a, a + d) for d, (a, _) in zip(target[1:-1], pairs, strict=True)])]


def _named(data_format: str | None, last: str, first: str) -> str | None:
    if data_format not in (None, last, first):
        raise InvalidArgumentError(f"data_format is {last!r} or {first!r}, not {data_format!r}.")
    return data_format
