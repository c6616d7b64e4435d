"""Errors for graphs that can't be exported as C: they name the op, the reason, and the user's line."""

from __future__ import annotations

from dualflow.backends.c.capabilities import CAPABILITIES
from dualflow.backends.c.op_routines import op_routine
from dualflow.core.errors import InvalidArgumentError
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.schedule.call_reports import host_report, ops_of, user_line
from dualflow.schedule.operands import CallKind
from dualflow.schedule.planned import Plan, PlannedCall

_ABSENT = (CallKind.FOURIER, CallKind.WINDOW_SUM)
"""The kinds of calls that have no C form."""


def require_exportable(graph: Graph, plan: Plan) -> None:
    """Raise an error unless each call of ``plan`` can be written as C.

    Raises:
        InvalidArgumentError: an op has no C form, or its sizes depend on data.
    """
    for call in plan.walk():
        _require_call(call)
    if plan.has_dynamic_sizes:
        measured = next((c.node for c in plan.walk() if c.kind is CallKind.MEASURE), None)
        raise unsupported_error(measured or plan.calls[0].node, "the size of a tensor depends on data")
    for value in (*graph.inputs, *graph.outputs):
        if not _has_c_type(value) and plan.calls:
            raise unsupported_error(plan.calls[0].node, f"C has no type for {value.spec.dtype.name}")


def _require_call(call: PlannedCall) -> None:
    node = call.node
    if call.kind in _ABSENT or (call.kind is CallKind.HOST and op_routine(node) is None):
        report = host_report(node)
        raise unsupported_error(node, report.reason)
    if call.iterations is not None and any(row.grows for row in call.iterations.memory.rows):
        raise unsupported_error(
            node, "it stores a row for each iteration, and the number of iterations depends on data"
        )
    body = body_of(node)
    inner = body.nodes if body is not None else ()
    for value in (*node.inputs, *node.outputs, *(v for n in inner for v in n.outputs)):
        if not _has_c_type(value):
            raise unsupported_error(node, f"C has no type for {value.spec.dtype.name}")


def _has_c_type(value: Value) -> bool:
    dtype = value.spec.dtype
    return dtype.char in CAPABILITIES.dtypes and not dtype.narrow


def unsupported_error(node: Node, reason: str) -> InvalidArgumentError:
    """The error for a node without a C form."""
    name = ops_of(node) or node.op.name
    return InvalidArgumentError(
        f"{name} can't be exported as C: {reason}. Compute it outside of the function, and pass it the "
        f"result.{user_line(node)}"
    )
