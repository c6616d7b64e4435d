"""Variables that have a value only if an iteration of a loop, or a branch, has run: reading one may fail."""

from __future__ import annotations

from typing import Any

from dualflow.core import dispatch
from dualflow.function.control.bodies import tracer_of
from dualflow.function.tracing.symbolic_tensor import Provisional, SymbolicTensor
from dualflow.ops.checks import assigned


def provisional(x: Any, ran: Any, name: str) -> Any:
    """``x`` as the value of the variable ``name``, which it has only if the bool scalar ``ran`` holds."""
    known = ran.static_value()
    if known is not None and known:
        return x
    found = assigned(x, ran, name)
    tracer_of(dispatch.current()).provisional[found._value] = Provisional(x, ran, name)
    return found


def is_provisional(x: Any) -> bool:
    """Whether ``x`` is a value that may be missing."""
    return type(x) is SymbolicTensor and x._value in x._tracer.provisional


def taken_apart(x: Any) -> tuple[Any, Any]:
    """The value that ``x`` has if it has one, and the bool, or bool scalar, that says whether it has."""
    if not is_provisional(x):
        return x, True
    made = x._tracer.provisional[x._value]
    return made.x, made.ran
