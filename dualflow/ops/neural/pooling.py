"""Pooling: a reduction over sliding windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.creation import convert_to_tensor, ones
from dualflow.ops.neural.window_options import (
    Padding,
    channels_first,
    channels_last,
    channels_second,
    options,
    padded,
    per_axis,
)
from dualflow.ops.neural.windows import Sizes, windows
from dualflow.ops.reduction import reduce_first_max

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def _pooled(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, mean: bool) -> Any:
    x = convert_to_tensor(input)
    axes = len(x.shape) - 2
    if axes < 1:
        raise InvalidArgumentError(
            f"pooling takes (batch, axes, channels), not a tensor of shape {x.shape}; df.reshape it first."
        )
    first = channels_first(data_format, axes + 2)
    x = channels_last(x) if first else x
    window = per_axis(ksize, axes, "ksize")
    kinds = "fc" if mean else "fiu"
    size, steps, apart, pairs = options(
        x, window, ksize if strides is None else strides, padding, 1, kinds=kinds
    )
    inner = tuple(range(1 + axes, 1 + 2 * axes))
    lowest = -math.inf if x.dtype.is_floating else x.dtype.min
    seen = windows(padded(x, pairs, 0 if mean else lowest), size, steps, apart)
    found = _mean(seen, x, size, steps, pairs, inner) if mean else reduce_first_max(seen, inner)
    return channels_second(found) if first else found


def _mean(seen: Any, x: Any, size: Sizes, steps: Sizes, pairs: Padding, inner: tuple[int, ...]) -> Any:
    """The mean over windows, of the elements that are not padding."""
    total = reduce_sum(seen, inner)
    if not any(a or b for a, b in pairs):
        return total / math.prod(size)
    one = ones([1, *x.shape[1:-1], 1], x.dtype)
    return total / reduce_sum(windows(padded(one, pairs, 0), size, steps, (1,) * len(size)), inner)


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
        input: floats or integers.
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
) -> Tensor:
    """The mean of each window of floats, padding not counted; see :func:`max_pool`."""
    return _pooled(input, ksize, strides, padding, data_format, mean=True)
