"""Values of variables that may be unassigned: those first assigned in a loop or in one branch."""

from __future__ import annotations

from typing import Any

from dualflow.core import dispatch
from dualflow.function.control.trace_bodies import tracer_of
from dualflow.function.tracing.symbolic_tensor import MaybeUnassigned, SymbolicTensor
from dualflow.ops.checks import assigned


def maybe_unassigned(x: Any, ran: Any, name: str) -> Any:
    """``x``, the value of the variable ``name``, with a check that the bool scalar ``ran`` is true."""
    constant = ran.static_value()
    if constant is not None and constant:
        return x
    checked = assigned(x, ran, name)
    tracer_of(dispatch.current()).maybe_unassigned[checked._value] = MaybeUnassigned(x, ran, name)
    return checked


def is_maybe_unassigned(x: Any) -> bool:
    """Whether ``x`` is the value of a variable that may be unassigned."""
    return type(x) is SymbolicTensor and x._value in x._tracer.maybe_unassigned


def value_and_flag(x: Any) -> tuple[Any, Any]:
    """The value without the check, and whether the variable is assigned: True, or a bool scalar."""
    if not is_maybe_unassigned(x):
        return x, True
    value = x._tracer.maybe_unassigned[x._value]
    return value.x, value.ran
