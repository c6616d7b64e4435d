"""Diagonals of matrices other than the main one, and several at once: the positions of their elements.

Sizes are ints, or scalar tensors where they are known only at run time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.ops.arithmetic import minimum
from dualflow.ops.arrangement import expand_dims, reshape, squeeze
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, greater, greater_equal, less, less_equal, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.positions import iota
from dualflow.ops.repetition import pad
from dualflow.ops.selection import where
from dualflow.ops.shapes import with_shape
from dualflow.ops.static import ints
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_size, axis_sizes

Band = tuple[int, int]
"""The lowest and the highest diagonal: 0 is the main one, positive ones are above it."""

_ALIGNED: Final = {
    "LEFT_RIGHT": (False, True),
    "RIGHT_LEFT": (True, False),
    "LEFT_LEFT": (False, False),
    "RIGHT_RIGHT": (True, True),
}
"""For each alignment, whether superdiagonals and subdiagonals are aligned to the right."""


def as_band(k: Any) -> Band:
    """The diagonals that ``k`` selects: an integer, or the lowest and the highest.

    Raises:
        InvalidArgumentError: more than two integers, or the lowest above the highest.
    """
    diagonals = ints(k, "k")
    if not 1 <= len(diagonals) <= 2 or diagonals[0] > diagonals[-1]:
        raise InvalidArgumentError(f"k is a diagonal, or the lowest and the highest of several, not {k!r}.")
    return diagonals[0], diagonals[-1]


def check_align(align: str) -> None:
    """Raise an InvalidArgumentError for an unknown ``align``."""
    if align not in _ALIGNED:
        raise InvalidArgumentError(f"align is one of {', '.join(_ALIGNED)}, not {align!r}.")


class _Lines(NamedTuple):
    """The diagonals of a band as the rows of a tensor, the highest first.

    Attributes:
        distance: the number of each diagonal, in a column.
        offset: the shift of each to the right, in a column.
        width: the length of the longest.
    """

    distance: np.ndarray[Any, np.dtype[np.int64]]
    offset: Any
    width: Any


def longest(rows: Any, columns: Any, band: Band) -> Any:
    """The length of the longest diagonal of a band: an int, or a tensor if a size is; 0 or less for none."""
    low, high = band
    lengths = rows + min(high, 0), columns - max(low, 0)
    return min(lengths) if _are_static(*lengths) else minimum(*lengths)


def extract(x: Any, band: Band, padding: Any, align: str) -> Any:
    """The diagonals of the matrices ``x``, one row each, the highest first; a single one as it is.

    Raises:
        InvalidArgumentError: a diagonal outside of the matrices; at run time if a size is dynamic.
    """
    low, high = band
    name = f"k={low if low == high else band}"
    rows, columns = axis_size(x, -2, int64), axis_size(x, -1, int64)
    if _are_static(rows, columns) and (low <= -rows or high >= columns):
        raise InvalidArgumentError(
            f"{name} is outside of matrices of {rows} rows and {columns} columns; use {1 - rows} to "
            f"{columns - 1}."
        )
    distance, offset, width = _lines(band, rows, columns, align)
    if not _are_static(rows, columns):
        inside = logical_and(greater(rows, -low), greater(columns, high))
        width = required(width, inside, f"{name} is outside of the matrices.")
    index = iota((1, width), 1, int64) - offset
    row, column = index + np.maximum(-distance, 0), index + np.maximum(distance, 0)
    inside = logical_and(
        greater_equal(minimum(row, column), 0), logical_and(less(row, rows), less(column, columns))
    )
    diagonals = _picked(x, row * columns + column, inside, padding)
    return diagonals if low < high else squeeze(diagonals, -2)


def construct(x: Any, band: Band, num_rows: Any, num_columns: Any, padding: Any, align: str) -> Any:
    """Matrices with the rows of ``x`` as their diagonals, the highest first.

    Raises:
        InvalidArgumentError: another number of rows than of diagonals, or matrices too small or too large for
            them; at run time if a size is dynamic.
    """
    low, high = band
    x = _with_lines(expand_dims(x, -2) if low == high else x, band)
    rows, columns = _sizes(axis_size(x, -1, int64), band, num_rows, num_columns)
    row, column = iota((rows, 1), 0, int64), iota((1, columns), 1, int64)
    distance = column - row
    inside = logical_and(greater_equal(distance, low), less_equal(distance, high))
    line = where(inside, high - distance, 0)
    _, offset, width = _lines(band, rows, columns, align)
    index = minimum(column, row) + gather(reshape(offset, [-1]), line)
    if low > 0 or high < 0:  # such diagonals may have no element for the positions outside of the band
        x, width = pad(x, [*[[0, 0]] * (len(x.shape) - 1), [0, 1]]), width + 1
    return _picked(x, line * width + index, inside, padding)


def _are_static(*sizes: Any) -> bool:
    return all(type(n) is int for n in sizes)


def _lines(band: Band, rows: Any, columns: Any, align: str) -> _Lines:
    """The diagonals of matrices with these numbers of rows and columns."""
    low, high = band
    distance = np.arange(high, low - 1, -1)[:, None]
    lengths = minimum(rows + np.minimum(distance, 0), columns - np.maximum(distance, 0))
    width = longest(rows, columns, band)
    upper, lower = _ALIGNED[align]
    to_right = ((distance >= 0) & upper) | ((distance <= 0) & lower)
    return _Lines(distance, where(to_right, width - lengths, 0), width)


def _with_lines(x: Any, band: Band) -> Any:
    """``x``, with as many rows as the band has diagonals.

    Raises:
        InvalidArgumentError: it has another number of rows; at run time if that is dynamic.
    """
    low, high = band
    count = high - low + 1
    if len(x.shape) < 2 or x.shape[-2] not in (None, count):
        raise InvalidArgumentError(
            f"diagonals {low} to {high} need {count} rows, but the shape is {x.shape}."
        )
    return with_shape(x, [*x.shape[:-2], count, x.shape[-1]]) if x.shape[-2] is None else x


def _sizes(length: Any, band: Band, num_rows: Any, num_columns: Any) -> tuple[Any, Any]:
    """The numbers of rows and columns of matrices whose longest diagonal of the band has ``length`` elements.

    They are ``num_rows`` and ``num_columns``, of which -1 is for as many as needed.
    """
    low, high = band
    needed = length - min(high, 0), length + max(low, 0)
    if _are_static(num_rows, num_columns) and num_rows == num_columns == -1:
        side = length + max(-min(high, 0), max(low, 0))
        return side, side
    rows, columns = (
        n if type(size) is int and size == -1 else size
        for size, n in zip((num_rows, num_columns), needed, strict=True)
    )
    if _are_static(rows, columns, length):
        _check_sizes(length, band, needed, (rows, columns))
        return rows, columns
    width = longest(rows, columns, band)
    message = f"diagonals {low} to {high} have another number of elements than those of the matrices."
    return required(rows, equal(width, length), message), columns


def _check_sizes(length: int, band: Band, needed: tuple[int, int], sizes: tuple[int, int]) -> None:
    """Raise unless matrices of ``sizes`` have diagonals of at most ``length`` elements, and one of them."""
    if sizes[0] < needed[0] or sizes[1] < needed[1]:
        raise InvalidArgumentError(
            f"these diagonals need {needed[0]} rows and {needed[1]} columns or more, not {sizes[0]} and "
            f"{sizes[1]}."
        )
    width = longest(*sizes, band)
    if width != length:
        raise InvalidArgumentError(
            f"diagonals of {length} elements do not fit matrices of {sizes[0]} rows and {sizes[1]} columns, "
            f"whose longest has {width}; change num_rows or num_cols."
        )


def _picked(x: Any, position: Any, inside: Any, padding: Any) -> Any:
    """The elements at flat positions in the last two axes; ``padding`` where ``inside`` is false."""
    *batch, rows, columns = axis_sizes(x, int64)
    flat = reshape(x, [*batch, rows * columns])
    return where(inside, gather(flat, where(inside, position, 0), axis=-1), cast(padding, x.dtype))
