"""Fills the slot for deferred calls: in a trace, a failed call of an op may wait until sizes are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.deferred_calls import DEFER
from dualflow.core.locks import imported
from dualflow.function.tracing.tracer import Tracer


@DEFER.fill
def defer(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception
) -> Any:
    """See :mod:`dualflow.function.tracing.deferred_calls`, imported at the first failure; None if eager."""
    if not isinstance(dispatch.current().innermost, Tracer):
        return None
    return imported("dualflow.function.tracing.deferred_calls").defer(function, args, kwargs, error)
