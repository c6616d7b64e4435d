"""space_to_batch and batch_to_space: blocks of spatial axes moved to the batch axis and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.repetition import pad
from dualflow.ops.static import require_static_sizes, static_value

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def space_to_batch(
    input: TensorLike, block_shape: IntsLike, paddings: TensorLike, name: str | None = None
) -> Tensor:
    """The axes after the first divided into blocks, whose positions are moved to the batch.

    Args:
        input: of shape ``[batch, *space, ...]``.
        block_shape: the size of a block along each of the first axes of space.
        paddings: for each of these axes how many zeros to put before and after it first.

    Returns:
        Of shape ``[batch * block elements, *padded space / block, ...]``.

    Raises:
        InvalidArgumentError: blocks that do not divide the padded sizes, or that do not fit the axes.
        DTypeError: blocks or paddings are not integers that are known while tracing.

    >>> import dualflow as df
    >>> df.space_to_batch([[0, 1, 2, 3]], [2], [[0, 0]]).numpy().tolist()
    [[0, 2], [1, 3]]
    """
    x = convert_to_tensor(input)
    blocks = _blocks(block_shape, x)
    around = _pairs(paddings, blocks, "paddings")
    unpadded = [[0, 0]] * (len(x.shape) - 1 - len(blocks))
    if any(map(any, around)):
        x = pad(x, [[0, 0], *around, *unpadded])
    batch, space, last = _parts(x, blocks)
    for size, block in zip(space, blocks, strict=True):
        if size % block:
            raise InvalidArgumentError(
                f"blocks of {block} do not divide {size} elements (with paddings) of shape {x.shape}; "
                "change the paddings."
            )
    cut = [part for size, block in zip(space, blocks, strict=True) for part in (size // block, block)]
    count, trailing = len(blocks), range(1 + 2 * len(blocks), 1 + 2 * len(blocks) + len(last))
    order = [*range(2, 2 + 2 * count, 2), 0, *range(1, 1 + 2 * count, 2), *trailing]
    blocks_first = transpose(reshape(x, [batch, *cut, *last]), order)
    return reshape(blocks_first, [batch * math.prod(blocks), *cut[::2], *last])


def batch_to_space(
    input: TensorLike, block_shape: IntsLike, crops: TensorLike, name: str | None = None
) -> Tensor:
    """Batch elements rearranged to blocks of the spatial axes: the inverse of :func:`space_to_batch`.

    Args:
        input: of shape ``[batch * block elements, *space, ...]``.
        block_shape: the size of a block along each of the first axes of space; one number stands for two
            equal ones.
        crops: for each of these axes how many elements to remove at its start and end, at last.

    Returns:
        Of shape ``[batch, *space * block - crops, ...]``.

    Raises:
        InvalidArgumentError: a batch that the blocks do not divide, or crops that leave nothing.
        DTypeError: blocks or crops are not integers that are known while tracing.

    >>> import dualflow as df
    >>> df.batch_to_space([[0, 2], [1, 3]], [2], [[0, 0]]).numpy().tolist()
    [[0, 1, 2, 3]]
    """
    x = convert_to_tensor(input)
    blocks = _blocks([block_shape] * 2 if type(block_shape) is int else block_shape, x)
    around = _pairs(crops, blocks, "crops")
    batch, space, last = _parts(x, blocks)
    if batch % math.prod(blocks):
        raise InvalidArgumentError(
            f"a batch of {batch} is not made of blocks of {math.prod(blocks)} elements each."
        )
    count = len(blocks)
    split = reshape(x, [*blocks, batch // math.prod(blocks), *space, *last])
    order = [count, *[axis for i in range(count) for axis in (count + 1 + i, i)]]
    full_sizes = [size * block for size, block in zip(space, blocks, strict=True)]
    order += range(2 * count + 1, 2 * count + 1 + len(last))
    merged = reshape(transpose(split, order), [batch // math.prod(blocks), *full_sizes, *last])
    for size, (before, after) in zip(full_sizes, around, strict=True):
        if before + after > size:
            raise InvalidArgumentError(f"crops of {before} and {after} are more than the {size} elements.")
    inside = [slice(before, size - after) for size, (before, after) in zip(full_sizes, around, strict=True)]
    return merged[(slice(None), *inside)]


def required_space_to_batch_paddings(
    input_shape: ShapeLike,
    block_shape: IntsLike,
    base_paddings: TensorLike | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The paddings for which the block sizes divide the axes, and the crops for :func:`batch_to_space`.

    Args:
        input_shape: the sizes of the axes of space.
        block_shape: the size of a block along each.
        base_paddings: the least paddings before and after each axis; None for 0.

    Returns:
        The ``paddings`` for :func:`space_to_batch` and the ``crops`` for :func:`batch_to_space`.

    Raises:
        DTypeError: an argument is not of integers, or is symbolic.
        InvalidArgumentError: a block that is not 1 or more, or lists that do not fit each other.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.required_space_to_batch_paddings([5, 7], [2, 3])]
    [[[0, 1], [0, 2]], [[0, 1], [0, 2]]]
    """
    sizes = _integers(input_shape, "input_shape")
    blocks = _integers(block_shape, "block_shape")
    if sizes.shape != blocks.shape or sizes.ndim != 1 or (blocks < 1).any():
        raise InvalidArgumentError(
            f"each size of input_shape {sizes.tolist()} needs a block of 1 or more, not {blocks.tolist()}."
        )
    base = np.zeros((len(sizes), 2), np.int64)
    if base_paddings is not None:
        base = np.array(_pairs(base_paddings, blocks.tolist(), "base_paddings")).reshape(-1, 2)
    fill = -(sizes + base.sum(1)) % blocks
    paddings = np.stack([base[:, 0], base[:, 1] + fill], 1).astype(np.int32)
    crops = np.stack([np.zeros_like(fill), fill], 1).astype(np.int32)
    return convert_to_tensor(paddings), convert_to_tensor(crops)


def _integers(x: Any, what: str) -> np.ndarray[Any, Any]:
    value = static_value(x)
    if value is None or value.dtype.kind not in "iu":
        raise DTypeError(f"{what} is made of integers that are known while tracing, not {x!r}.")
    return value.astype(np.int64)


def _blocks(block_shape: Any, x: Any) -> list[int]:
    blocks: list[int] = _integers(block_shape, "block_shape").reshape(-1).tolist()
    if len(x.shape) <= len(blocks) or not blocks or min(blocks) < 1:
        raise InvalidArgumentError(
            f"blocks {blocks} are sizes of 1 or more, of axes after the first one of shape {x.shape}."
        )
    return blocks


def _pairs(x: Any, blocks: Sequence[int], what: str) -> list[list[int]]:
    value = _integers(x, what)
    if value.shape != (len(blocks), 2) or (value < 0).any():
        raise InvalidArgumentError(
            f"{what} are a pair of 0 or more (before, after) for each of {len(blocks)} axes, not "
            f"{value.tolist()}."
        )
    pairs: list[list[int]] = value.tolist()
    return pairs


def _parts(x: Any, blocks: Sequence[int]) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The sizes of the batch, of the axes that have blocks, and of the others."""
    batch, *others = require_static_sizes(x.shape, "moving blocks")
    return batch, tuple(others[: len(blocks)]), tuple(others[len(blocks) :])
