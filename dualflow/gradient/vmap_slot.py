"""A slot for batching a function over many cotangents, which traced functions fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dualflow.core.slot import Slot

Vmap = Callable[[Callable[[Any], list[Any]], Any], "list[Any] | None"]
"""Maps a function of one row over rows stacked along the first axis, and returns its results stacked.

The function returns tensors and Nones. The result is None if the rows can't be batched.
"""

VMAP: Final[Slot[Vmap]] = Slot("functions over rows", lambda function, rows: None)
