"""The static elements of symbolic shapes: 3 in ``concat([[n], [3]], 0)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.graph.ir import Value
from dualflow.ops.conversion import CAST
from dualflow.ops.op_kinds import CopyPieces, View
from dualflow.ops.tensor_sizes import SHAPE

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
