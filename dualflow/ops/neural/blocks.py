"""Moves blocks of elements to the channels and back, and applies functions to dilated windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Dim
from dualflow.core.tracebacks import entry
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.neural.window_options import check_data_format, has_channels_first
from dualflow.ops.rearranging.blocks import batch_to_space, space_to_batch
from dualflow.ops.static import ints, require_static_sizes, static_int
from dualflow.ops.tensor_sizes import reshape_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _images(input: Any, block_size: Any, data_format: str, what: str) -> tuple[Any, int, bool]:
    x = convert_to_tensor(input)
    channels_first = check_data_format(data_format, "NHWC", "NCHW") == "NCHW"
    size = static_int(block_size, "block_size")
    if len(x.shape) != 4 or size < 2:
        raise InvalidArgumentError(
            f"{what} takes images, of rank 4, and a block_size of 2 or more, not shape {x.shape} and {size}."
        )
    require_static_sizes(x.shape, what, range(1, 4))
    return x, size, channels_first


def _reshaped(x: Any, shape: list[Dim]) -> Any:
    return reshape(x, reshape_sizes(shape, x))


def space_to_depth(
    input: TensorLike, block_size: IntsLike, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Blocks of ``block_size`` rows and columns moved to the channels.

    Args:
        input: a tensor of shape ``(batch, height, width, channels)`` and any dtype; ``block_size`` divides
            height and width.
        block_size: an integer of 2 or more.
        data_format: "NHWC", or "NCHW" if the channels are the second axis.

    Returns:
        A tensor of shape ``(batch, height / block_size, width / block_size, channels * block_size ** 2)``
        with the dtype of ``input``.

    Raises:
        InvalidArgumentError: ``block_size`` doesn't divide the sizes.

    >>> import dualflow as df
    >>> df.nn.space_to_depth([[[[1], [2]], [[3], [4]]]], 2).numpy().tolist()
    [[[[1, 2, 3, 4]]]]
    """
    x, size, channels_first = _images(input, block_size, data_format, "space_to_depth")
    batch, (rows, columns) = x.shape[0], x.shape[2:] if channels_first else x.shape[1:3]
    if rows % size or columns % size:
        raise InvalidArgumentError(
            f"block_size {size} does not divide the {rows} rows and {columns} columns of shape "
            f"{x.shape}; df.pad them."
        )
    high, wide, channels = rows // size, columns // size, x.shape[1 if channels_first else 3]
    if channels_first:
        x = transpose(_reshaped(x, [batch, channels, high, size, wide, size]), (0, 3, 5, 1, 2, 4))
        return _reshaped(x, [batch, size * size * channels, high, wide])
    x = transpose(_reshaped(x, [batch, high, size, wide, size, channels]), (0, 1, 3, 2, 4, 5))
    return _reshaped(x, [batch, high, wide, size * size * channels])


def depth_to_space(
    input: TensorLike, block_size: IntsLike, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """The channels of each element moved to a block of elements: the inverse of :func:`space_to_depth`.

    Args:
        input: a tensor of shape ``(batch, height, width, channels)`` and any dtype; ``block_size ** 2``
            divides the channels.
        block_size: an integer of 2 or more.
        data_format: "NHWC", or "NCHW" if the channels are the second axis.

    Returns:
        A tensor of shape ``(batch, height * block_size, width * block_size, channels / block_size ** 2)``
        with the dtype of ``input``.

    Raises:
        InvalidArgumentError: ``block_size ** 2`` doesn't divide the channels.

    >>> import dualflow as df
    >>> df.nn.depth_to_space([[[[1, 2, 3, 4]]]], 2).numpy().tolist()
    [[[[1], [2]], [[3], [4]]]]
    """
    x, size, channels_first = _images(input, block_size, data_format, "depth_to_space")
    batch, (rows, columns) = x.shape[0], x.shape[2:] if channels_first else x.shape[1:3]
    channels = x.shape[1 if channels_first else 3]
    if channels % size**2:
        raise InvalidArgumentError(
            f"the square of block_size {size} does not divide the {channels} channels of shape {x.shape}."
        )
    left = channels // size**2
    if channels_first:
        x = transpose(_reshaped(x, [batch, size, size, left, rows, columns]), (0, 3, 4, 1, 5, 2))
        return _reshaped(x, [batch, left, rows * size, columns * size])
    x = transpose(_reshaped(x, [batch, rows, columns, size, size, left]), (0, 1, 3, 2, 4, 5))
    return _reshaped(x, [batch, rows * size, columns * size, left])


@entry
def with_space_to_batch(
    input: TensorLike,
    dilation_rate: IntsLike,
    padding: str,
    op: Callable[[Any, int, str], Any],
    filter_shape: ShapeLike | None = None,
    spatial_dims: IntsLike | None = None,
    data_format: str | None = None,
) -> Any:
    """``op`` applied to the elements that are ``dilation_rate`` apart; its results are interleaved.

    So a function of windows without dilation serves windows with dilation.

    Args:
        input: a tensor of shape ``(batch, *axes, channels)``.
        dilation_rate: the distance between the elements, one for each of the axes.
        padding: "VALID", or "SAME" for as many windows as elements.
        op: a function ``op(tensor, number of axes, padding)`` of windows without dilation.
        filter_shape: the sizes of a window first, needed for "SAME".
        spatial_dims: the positions of the axes; None for those from the second on.
        data_format: "N...C" or None, or "NC..." for axes from the third on.

    Returns:
        The result of ``op`` for windows with dilation.

    Raises:
        InvalidArgumentError: an option doesn't fit, or a size is unknown in a trace.

    >>> import dualflow as df
    >>> f = lambda x, axes, padding: df.nn.max_pool1d(x, 2, 1, padding)
    >>> df.nn.with_space_to_batch([[[1.0], [5.0], [2.0], [3.0]]], [2], "VALID", f).numpy().ravel()
    array([2., 5.], dtype=float32)
    """
    x = convert_to_tensor(input)
    rates = ints(dilation_rate, "dilation_rate")
    axes = len(rates)
    begin = 2 if has_channels_first(data_format, axes + 2) else 1
    where = tuple(range(begin, begin + axes)) if spatial_dims is None else ints(spatial_dims, "spatial_dims")
    in_order = list(where) == sorted(set(where)) and len(where) == axes
    if not axes or not in_order or min(where) < 1 or min(rates) < 1:
        raise InvalidArgumentError(
            f"dilation_rate {rates} is a positive number for each of spatial_dims {where}, in order."
        )
    if padding not in ("SAME", "VALID") or (padding == "SAME" and filter_shape is None):
        raise InvalidArgumentError(
            f"padding is 'VALID', or 'SAME' with a filter_shape, not {padding!r} with {filter_shape}."
        )
    if max(rates) == 1:
        return op(x, axes, padding)
    pairs = [(0, 0)] * where[-1]
    block = [1] * where[-1]
    crops = [(0, 0)] * where[-1]
    window = None if filter_shape is None else ints(filter_shape, "filter_shape")
    for i, (axis, rate) in enumerate(zip(where, rates, strict=True)):
        (size,) = require_static_sizes(x.shape, "with_space_to_batch", [axis])
        extra = 0 if padding == "VALID" or window is None else (window[i] - 1) * rate
        before, after = extra // 2, extra - extra // 2
        fill = -(size + before + after) % rate
        pairs[axis - 1], block[axis - 1], crops[axis - 1] = (before, after + fill), rate, (0, fill)
    return batch_to_space(op(space_to_batch(x, block, pairs), axes, "VALID"), block, crops)
