"""Elementwise ops: their scalar functions, evaluated to nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dualflow.backends.onnx.element_types import element_type
from dualflow.backends.onnx.scalar_nodes import ScalarNodes
from dualflow.backends.onnx.scope import Operand
from dualflow.backends.onnx.unsupported import unsupported_error
from dualflow.backends.onnx.writer import GraphWriter, Rules, sizes_of
from dualflow.graph.ir import Node, Value
from dualflow.graph.scalar_functions import function_of
from dualflow.graph.symbolic_size_ops import WITH_SHAPE
from dualflow.ops.elementary.values import BITCAST
from dualflow.ops.neural.activations import relu
from dualflow.ops.op_kinds import Elementwise, Literal, SizeVector
from dualflow.scalar import ScalarFunction, ScalarOp, evaluate


def _elementwise(w: GraphWriter, node: Node) -> Operand:
    function, shape = function_of(node), sizes_of(node.output)
    nodes = ScalarNodes(w.scope, lambda axis: w.positions(axis, shape))
    (result,) = evaluate(function, nodes, w.operands(node))
    return result if _has_full_shape(function, node, shape) else _expanded(w, result, shape)


def _expanded(w: GraphWriter, x: Operand, shape: Sequence[int]) -> Operand:
    return w.scope.add_with_casts("Expand", x, others=[w.sizes.shape_vector(shape)])


def _has_full_shape(function: ScalarFunction, node: Node, shape: Sequence[int]) -> bool:
    """Whether the nodes of ``function`` yield the op's broadcast shape without an Expand.

    If it depends on some of them only, each axis must be that of an input or of positions.
    """
    inputs, axes = _dependencies(function)
    if len(inputs) == len(node.inputs) and inputs:
        return True
    operands = [_sizes_before_expand(node.inputs[i]) for i in inputs]
    operands += [(*[1] * axis, shape[axis], *[1] * (len(shape) - axis - 1)) for axis in axes]
    filled = set[int]()
    for sizes in operands:
        first = len(shape) - len(sizes)
        filled.update(first + axis for axis, size in enumerate(sizes) if size == shape[first + axis])
    return len(filled) == len(shape)


def _sizes_before_expand(value: Value) -> tuple[int, ...]:
    """The sizes of an operand without its Expand, since elementwise ops of ONNX broadcast."""
    while value.node is not None and value.node.op is WITH_SHAPE:
        value = value.node.inputs[0]
    return sizes_of(value)


def _dependencies(function: ScalarFunction) -> tuple[set[int], set[int]]:
    """The inputs that the result depends on, and the axes whose positions it depends on."""
    count, pending, visited = len(function.inputs), list(function.results), set()
    axes: set[int] = set()
    while pending:
        number = pending.pop()
        if number in visited:
            continue
        visited.add(number)
        if number >= count:
            instruction = function.instructions[number - count]
            pending += instruction.operands
            if instruction.op is ScalarOp.INDEX:
                axes.add(instruction.attribute)
    return {number for number in visited if number < count}, axes


def _relu(w: GraphWriter, node: Node) -> Operand:
    (x,) = w.operands(node)
    return w.scope.add("Relu", x) if x.dtype.is_floating else _elementwise(w, node)


def _constant(w: GraphWriter, node: Node) -> Operand:
    return w.scope.shared.constant(node.attrs["value"])


def _sizes(w: GraphWriter, node: Node) -> Operand:
    return w.scope.cast(w.sizes.shape_vector(node.attrs["values"]), node.output.spec.dtype)


def _bitcast(w: GraphWriter, node: Node) -> Operand:
    (x,), dtype = w.operands(node), node.output.spec.dtype
    if x.dtype.size != dtype.size:
        raise unsupported_error(node, "ONNX reads bits as numbers of the same size only")
    return w.scope.add("BitCast", x, dtype=dtype, to=element_type(dtype))


RULES: Final[Rules] = {
    BITCAST: _bitcast,
    Elementwise: _elementwise,
    relu.op: _relu,
    Literal: _constant,
    SizeVector: _sizes,
}
