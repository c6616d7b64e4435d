"""The layout of windows on a tensor, from the sizes, strides, padding and axis order that users pass."""

from __future__ import annotations

from typing import Any

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.neural.windows import Geometry, Padding, Sizes
from dualflow.ops.static import ints, require_static_sizes, static_value
from dualflow.sizes.abstract_size import AbstractSize


def per_axis(value: Any, axes: int, what: str, channels_first: bool = False) -> Sizes:
    """An option as one int for each spatial axis; given as one int, or one for each spatial or tensor axis.

    With ``channels_first`` the channels are the second of these.
    """
    sizes = ints(value, what)
    if len(sizes) == 1:
        sizes = sizes * axes
    if len(sizes) == axes + 2:
        channels = sizes[1] if channels_first else sizes[-1]
        if sizes[0] != 1 or channels != 1:
            raise InvalidArgumentError(f"{what} {value} must be 1 for the batch and the channels.")
        sizes = sizes[2:] if channels_first else sizes[1:-1]
    if len(sizes) != axes or min(sizes, default=1) < 1:
        raise InvalidArgumentError(
            f"{what} is a positive integer, or one for each of {axes} axes, not {value!r}."
        )
    return sizes


def paddings(
    padding: Any, spatial: Any, size: Sizes, strides: Sizes, dilations: Sizes, channels_first: bool = False
) -> Padding:
    """The number of elements before and after each spatial axis."""
    if not isinstance(padding, str):
        return _explicit(padding, len(size), channels_first)
    kind = padding.upper()
    if kind == "VALID":
        return ((0, 0),) * len(size)
    if kind != "SAME":
        raise InvalidArgumentError(f"padding is 'SAME', 'VALID' or (before, after) pairs, not {padding!r}.")
    return tuple(_same_padding(*axis) for axis in zip(spatial, size, strides, dilations, strict=True))


def _explicit(padding: Any, axes: int, channels_first: bool) -> Padding:
    table = static_value(padding)
    rows = None if table is None or table.dtype.kind not in "iu" else table.shape
    if table is None or rows not in ((axes, 2), (axes + 2, 2)) or table.min(initial=0) < 0:
        raise InvalidArgumentError(
            "padding is 'SAME', 'VALID' or (before, after) pairs of 0 or more, one for each of "
            f"{axes} axes or of all {axes + 2}, not {padding!r}."
        )
    pairs = tuple((int(a), int(b)) for a, b in table)
    if len(pairs) == axes:
        return pairs
    if channels_first:
        batch_and_channels, spatial = pairs[:2], pairs[2:]
    else:
        batch_and_channels, spatial = (pairs[0], pairs[-1]), pairs[1:-1]
    if any(a or b for a, b in batch_and_channels):
        raise InvalidArgumentError(f"padding {padding!r} must be 0 for the batch and the channels.")
    return spatial


def _same_padding(length: int | None, window: int, stride: int, dilation: int) -> tuple[int, int]:
    """The SAME padding of an axis with ceil(length / stride) windows; an odd element goes after."""
    reach = (window - 1) * dilation + 1
    if length is None:
        if stride != 1:
            require_static_sizes([length], "padding 'SAME' with strides")
        total = reach - 1
    else:
        total = max(0, (-(-length // stride) - 1) * stride + reach - length)
    return total // 2, total - total // 2


def fix_window_sizes(filters: Any, axes: int) -> None:
    """Add guards for the sizes of windows in a trace of automatic sizes: its program has them as numbers.

    The first ``axes`` axes of ``filters`` are those of a window. Programs with filters of static size are
    several times faster, and few functions get filters of many sizes.
    """
    for size in filters.get_shape()[:axes]:
        is_automatic = isinstance(size, AbstractSize)
        if is_automatic:
            size.fix()


def has_channels_first(data_format: str | None, rank: int) -> bool:
    """Whether a data format names the channels before the spatial axes."""
    if data_format is None or (data_format.startswith("N") and data_format.endswith("C")):
        return False
    if data_format.startswith("NC") and len(data_format) == rank:
        return True
    raise InvalidArgumentError(f"data_format is 'N...C' or 'NC...' with {rank} letters, not {data_format!r}.")


def check_data_format(data_format: str | None, last: str, first: str) -> str | None:
    """``data_format``, checked to be ``last`` or ``first``, where the channels are, or None."""
    if data_format not in (None, last, first):
        raise InvalidArgumentError(f"data_format is {last!r} or {first!r}, not {data_format!r}.")
    return data_format


def channels_last(x: Any) -> Any:
    """``x`` with its channels, the second axis, last."""
    rank = len(x.shape)
    return transpose(x, (0, *range(2, rank), 1))


def channels_second(x: Any) -> Any:
    """``x`` with its channels, the last axis, second."""
    rank = len(x.shape)
    return transpose(x, (0, rank - 1, *range(1, rank - 1)))


def one_batch(x: Any, axes: int) -> tuple[Any, Any]:
    """``x`` with the axes before the last ``axes + 1`` merged, and their sizes (None for one axis)."""
    batch = x.shape[: len(x.shape) - axes - 1]
    if len(batch) == 1 or len(x.shape) < axes + 2:
        return x, None
    count = batch.num_elements()
    return reshape(x, [-1 if count is None else count, *x.shape[len(batch) :]]), batch


def batches(x: Any, batch: Any) -> Any:
    """Undo :func:`one_batch`."""
    return x if batch is None else reshape(x, [*[-1 if n is None else n for n in batch], *x.shape[1:]])


def geometry(
    shape: Any, window: Any, strides: Any, padding: Any, dilations: Any, channels_first: bool = False
) -> Geometry:
    """The layout of windows on a tensor whose channels are the last axis.

    Args:
        shape: the tensor's, ``(batch, *axes, channels)``.
        window: its sizes, one for each of the axes.
        strides: as users pass them.
        padding: as users pass it.
        dilations: as users pass them; None is 1.
        channels_first: whether the user's channels are the second axis, in options for every axis.

    Raises:
        InvalidArgumentError: options or a shape that do not fit.
    """
    size = require_static_sizes(window, "the window of a convolution or a pool")
    if len(shape) != len(size) + 2:
        raise InvalidArgumentError(
            f"a window over {len(size)} axes takes a tensor of shape (batch, *{len(size)} axes, channels), "
            f"not of shape {shape}."
        )
    steps = per_axis(strides, len(size), "strides", channels_first)
    rates = per_axis(1 if dilations is None else dilations, len(size), "dilations", channels_first)
    return Geometry(size, steps, rates, paddings(padding, shape[1:-1], size, steps, rates, channels_first))


def check_kind(x: Any, kinds: str, what: str) -> None:
    """Raise an error unless the dtype of ``x`` is of one of ``kinds``, in NumPy's letters."""
    if x.dtype.kind not in kinds:
        expected = "floats" if "i" not in kinds else "real numbers" if "c" not in kinds else "numbers"
        raise DTypeError(f"{what} takes {expected}, not {x.dtype.name}; convert the input with df.cast.")
