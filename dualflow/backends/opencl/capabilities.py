"""The capabilities of the OpenCL backend on the device of this process."""

from __future__ import annotations

from dualflow.backends.opencl.devices import FLOAT64, current_device
from dualflow.backends.opencl.routines import joins
from dualflow.core.device_names import GPU
from dualflow.core.dtypes import float16
from dualflow.core.errors import InvalidArgumentError
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.fused import body_of, computed_nodes
from dualflow.graph.ir import Node, walk_nodes
from dualflow.ops.op_kinds import Elementwise, Scatter
from dualflow.ops.record import HOST_EFFECTS
from dualflow.schedule.call_reports import host_report, user_line
from dualflow.schedule.operands import CallKind, kind_of
from dualflow.schedule.scatter_calls import join_of

VECTOR_BITS = 256
"""The vector width for which blocks of lane loops are planned."""
_DTYPES = "?bBhHiIlLqQef"  # as the characters of NumPy's dtypes


def capabilities() -> Capabilities:
    """The capabilities of the device.

    Raises:
        NotFoundError: there is no device.
    """
    return Capabilities(
        dtypes=_DTYPES + ("dFD" if current_device().float64 else "F"),
        size_scalars=False,
        integer_products=False,
        complex_products=False,
        strided_host_calls=False,
        fourier=False,
        vector_bytes=VECTOR_BITS // 8,
        threads=1,
        device=GPU,
    )


def host_reason(node: Node, dtypes: str) -> str:
    """The reason why a node runs on the host; the empty string if it has device code.

    Args:
        node: a node of a plan.
        dtypes: the characters of the dtypes that kernels compute with.
    """
    if kind_of(node) in (CallKind.HOST, CallKind.POSITIONS):
        return host_report(node).reason
    body = body_of(node)
    inner = () if body is None else (*body.inputs, *(v for n in body.nodes for v in n.outputs))
    for value in (*inner, *node.inputs, *node.outputs):
        dtype = value.spec.dtype
        if dtype.char in "dD" and "d" not in dtypes:
            return f"the device has no float64: it lacks the extension {FLOAT64}"
        if dtype.char not in dtypes or dtype.narrow:
            return f"no OpenCL kernel for {dtype.name}"
    if any(map(_reads_precision_of_float16, computed_nodes(node))):
        return "kernels compute float16 in float32, and this op depends on the precision"
    if isinstance(node.op.kind, Scatter) and not joins(node.output.spec.dtype, join_of(node)):
        return f"no OpenCL kernel combines {node.output.spec.dtype.name} in a scatter"
    return ""


def require_device_code(node: Node, reason: str) -> None:
    """Raise for a node that runs on the host for a reason, though it is in a block of a GPU.

    Ops with an effect on the host are no error: no device has code for them.

    Raises:
        InvalidArgumentError: the node, or one in its bodies, is in such a block.
    """
    for placed in walk_nodes(node):
        if placed.device == GPU and placed.effect not in HOST_EFFECTS:
            raise InvalidArgumentError(
                f"Cannot assign a device for operation {placed.op.name}: it is in a block of "
                f"df.device('/GPU:0'), and would run on the CPU: {reason}. Move it to a block of "
                "df.device('/CPU:0'), or let such ops run on the CPU: "
                "df.config.set_soft_device_placement(True), or for a session "
                f"ConfigProto(allow_soft_placement=True).{user_line(placed)}"
            )


def _reads_precision_of_float16(node: Node) -> bool:
    kind = node.op.kind
    is_exact = isinstance(kind, Elementwise) and kind.depends_on_precision
    return is_exact and any(v.spec.dtype is float16 for v in node.inputs)
