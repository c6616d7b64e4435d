"""The static elements of symbolic shapes: 3 in ``concat([[n], [3]], 0)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.graph.interpret import run_node
from dualflow.graph.ir import Node, Value
from dualflow.ops.conversion import CAST
from dualflow.ops.op_kinds import CopyPieces, View
from dualflow.ops.tensor_sizes import SHAPE, size_array

Array = np.ndarray[Any, Any]
_MAX_DEPTH: Final = 16
"""The largest number of ops between an element and its constant or size."""

_MAX_AXES: Final = 64
"""The number of axes of the largest shape: NumPy's limit."""


def static_elements(
    value: Value, static_value: Callable[[Value], Array | None], depth: int = _MAX_DEPTH
) -> Array | None:
    """The static elements of an integer tensor, None for each other element; None if no element is static.

    Static elements are constants (``static_value`` returns the value of a constant tensor), and static sizes
    of tensors. Both are followed through ops that copy elements.
    """
    spec, node = value.spec, value.node
    count = spec.shape.num_elements()
    if not spec.dtype.is_integer or count is None or count > _MAX_AXES:
        return None
    constant = static_value(value)
    if constant is not None:
        return constant.astype(object)
    if node is None or not depth:
        return None
    if node.op is SHAPE:
        return np.array([n if type(n) is int else None for n in node.inputs[0].spec.shape], object)
    parts = [static_elements(x, static_value, depth - 1) for x in node.inputs]
    if all(part is None for part in parts):
        return None
    arrays = [
        np.empty([n or 0 for n in x.spec.shape], np.object_) if part is None else part
        for x, part in zip(node.inputs, parts, strict=True)
    ]
    if node.op is CAST:
        return arrays[0]
    if not isinstance(node.op.kind, View | CopyPieces) or len(node.outputs) != 1:
        return None
    return np.asarray(node.op.kernel(*arrays, **node.attrs), object)


def computed_from_sizes(
    value: Value,
    static_value: Callable[[Value], Array | None],
    shape_of: Callable[[Value], Sequence[int | None]],
) -> Array | None:
    """The value of an integer tensor that is computed from constants and shapes alone; else None.

    ``shape_of`` returns the shape of a value in the traced call. It is called only if there is a result, or
    a size depends on data.
    """
    nodes = _nodes_from_sizes(value, static_value)
    if nodes is None:
        return None
    arrays: dict[Value, Array] = {}
    for node in nodes:
        if node.op is not SHAPE:
            inputs = [arrays[v] if v in arrays else static_value(v) for v in node.inputs]
            arrays.update(zip(node.outputs, run_node(node, inputs), strict=True))  # type: ignore[arg-type]  # each is known
            continue
        sizes = shape_of(node.inputs[0])
        if any(size is None for size in sizes):
            return None
        numbers = [int(size) for size in sizes if size is not None]
        arrays[node.output] = size_array(numbers, node.attrs["dtype"])
    return arrays[value]


def _nodes_from_sizes(value: Value, static_value: Callable[[Value], Array | None]) -> list[Node] | None:
    """The nodes that compute ``value``, in order; None if it depends on more than constants and shapes."""
    ordered: dict[Node, None] = {}
    pending = [value]
    while pending:
        node, spec = pending[-1].node, pending[-1].spec
        count = spec.shape.num_elements()
        if node is None or node.effect is not None or node.bodies or not spec.dtype.is_integer:
            return None
        if count is None or count > _MAX_AXES:
            return None
        inputs = [] if node.op is SHAPE else [v for v in node.inputs if static_value(v) is None]
        missing = [v for v in inputs if v.node not in ordered]
        if (not inputs and node.op is not SHAPE) or len(pending) > _MAX_DEPTH * _MAX_AXES:
            return None
        if missing:
            pending += missing
            continue
        pending.pop()
        ordered[node] = None
    return list(ordered)
