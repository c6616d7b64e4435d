"""Diagonals and bands of matrices, selected by comparing row and column indices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, logical_and, logical_or
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.linear_algebra.bands import as_band, check_align, construct, extract, longest
from dualflow.ops.positions import iota
from dualflow.ops.record import promote_together
from dualflow.ops.repetition import pad
from dualflow.ops.selection import masked, where
from dualflow.ops.static import int_or_symbolic
from dualflow.ops.tensor_sizes import axis_size, axis_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, IntsLike, TensorLike
    from dualflow.ops.tensor import Tensor


def places(rows: Any, columns: Any) -> tuple[Any, Any]:
    """The row indices, as a column, and the column indices, as a row."""
    return iota((rows, 1), 0, int32), iota((1, columns), 1, int32)


def _matrices(x: Any) -> Any:
    x = convert_to_tensor(x)
    if len(x.shape) < 2:
        raise InvalidArgumentError(f"takes matrices, but the shape is {x.shape}; give it two axes or more.")
    return x


def _places_of(x: Any) -> tuple[Any, Any]:
    return places(axis_size(x, -2), axis_size(x, -1))


def _along(x: Any, k: int, added: Any) -> Any:
    """The rows of ``x`` such that the elements of diagonal ``k`` of a matrix are those of the row.

    The matrix has ``added`` more rows than ``x`` has elements if ``k`` is 0 or more; else columns. Elements
    outside of the diagonal are arbitrary.
    """
    padded = x if type(added) is int and not added else pad(x, [*[[0, 0]] * (len(x.shape) - 1), [0, added]])
    return expand_dims(padded, -1 if k >= 0 else -2)


def diag(
    diagonal: TensorLike,
    name: str | None = None,
    k: IntsLike = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: TensorLike = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with the rows of ``diagonal`` on their diagonals, ``padding_value`` elsewhere.

    Args:
        diagonal: a tensor of shape ``(..., n)`` and any dtype; for several diagonals ``(..., diagonals, n)``,
            the highest first.
        k: the diagonal: 0 for the main one, positive above, negative below; or a pair, the lowest and the
            highest.
        num_rows: the number of rows; -1 for as many as needed.
        num_cols: the number of columns; -1 for as many as needed.
        padding_value: the other elements.
        align: the alignment of diagonals shorter than ``n`` in their rows: ``"RIGHT_LEFT"`` aligns those from
            the main diagonal on to the right, those below to the left; also ``"LEFT_RIGHT"``, ``"LEFT_LEFT"``
            and ``"RIGHT_RIGHT"``.

    Returns:
        A tensor of shape ``(..., rows, columns)`` with the dtype of ``diagonal``.

    Raises:
        InvalidArgumentError: ``diagonal`` is a scalar, or doesn't fit ``k`` or the matrices; or ``align`` is
            unknown.

    >>> import dualflow as df
    >>> df.linalg.diag([1, 2]).numpy().tolist()
    [[1, 0], [0, 2]]
    >>> df.linalg.diag([1, 2], k=1, padding_value=9).numpy().tolist()
    [[9, 1, 9], [9, 9, 2], [9, 9, 9]]
    """
    x = convert_to_tensor(diagonal)
    if not len(x.shape):
        raise InvalidArgumentError(f"diag takes vectors, but the shape is {x.shape}; give it an axis.")
    low, high = as_band(k)
    check_align(align)
    if low < high or not num_rows == num_cols == -1:
        return construct(x, (low, high), num_rows, num_cols, padding_value, align)
    side = axis_size(x, -1) + abs(low)
    row, column = places(side, side)
    return where(equal(column, row + low), _along(x, low, abs(low)), cast(padding_value, x.dtype))


def diag_part(
    input: TensorLike,
    name: str | None = None,
    k: IntsLike = 0,
    padding_value: TensorLike = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """The diagonals of matrices, square or not.

    Args:
        input: a tensor of shape ``(..., rows, columns)`` and any dtype.
        k: the diagonal, or the lowest and the highest of several; see :func:`diag`.
        padding_value: the value that fills the rows of shorter diagonals.
        align: the alignment of these in their rows; see :func:`diag`.

    Returns:
        A tensor of shape ``(..., n)``, or ``(..., diagonals, n)`` if ``k`` is a pair, with the dtype of
        ``input``.

    Raises:
        InvalidArgumentError: ``input`` has fewer than two axes, ``k`` is outside of the matrices, or
            ``align`` is unknown.

    >>> import dualflow as df
    >>> df.linalg.diag_part([[1, 2, 3], [4, 5, 6]]).numpy().tolist()
    [1, 5]
    >>> df.linalg.diag_part([[1, 2], [3, 4]], k=(-1, 1)).numpy().tolist()
    [[0, 2], [1, 4], [3, 0]]
    """
    x, (low, high) = _matrices(input), as_band(k)
    check_align(align)
    if low or high:
        return extract(x, (low, high), padding_value, align)
    side = longest(axis_size(x, -2), axis_size(x, -1), (0, 0))
    return reduce_sum(masked(equal(*places(side, side)), x[..., :side, :side]), -1)


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the main diagonal of each matrix.

    Args:
        x: numbers other than bools, of shape ``(..., m, n)``.

    Returns:
        A tensor of shape ``(...)`` with the dtype of ``x``.

    Raises:
        InvalidArgumentError: ``x`` has fewer than two axes.
        DTypeError: ``x`` holds bools or strings.

    >>> import dualflow as df
    >>> int(df.linalg.trace([[1, 2], [3, 4]]))
    5
    """
    x = _matrices(x)
    return reduce_sum(masked(equal(*_places_of(x)), x), (-2, -1))


def band_part(input: TensorLike, num_lower: IntLike, num_upper: IntLike, name: str | None = None) -> Tensor:
    """Matrices with zeros outside of a band around the diagonal.

    Args:
        input: a tensor of shape ``(..., m, n)`` and any dtype.
        num_lower: the number of diagonals to keep below the main one; all if negative.
        num_upper: the number of diagonals to keep above the main one; all if negative.

    Returns:
        A tensor with the shape and dtype of ``input``.

    Raises:
        InvalidArgumentError: ``input`` has fewer than two axes.
        DTypeError: a number of diagonals is not an integer.

    >>> import dualflow as df
    >>> df.linalg.band_part([[1, 2], [3, 4]], -1, 0).numpy().tolist()
    [[1, 0], [3, 4]]
    """
    x = _matrices(input)
    row, column = _places_of(x)
    below = _within(row - column, int_or_symbolic(num_lower, "num_lower"))
    above = _within(column - row, int_or_symbolic(num_upper, "num_upper"))
    if below is None or above is None:
        inside = above if below is None else below
    else:
        inside = logical_and(below, above)
    return x if inside is None else masked(inside, x)


def _within(distance: Any, most: Any) -> Any:
    """Whether a distance is at most ``most``; None for a negative ``most``, which means no limit."""
    if isinstance(most, int):
        return None if most < 0 else distance <= most
    return logical_or(most < 0, distance <= most)


def strictly_lower(x: Any) -> Any:
    """The elements below the main diagonal of matrices; zeros elsewhere."""
    x = _matrices(x)
    row, column = _places_of(x)
    return masked(row > column, x)


def lower_half(x: Any) -> Any:
    """The elements below the main diagonal of matrices, and half of those on it; zeros elsewhere."""
    return (strictly_lower(x) + band_part(x, -1, 0)) * 0.5


def set_diag(
    input: TensorLike,
    diagonal: TensorLike,
    name: str | None = None,
    k: IntsLike = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """``input`` with its diagonals replaced by those in ``diagonal``.

    Args:
        input: a tensor of shape ``(..., rows, columns)`` and any dtype.
        diagonal: the new diagonals: of shape ``(..., n)``, or ``(..., diagonals, n)`` if ``k`` is a pair, the
            highest first.
        k: the diagonal, or the lowest and the highest of several; see :func:`diag`.
        align: the alignment of short diagonals in their rows; see :func:`diag`.

    Returns:
        A tensor with the shape of ``input`` and the common dtype.

    Raises:
        InvalidArgumentError: no matrices, diagonals that do not fit ``input`` and ``k``, or an unknown
            ``align``.

    >>> import dualflow as df
    >>> df.linalg.set_diag([[1, 1], [1, 1]], [7, 8]).numpy().tolist()
    [[7, 1], [1, 8]]
    """
    x, values = promote_together(input, diagonal)
    x, (low, high) = _matrices(x), as_band(k)
    check_align(align)
    batch = values.shape[: -1 if low == high else -2]
    if not Shape(batch).is_compatible_with(x.shape[:-2]):
        raise InvalidArgumentError(
            f"diagonals of shape {values.shape} do not fit matrices of shape {x.shape}; give each its own."
        )
    row, column = _places_of(x)
    distance = column - row
    if low == high:
        return where(equal(distance, low), _replacing(x, values, low), x)
    inside = logical_and(distance >= low, distance <= high)
    return where(
        inside, construct(values, (low, high), axis_size(x, -2, int64), axis_size(x, -1, int64), 0, align), x
    )


def _replacing(x: Any, values: Any, k: int) -> Any:
    """``values`` as the elements of diagonal ``k`` of the matrices ``x``.

    Raises:
        InvalidArgumentError: their number is another one; at run time if a size is dynamic.
    """
    rows, columns, count = axis_size(x, -2), axis_size(x, -1), axis_size(values, -1)
    length = longest(rows, columns, (k, k))
    if type(length) is int and type(count) is int and length != count:
        raise InvalidArgumentError(
            f"diagonals of {count} elements do not fit matrices of {rows} rows and {columns} columns, whose "
            f"diagonal {k} has {max(length, 0)}."
        )
    added = (rows if k >= 0 else columns) - length
    if type(added) is not int:
        message = f"the diagonals have another number of elements than diagonal {k} of the matrices."
        added = required(added, equal(count, length), message)
    return _along(values, k, added)


def tensor_diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of twice the axes, whose element ``[i..., i...]`` is ``diagonal[i...]``, and zeros elsewhere.

    Args:
        diagonal: a tensor of one axis or more, of any dtype.

    Returns:
        A tensor of shape ``diagonal.shape + diagonal.shape`` with the dtype of ``diagonal``.

    Raises:
        InvalidArgumentError: ``diagonal`` is a scalar.

    >>> import dualflow as df
    >>> df.linalg.tensor_diag([[1, 2]]).shape
    (1, 2, 1, 2)
    """
    x = convert_to_tensor(diagonal)
    if not len(x.shape):
        raise InvalidArgumentError(f"tensor_diag takes one axis or more, but the shape is {x.shape}.")
    sizes = axis_sizes(x)
    return reshape(diag(reshape(x, [-1])), [*sizes, *sizes])


def tensor_diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """The elements ``input[i..., i...]``: the inverse of :func:`tensor_diag`.

    Args:
        input: a tensor of an even number of axes; the sizes of the first half are those of the second.

    Returns:
        A tensor of half as many axes, with the dtype of ``input``.

    Raises:
        InvalidArgumentError: ``input`` has another shape.

    >>> import dualflow as df
    >>> df.linalg.tensor_diag_part([[1, 2], [3, 4]]).numpy().tolist()
    [1, 4]
    """
    x = convert_to_tensor(input)
    count = len(x.shape) // 2
    if len(x.shape) % 2 or not Shape(x.shape[:count]).is_compatible_with(x.shape[count:]):
        raise InvalidArgumentError(
            f"tensor_diag_part takes twice the same sizes, but the shape is {x.shape}."
        )
    sizes = axis_sizes(x)[:count]
    side = math.prod(sizes)
    return reshape(diag_part(reshape(x, [side, side])), sizes)
