"""Pooling over windows of two sizes, drawn so that the result is smaller by any ratio.

Graham, "Fractional max-pooling", 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import minimum
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import less_equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.neural.window_options import check_kind
from dualflow.ops.neural.window_reductions import lowest
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.random_numbers.draws import Source
from dualflow.ops.random_numbers.streams import Stream, stream
from dualflow.ops.record import Effect, Op, register
from dualflow.ops.reduction import reduce_first_max
from dualflow.ops.selection import where
from dualflow.ops.static import static_int, static_value
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


class FractionalPool(NamedTuple):
    """The result of pooling, and the boundaries of the windows along rows and columns."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


def _sequence(size: int, count: int, pseudo: bool, generator: Source) -> Any:
    """The begins of windows of two neighbouring lengths that fill an axis."""
    short, longer = divmod(size, count)
    if not longer:
        return np.arange(count + 1, dtype=np.int64) * short
    if not pseudo:
        lengths = np.full(count, short, np.int64)
        lengths[:longer] += 1
        return np.concatenate([[0], np.cumsum(generator.philox.permutation(lengths))])
    alpha = size / count
    largest = min((short + 2) / alpha - 1, (size + 1 - short) / alpha - (count - 1))
    begins = np.ceil(alpha * (np.arange(1, count) + generator.philox.random() * largest)) - 1
    return np.concatenate([[0], begins, [size]]).astype(np.int64)


SEQUENCE: Final = register(
    Op(
        name="pooling_sequence",
        doc="""The starts of ``count`` windows of two neighbouring lengths on an axis, and the axis's end.""",
        infer=lambda size, count, pseudo, generator: TensorSpec.of(Shape([count + 1]), int64),
        kernel=_sequence,
        kind=Opaque("random numbers come from NumPy's generators"),
        effect=Effect.RANDOM,
    )
)


def _fractional_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool,
    overlapping: bool,
    seed: int,
    reduce: Callable[[Any, Any, int], Any],
) -> FractionalPool:
    x = convert_to_tensor(value)
    sizes = [size for size in x.shape[1:3] if size]
    if len(x.shape) != 4 or len(sizes) != 2:
        raise InvalidArgumentError(
            "fractional pooling takes (batch, height, width, channels), with known sizes, not shape "
            f"{x.shape}."
        )
    ratios = _ratios(pooling_ratio)
    number = static_int(seed, "seed")
    generator = stream(None) if not number else Stream([number])
    sequences = []
    for size, ratio in zip(sizes, ratios, strict=True):
        attrs = {
            "size": size,
            "count": max(1, math.floor(size / ratio)),
            "pseudo": bool(pseudo_random),
            "generator": generator,
        }
        sequences.append(dispatch.current().apply(SEQUENCE, (), attrs))
    for axis in (2, 1):  # of equal elements the first row's comes first, and in it the first column's
        x = _along(x, axis, sequences[axis - 1], overlapping, reduce)
    return FractionalPool(x, *sequences)


def _ratios(pooling_ratio: Any) -> tuple[float, float]:
    values = static_value(pooling_ratio)
    flat = [] if values is None else [float(ratio) for ratio in values.reshape(-1)]
    if len(flat) == 1:
        flat *= 2
    if len(flat) == 4 and flat[0] == flat[3] == 1.0:
        flat = flat[1:3]
    if len(flat) != 2 or min(flat) < 1.0:
        raise InvalidArgumentError(
            "pooling_ratio is a number of 1 or more for both axes, for each, or 1 around these for the "
            "batch and "
            f"the channels, not {pooling_ratio!r}."
        )
    return flat[0], flat[1]


def _along(
    x: Any, axis: int, sequence: Any, overlapping: bool, reduce: Callable[[Any, Any, int], Any]
) -> Any:
    """``x`` pooled along one axis: ``reduce`` of each window of ``sequence``."""
    size, count = x.shape[axis], sequence.shape[0] - 1
    longest = -(-size // count) + bool(overlapping)
    indices = expand_dims(sequence[:-1], 1) + np.arange(longest)
    last = minimum(expand_dims(sequence[1:], 1) - (0 if overlapping else 1), size - 1)
    patches = gather(x, minimum(indices, size - 1), axis=axis)
    inside = reshape(less_equal(indices, last), [count, longest, *[1] * (3 - axis)])
    return reduce(patches, inside, axis + 1)


def fractional_max_pool(
    value: TensorLike,
    pooling_ratio: TensorLike,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalPool:
    """The maximum of windows of random sizes, such that the result is ``pooling_ratio`` times smaller.

    Graham, "Fractional Max-Pooling" (2014). The gradient is that of the first maximum of each window.

    Args:
        value: real numbers of shape ``(batch, height, width, channels)``.
        pooling_ratio: 1 or more: one number, one for each spatial axis, or ``[1, rows, columns, 1]``.
        pseudo_random: whether the window sizes follow a line with a random offset, instead of a random order.
        overlapping: whether neighbouring windows share an element.
        seed: an integer for the same windows at each call; 0 for new ones.

    Returns:
        A named tuple: ``output`` of shape ``(batch, rows, columns, channels)`` with the dtype of ``value``;
        ``row_pooling_sequence`` and ``col_pooling_sequence``, int64: the begins of the windows, and the end
        of the last one.

    Raises:
        InvalidArgumentError: a ratio is below 1, or the shape doesn't fit.
        DTypeError: ``value`` doesn't hold real numbers.

    >>> import dualflow as df
    >>> x = df.reshape(df.range(36.0), [1, 6, 6, 1])
    >>> y, rows, columns = df.nn.fractional_max_pool(x, 1.5)
    >>> y.shape, int(rows[-1]), int(columns[0])
    ((1, 4, 4, 1), 6, 0)
    """
    check_kind(convert_to_tensor(value), "fiu", "fractional_max_pool")

    def largest(patches: Any, inside: Any, axis: int) -> Any:
        return reduce_first_max(where(inside, patches, lowest(patches)), (axis,))

    return _fractional_pool(value, pooling_ratio, pseudo_random, overlapping, seed, largest)


def fractional_avg_pool(
    value: TensorLike,
    pooling_ratio: TensorLike,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalPool:
    """The mean of windows of random sizes, such that the result is ``pooling_ratio`` times smaller.

    Args:
        value: floats of shape ``(batch, height, width, channels)``.
        pooling_ratio: 1 or more: one number, one for each spatial axis, or ``[1, rows, columns, 1]``.
        pseudo_random: whether the window sizes follow a line with a random offset, instead of a random order.
        overlapping: whether neighbouring windows share an element.
        seed: an integer for the same windows at each call; 0 for new ones.

    Returns:
        A named tuple as of :func:`fractional_max_pool`.

    Raises:
        InvalidArgumentError: a ratio is below 1, or the shape doesn't fit.
        DTypeError: ``value`` doesn't hold floats.

    >>> import dualflow as df
    >>> df.nn.fractional_avg_pool(df.ones([1, 6, 6, 1]), 1.5).output.shape
    (1, 4, 4, 1)
    """
    check_kind(convert_to_tensor(value), "f", "fractional_avg_pool")

    def mean(patches: Any, inside: Any, axis: int) -> Any:
        total = reduce_sum(where(inside, patches, 0), (axis,))
        number = reduce_sum(cast(inside, patches.dtype), 1)
        return total / number

    return _fractional_pool(value, pooling_ratio, pseudo_random, overlapping, seed, mean)
