"""Diagonals and bands of matrices, chosen by comparing the numbers of rows and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.choice import masked, where
from dualflow.ops.comparison import equal, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.linear_algebra.bands import as_band, construct, extract
from dualflow.ops.positions import iota
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
