"""Constant folding: computes nodes with constant operands at compile time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.graph.interpret import run_node
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Make, Replacement, rewrite
from dualflow.graph.views import base_of, is_scalar_literal, is_view
from dualflow.ops.broadcasting import BROADCAST_TO
from dualflow.ops.creation import CONSTANT
from dualflow.ops.op_kinds import Literal, View
from dualflow.sizes.symbolic_sizes import is_static, size_variables

Array = np.ndarray[Any, Any]

SMALL_BYTES = 1 << 16
_CONSTANT_KINDS: Final = (Literal, View)


def fold_constants(graph: Graph) -> Graph:
    """``graph`` with nodes of constant operands replaced by constants, if their results are small."""
    return rewrite(graph, fold)


def fold(node: Node, make: Make) -> Replacement:
    """f(constants) = the value, if it takes at most 64 KiB, or no more memory than the constants.

    Views of constants count as constants. A broadcast stays, since reading the few elements is cheaper. A
    result with equal elements of operands with equal elements becomes a broadcast. An op that raises stays:
    it must fail at run time, or not at all if its result is unused.
    """
    for value in node.inputs:
        if not _is_constant(value):
            return None
    if node.effect is not None or isinstance(node.op.kind, Literal):
        return None
    if any(size_variables(tuple(spec.shape)) for spec in node.specs) or size_variables(node.attrs):
        return None
    operand_bytes = sum(_base_array(value).nbytes for value in node.inputs)
    result_bytes = sum(spec.nbytes if spec.shape.is_static else SMALL_BYTES + 1 for spec in node.specs)
    if result_bytes > operand_bytes and (result_bytes > SMALL_BYTES or isinstance(node.op.kind, View)):
        return None
    try:
        results = run_node(node, [_elements(value) for value in node.inputs])
    except Exception:  # whatever the kernel raises, it raises again at run time
        return None
    if len(results) == 1 and all(map(is_scalar_literal, node.inputs)) and _repeats_one(results[0]):
        number = make(CONSTANT, (), {"value": results[0].reshape(-1)[:1].reshape(()).copy()})
        return [make(BROADCAST_TO, (number,), {"shape": node.output.spec.shape})]
    return [make(CONSTANT, (), {"value": array.copy()}) for array in results]


def _repeats_one(array: Array) -> bool:
    """Whether ``array`` has several elements, and all have the same bits."""
    return (
        array.size > 1
        and array.dtype != object
        and array.tobytes() == array.size * array.reshape(-1)[:1].tobytes()
    )


def _is_constant(value: Value) -> bool:
    """Whether ``value`` is a constant, or a small view of one."""
    if value.node is None:
        return False
    kind = value.node.op.kind
    if not isinstance(kind, _CONSTANT_KINDS):
        return False
    if isinstance(kind, Literal):
        return True
    base = base_of(value).node
    if base is None or not isinstance(base.op.kind, Literal):
        return False
    return is_static(value.spec.shape) and value.spec.nbytes <= SMALL_BYTES


def _base_array(value: Value) -> Array:
    """The array of the constant that ``value`` is, or is a view of."""
    node = base_of(value).node
    assert node is not None, "its base is a literal"
    array: Array = node.attrs["value"]
    return array


def _elements(value: Value) -> Array:
    """The elements of a constant, or of a view of one."""
    views = []
    while (node := value.node) is not None and is_view(node):
        views.append(node)
        (value,) = node.inputs
    array = _base_array(value)
    for view in reversed(views):
        (array,) = run_node(view, [array])
    return array
