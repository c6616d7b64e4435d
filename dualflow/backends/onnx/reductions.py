"""Reductions, running reductions, and positions of extremes."""

from __future__ import annotations

from typing import Any, Final

from dualflow.backends.onnx.element_types import INT64
from dualflow.backends.onnx.scalar_nodes import ScalarNodes
from dualflow.backends.onnx.scan_node import scan_node
from dualflow.backends.onnx.scope import Operand
from dualflow.backends.onnx.unsupported import require_comparable, unsupported_error
from dualflow.backends.onnx.writer import GraphWriter, Rule, Rules, sizes_of
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Node
from dualflow.graph.scalar_functions import ReductionFunctions, reduction_of
from dualflow.ops.op_kinds import Reduce, Scan
from dualflow.ops.reduction import ARGMAX, ARGMIN
from dualflow.ops.scans import CUMSUM
from dualflow.scalar import ScalarOp, evaluate

_REDUCTIONS: Final = {
    ScalarOp.ADD: "ReduceSum",
    ScalarOp.MULTIPLY: "ReduceProd",
    ScalarOp.MAXIMUM: "ReduceMax",
    ScalarOp.MINIMUM: "ReduceMin",
    ScalarOp.AND: "ReduceMin",
    ScalarOp.OR: "ReduceMax",
}
"""The ONNX op that combines elements by a scalar op; AND and OR of bools are their minimum and maximum."""


def _reduce(w: GraphWriter, node: Node) -> Operand:
    combination = _combination(reduction_of(node))
    op_type = None if combination is None else _REDUCTIONS.get(combination)
    (x,) = w.operands(node)
    if op_type is None:
        raise unsupported_error(node, "ONNX has no such reduction")
    if op_type in ("ReduceMax", "ReduceMin"):
        require_comparable(node, node.inputs[0])
    axes = node.attrs["axis"]
    if not axes:
        return x
    return w.scope.add_with_casts(
        op_type, x, others=[w.scope.ints(*axes)], keepdims=int(node.attrs["keepdims"])
    )


def _combination(functions: ReductionFunctions) -> ScalarOp | None:
    """The scalar op that combines two elements, if a reduction is nothing but that."""
    combine, finalize = functions.combine, functions.finalize
    is_plain = len(combine.inputs) == 2 and not finalize.instructions and len(combine.instructions) == 1
    return combine.instructions[0].op if is_plain else None


def _argmax_or_argmin(op_type: str) -> Rule:
    def rule(w: GraphWriter, node: Node) -> Operand:
        (x,), (axis,) = w.operands(node), node.attrs["axis"]
        require_comparable(node, node.inputs[0])
        if x.dtype.is_bool:
            x = w.scope.cast(x, INT64)
        keepdims = int(node.attrs["keepdims"])
        return w.scope.add_with_casts(op_type, x, dtype=INT64, axis=axis, keepdims=keepdims)

    return rule


def _cumsum(w: GraphWriter, node: Node) -> Operand:
    (x,), attrs = w.operands(node), node.attrs
    axis = w.scope.constant(attrs["axis"], INT64)
    flags: dict[str, Any] = {"exclusive": int(attrs["exclusive"]), "reverse": int(attrs["reverse"])}
    return w.scope.add_with_casts("CumSum", x, others=[axis], **flags)


def _cumulative(w: GraphWriter, node: Node) -> Operand:
    """A running reduction as a Scan, whose state is the accumulator."""
    functions, attrs = reduction_of(node), node.attrs
    value, axis = node.inputs[0], attrs["axis"]
    row = tuple(size for i, size in enumerate(sizes_of(value)) if i != axis)
    nodes = ScalarNodes(w.scope, lambda axis: w.positions(axis, row))
    scalars: list[Operand] = evaluate(functions.init, nodes, [])
    initial = [w.expanded(x, (), row) for x in scalars]
    states = [TensorSpec.of(Shape(row), x.dtype) for x in initial]

    def step(inner: GraphWriter, *operands: Operand) -> tuple[list[Operand], list[Operand]]:
        *state, x = operands
        nodes = ScalarNodes(inner.scope, lambda axis: inner.positions(axis, row))
        updated = evaluate(functions.update, nodes, [*state, x])
        result = evaluate(functions.finalize, nodes, state if attrs["exclusive"] else updated)
        return updated, result

    element = TensorSpec.of(Shape(row), value.spec.dtype)
    result = TensorSpec.of(Shape(row), node.output.spec.dtype)
    *_, stacked = scan_node(
        w, step, states, initial, [(element, w.operand(value))], [result], axis=axis, reverse=attrs["reverse"]
    )
    return stacked


RULES: Final[Rules] = {
    Reduce: _reduce,
    ARGMAX: _argmax_or_argmin("ArgMax"),
    ARGMIN: _argmax_or_argmin("ArgMin"),
    CUMSUM: _cumsum,
    Scan: _cumulative,
}
