"""The slot for ``vmap``, which runs a backward pass for many cotangents at once; traced functions fill it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dualflow.core.slot import Slot

Vmap = Callable[[Callable[[Any], list[Any]], Any], "list[Any] | None"]
"""``vmap(function, xs)``: the stacked results of ``function`` for the slices of ``xs`` along the first axis.

The function returns tensors and Nones. The result is None if the function can't be batched.
"""

VMAP: Final[Slot[Vmap]] = Slot("vmap of a function", lambda function, rows: None)
