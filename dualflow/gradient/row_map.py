"""A slot for running a function over many cotangents at once, which traced functions provide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dualflow.core.slot import Slot

RowMap = Callable[[Callable[[Any], list[Any]], Any], "list[Any] | None"]
"""From a function of one row, which returns tensors and Nones, and rows stacked along the first axis, to what
it returns for each, stacked; None where they can't be computed at once."""

MAP_ROWS: Final[Slot[RowMap]] = Slot("functions over rows", lambda function, rows: None)
