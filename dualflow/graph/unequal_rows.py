"""Stacks whose rows differ in size, for loops that run through NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


class UnequalRows:
    """A stack of rows that differ in size: a sequence that another loop can scan, but no array.

    A loop stacks such rows for its gradient. Any other use is an error.
    """

    def __init__(self, rows: Sequence[Array]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: tuple[int, Any]) -> Array:
        """The row ``t`` for the key ``(t, ...)``."""
        t, _ = key
        return self.rows[t]

    def __getattr__(self, name: str) -> Any:
        sizes = list(dict.fromkeys(row.shape for row in self.rows))
        raise InvalidArgumentError(
            f"The rows that a loop stacks differ in size: {sizes[0]} and {sizes[1]}. Pad them to one size, "
            "and mask what is not used."
        )
