"""The errors of failed checks, and the reports about nodes without native code."""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.errors import InvalidArgumentError, OutOfRangeError, ResourceExhaustedError
from dualflow.core.shape import Shape
from dualflow.graph.compiled import PartKind, PartReport
from dualflow.graph.ir import Node
from dualflow.ops.checks import REQUIRED
from dualflow.ops.op_kinds import Check, Elementwise, Gather, Loop, Opaque, RepeatIndices, Scatter
from dualflow.ops.record import REGISTRY, Effect, Op
from dualflow.schedule.refused_accesses import unsafe
from dualflow.sizes.symbolic_sizes import SizeFactor, bind_sizes

_ERRORS: dict[type, type[InvalidArgumentError | ResourceExhaustedError]] = {
    Gather: OutOfRangeError,
    Scatter: OutOfRangeError,
    Loop: ResourceExhaustedError,
}


class OutOfMemory(str):
    """The message of a failed allocation."""

    __slots__ = ()


class OutOfBounds(str):
    """The message of a failed comparison of accesses with a buffer of dynamic size."""

    __slots__ = ()


OUT_OF_BOUNDS: Final = OutOfBounds("it would access elements outside of its buffers")


def size_error(node: Node, sizes: Mapping[SizeFactor, int]) -> Exception:
    """The error for sizes of arguments that differ: those of the failed node of the op ``require_size``."""
    return check_error(node, node.attrs["message"].format(*bind_sizes(node.attrs["shapes"], sizes)))


def check_error(node: Node, message: str) -> Exception:
    """The error for a failed check in the code of ``node``, with the names of the user's ops and the line."""
    op_kind = node.op.kind
    error: type[Exception] | None = op_kind.error if isinstance(op_kind, Elementwise) else None
    if isinstance(message, OutOfMemory):
        error = ResourceExhaustedError
    error = error or _ERRORS.get(type(op_kind), InvalidArgumentError)
    if isinstance(message, OutOfBounds):
        return unsafe(node, message)
    names = ops_of(node)
    return error(f"{names}: {message}{user_line(node)}" if names else f"{message}{user_line(node)}")


def ops_of(node: Node) -> str:
    """The names of the user's ops that a node computes, or whose sizes it compares; "" if none."""
    if isinstance(node.op.kind, Check):
        names = [node.attrs.get("needed_by", "")]
    else:
        nodes = [n for n in node.attrs["body"].nodes if n.inputs] if "body" in node.attrs else [node]
        names = [n.op.name for n in nodes if _is_user_op(n.op)]
    return "+".join(dict.fromkeys([name.removesuffix("_by") for name in names if name]))


def _is_user_op(op: Op) -> bool:
    """Whether ``op`` is in the user's program: it is no part of another op, nor added by a pass."""
    return op.name in REGISTRY and op is not REQUIRED and not isinstance(op.kind, RepeatIndices)


def user_line(node: Node) -> str:
    """The source line of ``node`` in the user's program and its text, each on a new line; "" if unknown."""
    if node.origin is None:
        return ""
    line = linecache.getline(node.origin.file, node.origin.line).strip()
    return f"\n{node.origin}" + (f"\n    {line}" if line else "")


def check_results(
    node: Node, shapes: Sequence[Shape | None], results: Sequence[np.ndarray[Any, Any]]
) -> None:
    """Raise unless the results of the NumPy kernel of ``node`` have these shapes; None is any shape or size.

    Raises:
        InternalError: a result has another shape than machine code would read it by.
    """
    for shape, result in zip(shapes, results, strict=True):
        actual = np.shape(result)
        if shape is not None and shape != actual and not shape.is_compatible_with(actual):
            raise unsafe(node, f"its NumPy kernel returned shape {actual}, not {tuple(shape)}")


def host_report(node: Node) -> PartReport:
    """The report about a node without native code: what runs it instead, and the reason."""
    op_kind = node.op.kind
    kind = PartKind.PYTHON if node.effect is Effect.PYTHON else PartKind.NUMPY
    if isinstance(op_kind, Opaque):
        reason = op_kind.reason
    elif isinstance(op_kind, RepeatIndices):
        reason = "the backend has no code that computes repeated indices"
    else:
        reason = f"no native code for {node.outputs[0].spec.dtype.name}"
    return PartReport(kind, node.op.name, reason, node)
