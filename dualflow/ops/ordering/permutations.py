"""Tests for increasing order, and the inverse of a permutation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, less, less_equal, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like
from dualflow.ops.positions import range as counting
from dualflow.ops.reduction import reduce_all
from dualflow.ops.scattering import tensor_scatter_nd_add, tensor_scatter_nd_update
from dualflow.ops.segments.rows import as_row_indices
from dualflow.ops.shapes import size

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether no element is less than the one before it, in row-major order.

    Args:
        x: numbers of any shape; complex ones compare as in NumPy.

    Returns:
        A bool scalar; True for no element or one.

    Raises:
        DTypeError: ``x`` holds strings.

    >>> import dualflow as df
    >>> bool(df.math.is_non_decreasing([1, 1, 2])), bool(df.math.is_non_decreasing([1, 3, 2]))
    (True, False)
    """
    flat = reshape(convert_to_tensor(x), [-1])
    return reduce_all(less_equal(flat[:-1], flat[1:]))


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether each element is greater than the one before it, in row-major order.

    Args:
        x: numbers of any shape; complex ones compare as in NumPy.

    Returns:
        A bool scalar; True for no element or one.

    Raises:
        DTypeError: ``x`` holds strings.

    >>> import dualflow as df
    >>> bool(df.math.is_strictly_increasing([1, 2, 3])), bool(df.math.is_strictly_increasing([1, 1, 2]))
    (True, False)
    """
    flat = reshape(convert_to_tensor(x), [-1])
    return reduce_all(less(flat[:-1], flat[1:]))


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of the permutation ``x``: its element ``x[i]`` is ``i``.

    Args:
        x: a vector of integers that contains each of 0, 1, ... once.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: an integer is missing or occurs twice, or ``x`` is not a vector.
        DTypeError: ``x`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.math.invert_permutation([2, 0, 1]).numpy()
    array([1, 2, 0], dtype=int32)
    """
    positions = as_row_indices(x, "the numbers of a permutation")
    if len(positions.shape) != 1:
        raise InvalidArgumentError(f"a permutation is a vector, not of shape {positions.shape}.")
    count = size(positions)
    inside = reduce_all(logical_and(positions >= 0, less(positions, cast(count, positions.dtype))))
    message = "a permutation has each of 0, 1, ... up to its size once."
    indices = expand_dims(required(positions, inside, message), -1)
    zeros = zeros_like(positions)
    once = reduce_all(equal(tensor_scatter_nd_add(zeros, indices, ones_like(positions)), 1))
    numbers = cast(counting(count), positions.dtype)
    return tensor_scatter_nd_update(zeros, required(indices, once, message), numbers)
