"""Folds of columns: those over the first axes in memory, whose elements lie a row apart.

To walk down a column is to leave a cache line at each element, and again for whatever waits for the result.
So such folds go through the rows in chunks, each of which gives partial results for every column, and what
waits for the result is another loop nest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from dualflow.core.symbolic_sizes import typical

LEAST_ROWS: Final = 64
"""The fewest rows of a chunk."""
LEAST_ELEMENTS: Final = 1 << 18
"""The fewest elements of a fold in chunks: fewer stay in a cache."""
MOST_COLUMNS: Final = 1 << 16
"""The most columns, for each of which a chunk has a partial result."""


def folds_columns(extents: Sequence[int], order: Sequence[int], reduced: Collection[int]) -> bool:
    """Whether a fold over the axes ``reduced``, in memory in this ``order``, goes by chunks of rows."""
    if not order or order[0] not in reduced or order[-1] in reduced:
        return False
    rows = math.prod(typical(extents[a]) for a in order if a in reduced)
    columns = math.prod(typical(extents[a]) for a in order if a not in reduced)
    return rows >= 2 * LEAST_ROWS and rows * columns >= LEAST_ELEMENTS and columns <= MOST_COLUMNS
