"""Variables that have a value only if an iteration of a loop, or a branch, has run: reading one may fail."""

from __future__ import annotations

from typing import Any

from dualflow.core import dispatch
from dualflow.function.control.bodies import tracer_of
from dualflow.function.tracing.symbolic_tensor import MaybeUnassigned, SymbolicTensor
from dualflow.ops.checks import assigned


def maybe_unassigned(x: Any, ran: Any, name: str) -> Any:
    """``x`` as the value of the variable ``name``, which it has only if the bool scalar ``ran`` holds."""
    known = ran.static_value()
    if known is not None and known:
        return x
    found = assigned(x, ran, name)
    tracer_of(dispatch.current()).maybe_unassigned[found._value] = MaybeUnassigned(x, ran, name)
    return found


def is_maybe_unassigned(x: Any) -> bool:
    """Whether ``x`` is a value that may be missing."""
    return type(x) is SymbolicTensor and x._value in x._tracer.maybe_unassigned


def taken_apart(x: Any) -> tuple[Any, Any]:
    """The value that ``x`` has if it has one, and the bool, or bool scalar, that says whether it has."""
    if not is_maybe_unassigned(x):
        return x, True
    made = x._tracer.maybe_unassigned[x._value]
    return made.x, made.ran
