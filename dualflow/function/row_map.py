"""Gives tapes the way to sweep many cotangents at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualflow.core.errors import OperatorNotAllowedInGraphError
from dualflow.gradient.row_map import MAP_ROWS


@MAP_ROWS.fill
def map_over_rows(function: Callable[[Any], list[Any]], rows: Any) -> list[Any] | None:
    """``function`` of each of ``rows``, stacked; None where it can't be computed for all at once.

    So it is where a gradient function of the user's looks into a tensor.
    """
    from dualflow.function.batching.mapped import UnbatchableError
    from dualflow.function.batching.vmap import vmap

    try:
        found: list[Any] = vmap(function)(rows)
    except (UnbatchableError, OperatorNotAllowedInGraphError):
        return None
    return found
