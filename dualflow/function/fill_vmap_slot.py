"""Fills the slot of :mod:`dualflow.gradient.vmap_slot` with ``vmap``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualflow.core.errors import OperatorNotAllowedInGraphError
from dualflow.gradient.vmap_slot import VMAP


@VMAP.fill
def vmap_rows(function: Callable[[Any], list[Any]], rows: Any) -> list[Any] | None:
    """The results of ``function`` for each of ``rows``, stacked; None if ``vmap`` can't batch the function.

    A user's gradient function that reads a tensor's value can't be batched.
    """
    from dualflow.function.batching.batched_value import UnbatchableError
    from dualflow.function.batching.vmap import vmap

    try:
        results: list[Any] = vmap(function)(rows)
    except (UnbatchableError, OperatorNotAllowedInGraphError):
        return None
    return results
