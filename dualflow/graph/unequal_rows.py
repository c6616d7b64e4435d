"""Rows of several sizes, which loops stack where NumPy runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


class UnequalRows:
    """The rows of a stack that differ in size: no array, but what another loop takes its rows from.

    A loop keeps such rows of its iterations for its gradient. Any other use is an error.
    """

    def __init__(self, rows: Sequence[Array]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: tuple[int, Any]) -> Array:
        """The row ``t`` for the key ``(t, ...)``, as of an array."""
        at, _ = key
        return self.rows[at]

    def __getattr__(self, name: str) -> Any:
        sizes = list(dict.fromkeys(row.shape for row in self.rows))
        raise InvalidArgumentError(
            f"The rows that a loop gives differ in size: {sizes[0]} and {sizes[1]}. Pad them to one size, "
            "and mask what is not used."
        )
