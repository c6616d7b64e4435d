"""Errors for nodes without an ONNX form: they name the op, the reason, and the user's line."""

from __future__ import annotations

from dualflow.core.dtypes import uint64
from dualflow.core.errors import InvalidArgumentError
from dualflow.graph.ir import Node, Value
from dualflow.schedule.call_reports import ops_of, user_line


def unsupported_error(node: Node, reason: str) -> InvalidArgumentError:
    """The error for a node without an ONNX form."""
    name = ops_of(node) or node.op.name
    return InvalidArgumentError(
        f"{name} can't be exported as ONNX: {reason}. Compute it outside of the function, and pass it the "
        f"result.{user_line(node)}"
    )


def require_comparable(node: Node, value: Value) -> None:
    """Raise if the runtime compares elements of ``value`` wrongly: it compares uint64 as int64.

    Raises:
        InvalidArgumentError: the dtype is uint64.
    """
    if value.spec.dtype is uint64:
        raise unsupported_error(node, "ONNX Runtime compares uint64 as int64")
