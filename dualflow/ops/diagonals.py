"""Diagonals and bands of matrices, chosen by comparing the numbers of rows and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.choice import masked, where
from dualflow.ops.comparison import equal, logical_and
from dualflow.ops.creation import convert_to_tensor
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


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Matrices with the rows of ``diagonal`` on their diagonals, zeros elsewhere.

    >>> import dualflow as df
    >>> df.linalg.diag([1, 2]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    x = convert_to_tensor(diagonal)
    if not len(x.shape) or x.shape[-1] is None:
        raise InvalidArgumentError(
            f"diag takes vectors of known size, but the shape is {x.shape}; give it an axis."
        )
    return where(equal(*_places(x.shape[-1], x.shape[-1])), expand_dims(x, -1), 0)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonals of matrices, square or not.

    >>> import dualflow as df
    >>> df.linalg.diag_part([[1, 2, 3], [4, 5, 6]]).numpy().tolist()
    [1, 5]
    """
    x, rows, columns = _matrices(input)
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
