"""Diagonals of matrices other than the main one, and several at once: the positions of their elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.conversion import cast
from dualflow.ops.selection import where
from dualflow.ops.static import ints
from dualflow.ops.taking import gather

Band = tuple[int, int]
"""The lowest and the highest diagonal: 0 is the main one, positive ones are above it."""

Places = np.ndarray[Any, np.dtype[np.int64]]

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


def extract(x: Any, rows: int, columns: int, band: Band, padding: Any, align: str) -> Any:
    """The diagonals of the matrices ``x``, one row each, the highest first; a single one as it is.

    Raises:
        InvalidArgumentError: a diagonal outside of the matrices.
    """
    low, high = band
    if low <= -rows or high >= columns:
        raise InvalidArgumentError(
            f"k={band} is outside of matrices of {rows} rows and {columns} columns; use {1 - rows} to "
            f"{columns - 1}."
        )
    d, offset, width = _rows_of(band, rows, columns, align)
    index = np.arange(width)
    row = index + (np.maximum(-d, 0) - offset)[:, None]
    column = index + (np.maximum(d, 0) - offset)[:, None]
    inside = (row >= 0) & (column >= 0) & (row < rows) & (column < columns)
    diagonals = _picked(x, row * columns + column, inside, padding)
    return diagonals if low < high else reshape(diagonals, (*x.shape[:-2], width))


def construct(x: Any, band: Band, num_rows: int, num_columns: int, padding: Any, align: str) -> Any:
    """Matrices with the rows of ``x`` as their diagonals, the highest first.

    Raises:
        InvalidArgumentError: another number of rows than of diagonals, or matrices too small or too large for
            them.
    """
    low, high = band
    x = expand_dims(x, -2) if low == high else x
    rows, columns = _sizes(x.shape, band, num_rows, num_columns)
    _, offset, width = _rows_of(band, rows, columns, align)
    if width != x.shape[-1]:
        raise InvalidArgumentError(
            f"diagonals of {x.shape[-1]} elements do not fit matrices of {rows} rows and {columns} columns, "
            f"whose longest has {width}; change num_rows or num_cols."
        )
    d = np.arange(columns) - np.arange(rows)[:, None]
    inside = (d >= low) & (d <= high)
    line = np.where(inside, high - d, 0)
    index = np.minimum(np.arange(columns), np.arange(columns) - d) + offset[line]
    return _picked(x, line * width + index, inside, padding)


def _rows_of(band: Band, rows: int, columns: int, align: str) -> tuple[Places, Places, int]:
    """The diagonals, highest first; the shift of each to the right; and the length of the longest."""
    d = np.arange(band[1], band[0] - 1, -1)
    lengths = np.minimum(rows + np.minimum(d, 0), columns - np.maximum(d, 0))
    width = int(lengths.max())
    upper, lower = _ALIGNED[align]
    return d, np.where(((d >= 0) & upper) | ((d <= 0) & lower), width - lengths, 0), width


def _sizes(shape: Shape, band: Band, num_rows: int, num_columns: int) -> tuple[int, int]:
    """The numbers of rows and columns of the matrices whose diagonals are the rows of ``shape``."""
    low, high = band
    if len(shape) < 2 or None in shape[-2:] or shape[-2] != high - low + 1:
        raise InvalidArgumentError(
            f"diagonals {low} to {high} need {high - low + 1} rows of known size, but the shape is {shape}."
        )
    rows, columns = shape[-1] - min(high, 0), shape[-1] + max(low, 0)
    if num_rows == num_columns == -1:
        return max(rows, columns), max(rows, columns)
    sizes = rows if num_rows == -1 else num_rows, columns if num_columns == -1 else num_columns
    if sizes[0] < rows or sizes[1] < columns:
        raise InvalidArgumentError(
            f"these diagonals need {rows} rows and {columns} columns or more, not {sizes[0]} and {sizes[1]}."
        )
    return sizes


def _picked(x: Any, position: Places, inside: Any, padding: Any) -> Any:
    """The elements at flat positions in the last two axes; ``padding`` where ``inside`` is false."""
    flat = reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))
    elements = gather(flat, np.where(inside, position, 0), axis=-1)
    return elements if inside.all() else where(inside, elements, cast(padding, x.dtype))
