"""What is told of calls: the error of a check that failed, and how a node runs that has no kernel."""

from __future__ import annotations

from dualflow.core.errors import InvalidArgumentError, OutOfRangeError, ResourceExhaustedError
from dualflow.graph.compiled import PartKind, PartReport
from dualflow.graph.ir import Node
from dualflow.ops.forms import Check, Element, Loop, Opaque, Positions, Scatter, Take
from dualflow.ops.record import Effect
from dualflow.schedule.access_bounds import unsafe

_ERRORS: dict[type, type[InvalidArgumentError | ResourceExhaustedError]] = {
    Take: OutOfRangeError,
    Scatter: OutOfRangeError,
    Loop: ResourceExhaustedError,
}


class OutOfMemory(str):
    """The message of a check that failed for want of memory."""

    __slots__ = ()


class OutOfBounds(str):
    """The message of a check that failed since a size was not what the program was made for."""

    __slots__ = ()


def check_error(node: Node, message: str) -> Exception:
    """The error for a check in the code of ``node`` that failed: the op, if one was called, and the line."""
    form = node.op.form
    own: type[Exception] | None = form.error if isinstance(form, Element) else None
    if isinstance(message, OutOfMemory):
        own = ResourceExhaustedError
    error = own or _ERRORS.get(type(form), InvalidArgumentError)
    where = f"\n{node.origin}" if node.origin else ""
    if isinstance(message, OutOfBounds):
        return unsafe(node, message)
    name = "" if isinstance(form, Check) else f"{node.op.name}: "
    return error(f"{name}{message}{where}")


def host_report(node: Node) -> PartReport:
    """How a node runs that has no native code, and why."""
    form = node.op.form
    kind = PartKind.PYTHON if node.effect is Effect.PYTHON else PartKind.NUMPY
    if isinstance(form, Opaque):
        reason = form.reason
    elif isinstance(form, Positions):
        reason = "the backend has no code that finds the places of elements"
    else:
        reason = f"no native code for {node.outputs[0].spec.dtype.name}"
    return PartReport(kind, node.op.name, reason, node)
