"""Column reductions: reductions over the outermost axes in memory, as ``reduce_sum(x, axis=0)`` of a matrix.

A loop down a column reads another cache line at each element. So a large column reduction reads the rows in
chunks, each of which gives a partial result per column. Consumers of the result are in another loop nest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from dualflow.sizes.symbolic_sizes import typical

MIN_ROWS: Final = 64
"""The smallest number of rows of a chunk."""
MIN_ELEMENTS: Final = 1 << 18
"""The smallest number of elements of a reduction that is split into chunks: fewer stay in a cache."""
MAX_COLUMNS: Final = 1 << 16
"""The largest number of columns: a chunk has a partial result for each."""


def is_column_reduction(shape: Sequence[int], order: Sequence[int], reduced: Collection[int]) -> bool:
    """Whether a reduction over ``reduced`` axes, with axes in memory ``order``, runs in chunks of rows."""
    if not order or order[0] not in reduced or order[-1] in reduced:
        return False
    rows = math.prod(typical(shape[a]) for a in order if a in reduced)
    columns = math.prod(typical(shape[a]) for a in order if a not in reduced)
    return rows >= 2 * MIN_ROWS and rows * columns >= MIN_ELEMENTS and columns <= MAX_COLUMNS
