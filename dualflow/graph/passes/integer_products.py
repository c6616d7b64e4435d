"""Products of integers as sums; those of matrices as products that some backends run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dualflow.core.dtypes import int32
from dualflow.core.records import replace
from dualflow.core.shape import Shape
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.lower_nodes import lower_nodes
from dualflow.graph.rewrite import Expansion, Make, expand, replaced_by
from dualflow.ops.arithmetic import multiply
from dualflow.ops.arrangement import EXPAND_DIMS, RESHAPE, TRANSPOSE, swapped_matrix_axes
from dualflow.ops.broadcasting import REDUCE_SUM
from dualflow.ops.contraction import MATMUL
from dualflow.ops.conversion import CAST
from dualflow.ops.integer_product import INTEGER_PRODUCT
from dualflow.ops.op_kinds import MatMul

_INTEGER_MATMUL: Final = replace(MATMUL, kind=MatMul(of_integers=True))


def sum_integer_products(graph: Graph) -> Graph:
    """``graph`` with a sum in place of each product of 8-bit integers."""
    return lower_nodes(graph, _is_integer_product, _as_sum) if INTEGER_PRODUCT in graph.ops else graph


def multiply_integer_matrices(graph: Graph) -> Graph:
    """``graph`` with ops that the plan takes for products in place of matrix products of integers."""

    def multiplied(node: Node) -> Expansion | None:
        if not _is_integer_matmul(node):
            return None
        return replaced_by(node.like(_INTEGER_MATMUL, node.inputs, node.attrs, node.specs))

    return expand(graph, multiplied, (MatMul,))


def sum_integer_matrices(graph: Graph) -> Graph:
    """``graph`` with a sum in place of each matrix product of integers."""
    return lower_nodes(graph, _is_integer_matmul, _as_sum_of_matrices) if MATMUL in graph.ops else graph


def _is_integer_product(node: Node) -> bool:
    return node.op is INTEGER_PRODUCT


def _is_integer_matmul(node: Node) -> bool:
    return node.op is MATMUL and node.output.spec.dtype.is_integer


def _as_sum_of_matrices(node: Node, make: Make) -> Sequence[Value]:
    """A matrix product of integers as the sum of ``x[..., i, k, 1] * w[..., 1, k, j]`` over k."""
    x, w = [
        make(TRANSPOSE, (operand,), {"perm": swapped_matrix_axes(len(operand.spec.shape))})
        if transposed
        else operand
        for operand, transposed in zip(
            node.inputs, (node.attrs.get("transpose_a"), node.attrs.get("transpose_b")), strict=True
        )
    ]
    left = make(EXPAND_DIMS, (x,), {"axis": (len(x.spec.shape),)})
    right = make(EXPAND_DIMS, (w,), {"axis": (len(w.spec.shape) - 2,)})
    terms = make(multiply.op, (left, right))
    return (make(REDUCE_SUM, (terms,), {"axis": (len(terms.spec.shape) - 2,), "keepdims": False}),)


def _as_sum(node: Node, make: Make) -> Sequence[Value]:
    """An integer product as a sum of products: that of ``x[i, 4 k + b] * w[k, j, b]`` over k and b."""
    x, w = node.inputs
    *batch, groups, columns, width = w.spec.shape
    shapes = Shape([*x.spec.shape[:-1], groups, 1, width]), Shape([*batch, 1, groups, columns, width])
    factors = [
        make(CAST, (make(RESHAPE, (operand,), {"shape": shape}),), {"dtype": int32})
        for operand, shape in zip((x, w), shapes, strict=True)
    ]
    terms = make(multiply.op, factors)
    rank = len(terms.spec.shape)
    return (make(REDUCE_SUM, (terms,), {"axis": (rank - 3, rank - 1), "keepdims": False}),)
