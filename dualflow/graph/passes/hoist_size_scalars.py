"""Computes scalars that follow from sizes, such as the divisor of a mean, outside of kernels.

With static sizes they are constants, which small kernels have as arguments. With symbolic sizes they become
arguments too, so both programs run the same kernels, and no kernel computes a single number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dualflow.core.dtypes import DType, float32, float64
from dualflow.core.shape import Shape
from dualflow.graph.interpret import run_node
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import Make, Replacement, rewrite
from dualflow.graph.symbolic_size_ops import computes_sizes
from dualflow.graph.views import base_of, is_scalar_literal, is_view
from dualflow.ops.arithmetic import add, divide, multiply, negative, subtract
from dualflow.ops.arrangement import RESHAPE
from dualflow.ops.broadcasting import BROADCAST_TO
from dualflow.ops.conversion import CAST
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Op
from dualflow.ops.tensor_sizes import SIZES
from dualflow.sizes.size_scalars import SizeScalar
from dualflow.sizes.symbolic_sizes import SymInt

MAX_OPERATIONS: Final = 16
"""The largest number of operations of a scalar: operands that are read twice are computed twice."""
_DTYPES: Final = (float32, float64)
_OPERATIONS: Final[Mapping[Op, np.ufunc]] = {
    add.op: np.add,
    subtract.op: np.subtract,
    multiply.op: np.multiply,
    divide.op: np.divide,
    negative.op: np.negative,
}


def compute_from_sizes(graph: Graph) -> Graph:
    """``graph`` with scalars that are computed from sizes of arguments as :class:`SizeScalar`."""
    if SIZES not in graph.ops or computes_sizes(graph):
        return graph
    rewritten = rewrite(graph, _fold, {CAST, *_OPERATIONS})
    return graph if rewritten is graph else eliminate_dead_code(rewritten)


def _fold(node: Node, make: Make) -> Replacement:
    """f(scalars of sizes) = the scalar of sizes; broadcasts of scalars are broadcasts of the result."""
    if len(node.outputs) != 1 or node.output.spec.dtype not in _DTYPES:
        return None
    dtype = node.output.spec.dtype
    scalar = _cast(node, dtype) if node.op is CAST else _applied(node, dtype)
    if scalar is None:
        return None
    vector = make(SIZES, (), {"values": (scalar,), "dtype": dtype})
    number = make(RESHAPE, (vector,), {"shape": Shape(())})
    if not node.output.spec.rank:
        return [number]
    return [make(BROADCAST_TO, (number,), {"shape": node.output.spec.shape})]


def _cast(node: Node, dtype: DType) -> SizeScalar | None:
    size = _size(node.inputs[0])
    return None if size is None else SizeScalar(None, dtype, (size,))


def _applied(node: Node, dtype: DType) -> SizeScalar | None:
    operation = _OPERATIONS.get(node.op)
    if operation is None:
        return None
    operands = []
    for value in node.inputs:
        scalar = _scalar(value, dtype)
        if scalar is None:
            return None
        operands.append(scalar)
    if all(map(_is_number, operands)):
        return None
    if node.op in (multiply.op, divide.op) and operands[1] == SizeScalar(None, dtype, (1.0,)):
        return operands[0]
    if sum(map(_operations, operands)) >= MAX_OPERATIONS:
        return None
    return SizeScalar(operation, dtype, tuple(operands))


def _operations(scalar: SizeScalar) -> int:
    return 0 if scalar.operation is None else 1 + sum(map(_operations, scalar.operands))


def _is_number(scalar: SizeScalar) -> bool:
    return scalar.operation is None and isinstance(scalar.operands[0], float)


def _scalar(value: Value, dtype: DType) -> SizeScalar | None:
    """The scalar whose broadcast ``value`` is; None if it is none of ``dtype``."""
    node = base_of(value).node
    if node is None or not is_scalar_literal(value):
        return None
    if value.spec.dtype is not dtype or node.output.spec.dtype is not dtype:
        return None
    if isinstance(node.op.kind, Literal):
        return SizeScalar(None, dtype, (float(node.attrs["value"].reshape(-1)[0]),))
    scalar: SizeScalar = node.attrs["values"][0]
    return scalar


def _size(value: Value) -> SymInt | None:
    """The symbolic size that ``value`` is an integer tensor of; None if it is anything else."""
    views, base = [], value
    while base.node is not None and is_view(base.node):
        views.append(base.node)
        base = base.node.inputs[0]
    if base.node is None or base.node.op is not SIZES or value.spec.shape.num_elements() != 1:
        return None
    sizes = base.node.attrs["values"]
    positions = np.arange(len(sizes))
    for view in reversed(views):
        if len(view.inputs) != 1:
            return None
        (positions,) = run_node(view, [positions])
    size = sizes[int(positions.reshape(-1)[0])]
    return size if isinstance(size, SymInt) else None
