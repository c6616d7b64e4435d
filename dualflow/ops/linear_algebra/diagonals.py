"""Diagonals and bands of matrices, chosen by comparing the numbers of rows and columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.choice import masked, where
from dualflow.ops.comparison import equal, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.linear_algebra.bands import as_band, construct, extract
from dualflow.ops.positions import iota
from dualflow.ops.record import agreed
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def _places(rows: int, columns: int) -> tuple[Any, Any]:
    """The numbers of the rows, as a column, and of the columns, as a row."""
    return iota((rows, 1), 0, int32), iota((1, columns), 1, int32)


def _matrices(x: Any) -> tuple[Any, int, int]:
    x = convert_to_tensor(x)
    if len(x.shape) < 2 or None in x.shape[-2:]:
        raise InvalidArgumentError(
            f"takes matrices of known size, but the shape is {x.shape}; give it two axes or more."
        )
    return x, x.shape[-2], x.shape[-1]


def diag(
    diagonal: Any,
    name: str | None = None,
    k: Any = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with the rows of ``diagonal`` on their diagonals, ``padding_value`` elsewhere.

    Args:
        diagonal: of shape ``(..., n)``; for several diagonals ``(..., diagonals, n)``, the highest first.
        name: ignored; as in TensorFlow.
        k: which diagonal: 0 for the main one, more above, less below; or a pair, the lowest and the highest.
        num_rows: of the matrices; by default as many as needed.
        num_cols: of the matrices; by default as many as needed.
        padding_value: what stands elsewhere.
        align: where diagonals shorter than ``n`` stand in their rows: ``"RIGHT_LEFT"`` to the right those
            from the main diagonal on, to the left those below; also ``"LEFT_RIGHT"``, ``"LEFT_LEFT"`` and
            ``"RIGHT_RIGHT"``.

    Raises:
        InvalidArgumentError: no axis, an unknown ``align``, diagonals that do not fit ``k`` or the matrices.

    >>> import dualflow as df
    >>> df.linalg.diag([1, 2]).numpy().tolist()
    [[1, 0], [0, 2]]
    >>> df.linalg.diag([1, 2], k=1, padding_value=9).numpy().tolist()
    [[9, 1, 9], [9, 9, 2], [9, 9, 9]]
    """
    x = convert_to_tensor(diagonal)
    if not len(x.shape) or x.shape[-1] is None:
        raise InvalidArgumentError(
            f"diag takes vectors of known size, but the shape is {x.shape}; give it an axis."
        )
    band = as_band(k)
    if band != (0, 0) or not num_rows == num_cols == -1:
        return construct(x, band, num_rows, num_cols, padding_value, align)
    return where(equal(*_places(x.shape[-1], x.shape[-1])), expand_dims(x, -1), cast(padding_value, x.dtype))


def diag_part(
    input: Any, name: str | None = None, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """The diagonals of matrices, square or not.

    Args:
        input: matrices, of shape ``(..., rows, columns)``.
        name: ignored; as in TensorFlow.
        k: which diagonal, or the lowest and the highest of several; see :func:`diag`.
        padding_value: what fills the rows of shorter diagonals.
        align: where these stand in their rows; see :func:`diag`.

    Returns:
        Of shape ``(..., n)``, or ``(..., diagonals, n)`` if ``k`` is a pair.

    Raises:
        InvalidArgumentError: no matrices, or of unknown size; a ``k`` outside of them; an unknown ``align``.

    >>> import dualflow as df
    >>> df.linalg.diag_part([[1, 2, 3], [4, 5, 6]]).numpy().tolist()
    [1, 5]
    >>> df.linalg.diag_part([[1, 2], [3, 4]], k=(-1, 1)).numpy().tolist()
    [[0, 2], [1, 4], [3, 0]]
    """
    x, rows, columns = _matrices(input)
    band = as_band(k)
    if band != (0, 0):
        return extract(x, rows, columns, band, padding_value, align)
    side = min(rows, columns)
    square = x[..., :side, :side]
    return reduce_sum(masked(equal(*_places(side, side)), square), -1)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix.

    >>> import dualflow as df
    >>> int(df.linalg.trace([[1, 2], [3, 4]]))
    5
    """
    x, rows, columns = _matrices(x)
    return reduce_sum(masked(equal(*_places(rows, columns)), x), (-2, -1))


def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with zeros outside of a band around the diagonal.

    Args:
        input: matrices.
        num_lower: how many diagonals below to keep; all if negative.
        num_upper: how many diagonals above to keep; all if negative.
        name: ignored; as in TensorFlow.

    >>> import dualflow as df
    >>> df.linalg.band_part([[1, 2], [3, 4]], -1, 0).numpy().tolist()
    [[1, 0], [3, 4]]
    """
    x, rows, columns = _matrices(input)
    lower, upper = static_int(num_lower, "num_lower"), static_int(num_upper, "num_upper")
    row, column = _places(rows, columns)
    below = row - column <= (lower if lower >= 0 else rows)
    above = column - row <= (upper if upper >= 0 else columns)
    return masked(logical_and(below, above), x)


def strictly_lower(x: Any) -> Any:
    """What stands below the diagonal of matrices, zeros elsewhere."""
    x, rows, columns = _matrices(x)
    row, column = _places(rows, columns)
    return masked(row > column, x)


def lower_half(x: Any) -> Any:
    """What stands below the diagonal of matrices, and half of the diagonal; zeros elsewhere."""
    return (strictly_lower(x) + band_part(x, -1, 0)) * 0.5


def set_diag(
    input: Any, diagonal: Any, name: str | None = None, k: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """``input`` with other diagonals.

    Args:
        input: matrices, of shape ``(..., rows, columns)``.
        diagonal: what stands on the diagonals: of shape ``(..., n)``, or ``(..., diagonals, n)`` if ``k`` is
            a pair, the highest first.
        name: ignored; as in TensorFlow.
        k: which diagonal, or the lowest and the highest of several; see :func:`diag`.
        align: where short diagonals stand in their rows; see :func:`diag`.

    Raises:
        InvalidArgumentError: no matrices, or of unknown size; diagonals that do not fit ``input`` and ``k``;
            an unknown ``align``.

    >>> import dualflow as df
    >>> df.linalg.set_diag([[1, 1], [1, 1]], [7, 8]).numpy().tolist()
    [[7, 1], [1, 8]]
    """
    x, values = agreed(input, diagonal)
    x, rows, columns = _matrices(x)
    low, high = as_band(k)
    batch = values.shape[: -1 if low == high else -2]
    if not Shape(batch).is_compatible_with(x.shape[:-2]):
        raise InvalidArgumentError(
            f"diagonals of shape {values.shape} do not fit matrices of shape {x.shape}; give each its own."
        )
    row, column = _places(rows, columns)
    if low == high == 0 and rows == columns == values.shape[-1]:
        return where(equal(row, column), expand_dims(values, -1), x)
    distance = column - row
    inside = logical_and(distance >= low, distance <= high)
    return where(inside, construct(values, (low, high), rows, columns, 0, align), x)


def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of twice the axes, whose element ``[i..., i...]`` is ``diagonal[i...]``, and zeros elsewhere.

    Args:
        diagonal: of one axis or more, of known sizes.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: no axis, or a size that is unknown.

    >>> import dualflow as df
    >>> df.linalg.tensor_diag([[1, 2]]).shape
    (1, 2, 1, 2)
    """
    x = convert_to_tensor(diagonal)
    if not len(x.shape) or not x.shape.is_static:
        raise InvalidArgumentError(
            f"tensor_diag takes one axis or more, of known sizes, but the shape is {x.shape}."
        )
    return reshape(diag(reshape(x, [-1])), (*x.shape, *x.shape))


def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """The elements ``input[i..., i...]``: the reverse of :func:`tensor_diag`.

    Args:
        input: of an even number of axes, whose first half is of the sizes of the second, all known.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: another shape.

    >>> import dualflow as df
    >>> df.linalg.tensor_diag_part([[1, 2], [3, 4]]).numpy().tolist()
    [1, 4]
    """
    x = convert_to_tensor(input)
    half = x.shape[: len(x.shape) // 2]
    if not x.shape.is_static or (*half, *half) != x.shape:
        raise InvalidArgumentError(
            f"tensor_diag_part takes twice the same sizes, which are known, but the shape is {x.shape}."
        )
    count = math.prod(half)
    return reshape(diag_part(reshape(x, (count, count))), half)
