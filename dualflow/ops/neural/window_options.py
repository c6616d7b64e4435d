"""How windows lie on a tensor: sizes, strides, padding and the order of axes, from a user's options."""

from __future__ import annotations

from typing import Any

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import transpose
from dualflow.ops.neural.windows import Sizes
from dualflow.ops.repetition import PAD
from dualflow.ops.static import ints

Padding = tuple[tuple[int, int], ...]


def per_axis(value: Any, axes: int, what: str) -> Sizes:
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


def paddings(padding: Any, spatial: Any, size: Sizes, strides: Sizes, dilations: Sizes) -> Padding:
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


def padded(x: Any, pairs: Padding, value: float) -> Any:
    """``x`` with ``value`` before and after each spatial axis."""
    if not any(a or b for a, b in pairs):
        return x
    return dispatch.current().apply(PAD, (x,), {"paddings": ((0, 0), *pairs, (0, 0)), "value": value})


def channels_first(data_format: str | None, rank: int) -> bool:
    """Whether a data format names the channels before the spatial axes."""
    if data_format is None or (data_format.startswith("N") and data_format.endswith("C")):
        return False
    if data_format.startswith("NC") and len(data_format) == rank:
        return True
    raise InvalidArgumentError(f"data_format is 'N...C' or 'NC...' with {rank} letters, not {data_format!r}.")


def channels_last(x: Any) -> Any:
    """``x`` with its channels, the second axis, last."""
    rank = len(x.shape)
    return transpose(x, (0, *range(2, rank), 1))


def channels_second(x: Any) -> Any:
    """``x`` with its channels, the last axis, second."""
    rank = len(x.shape)
    return transpose(x, (0, rank - 1, *range(1, rank - 1)))


def options(
    x: Any, window: Any, strides: Any, padding: Any, dilations: Any, *, kinds: str = "fc"
) -> tuple[Sizes, Sizes, Sizes, Padding]:
    """Window, strides, dilations and paddings, one entry for each spatial axis; ``x`` is of ``kinds``."""
    size = tuple(window)
    if len(x.shape) != len(size) + 2 or x.dtype.kind not in kinds:
        wanted = "floats or integers" if "i" in kinds else "floats"
        raise InvalidArgumentError(
            f"a window over {len(size)} axes takes {wanted} of shape (batch, *{len(size)} axes, channels), "
            f"not {x.dtype.name} of shape {x.shape}."
        )
    steps = per_axis(strides, len(size), "strides")
    apart = per_axis(1 if dilations is None else dilations, len(size), "dilations")
    return size, steps, apart, paddings(padding, x.shape[1:-1], size, steps, apart)
