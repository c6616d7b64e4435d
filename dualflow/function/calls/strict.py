"""``@function(strict=True)``: raises an error if a part of the graph would not run natively."""

from __future__ import annotations

from typing import Final

from dualflow.function.errors import NotNativeError
from dualflow.graph.compiled import Compiled, PartKind
from dualflow.graph.ir import Node
from dualflow.ops.op_kinds import CONTROL, Opaque
from dualflow.ops.record import Effect

_BY_EFFECT: Final = {
    Effect.RANDOM: "draw the numbers outside of the function and give them to it",
    Effect.PYTHON: "call Python before or after the function, or write it in ops",
    Effect.PRINT: "print what the function returns",
    Effect.COLLECTIVE: "exchange the results of the function",
}
_NAMES: Final = {PartKind.NUMPY: "through NumPy", PartKind.PYTHON: "in Python"}


def require_native(compiled: Compiled) -> None:
    """Raise an error for a compiled graph of which a part would not run natively.

    Raises:
        NotNativeError: there is such a part. The error has the op of each, its line, the reason and a remedy.
    """
    foreign = [(part.node, part) for part in compiled.parts if part.node is not None]
    if not foreign:
        return
    lines = [f"{compiled.inputs.name!r} is strict, but parts of it would not run natively:"]
    for node, report in foreign:
        lines.append(f"{node.op.name} would run {_NAMES[report.kind]}, as {report.reason}; {_remedy(node)}.")
        if node.origin is not None:
            lines.append(f"  {node.origin}")
    raise NotNativeError("\n".join([*lines, "Without strict=True, these run between the native parts."]))


def _remedy(node: Node) -> str:
    """The advice for an op without native code."""
    if node.effect in _BY_EFFECT:
        return _BY_EFFECT[node.effect]
    if isinstance(node.op.kind, CONTROL):
        return "let it work on scalars only, use df.where, or loop in Python around the function"
    dtypes = {v.spec.dtype.name for v in (*node.inputs, *node.outputs)}
    if "string" in dtypes:
        return "compute with strings outside of the function"
    if isinstance(node.op.kind, Opaque) and not dtypes & {"complex64", "complex128"}:
        return "compute it outside of the function and give it the result"
    return "cast to float32 or float64 before, or compute it outside of the function"
