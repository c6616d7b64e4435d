"""What has no ONNX form: the error names the op, the reason, and the user's line."""

from __future__ import annotations

from dualflow.core.errors import InvalidArgumentError
from dualflow.graph.ir import Node
from dualflow.schedule.call_reports import ops_of, user_line


def refuse(node: Node, reason: str) -> InvalidArgumentError:
    """The error for a node without an ONNX form."""
    name = ops_of(node) or node.op.name
    return InvalidArgumentError(
        f"{name} can't be exported as ONNX: {reason}. Compute it outside of the function, and pass it the "
        f"result.{user_line(node)}"
    )
