"""Fills the slot for deferred calls: a trace may defer a failed call until sizes are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.defer_slot import DEFER
from dualflow.core.locks import imported
from dualflow.function.tracing.tracer import Tracer


@DEFER.fill
def defer(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception
) -> Any:
    """Defer a failed call of a trace until sizes are known; returns None if ops run eagerly."""
    if not isinstance(dispatch.current().innermost, Tracer):
        return None
    return imported("dualflow.function.tracing.deferred_calls").defer(function, args, kwargs, error)
