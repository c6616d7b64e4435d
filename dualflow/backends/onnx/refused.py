"""What has no ONNX form: the error names the op, the reason, and the user's line."""

from __future__ import annotations

from dualflow.core.dtypes import uint64
from dualflow.core.errors import InvalidArgumentError
from dualflow.graph.ir import Node, Value
from dualflow.schedule.call_reports import ops_of, user_line


def refuse(node: Node, reason: str) -> InvalidArgumentError:
    """The error for a node without an ONNX form."""
    name = ops_of(node) or node.op.name
    return InvalidArgumentError(
        f"{name} can't be exported as ONNX: {reason}. Compute it outside of the function, and pass it the "
        f"result.{user_line(node)}"
    )


def require_order(node: Node, value: Value) -> None:
    """Raise unless the runtime compares elements of ``value``: it computes uint64 as int64.

    Raises:
        InvalidArgumentError: the dtype is uint64.
    """
    if value.spec.dtype is uint64:
        raise refuse(node, "ONNX Runtime has no order of uint64")
