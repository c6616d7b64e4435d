"""Products of integers: those of 8 bits as sums; those of matrices as products that some backends run."""

from __future__ import annotations

from typing import Final

from dualflow.core.dtypes import int32
from dualflow.core.records import replace
from dualflow.core.shape import Shape
from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import Expansion, Make, Replacement, expand, replaced_by, rewrite
from dualflow.ops.arithmetic import multiply
from dualflow.ops.arrangement import RESHAPE
from dualflow.ops.broadcasting import REDUCE_SUM
from dualflow.ops.contraction import MATMUL
from dualflow.ops.conversion import CAST
from dualflow.ops.integer_product import INTEGER_PRODUCT
from dualflow.ops.op_kinds import MatMul

_INTEGER_MATMUL: Final = replace(MATMUL, kind=MatMul(of_integers=True))


def sum_integer_products(graph: Graph) -> Graph:
    """``graph`` with a sum in place of each product of 8-bit integers."""
    if all(node.op is not INTEGER_PRODUCT for node in graph.nodes):
        return graph
    return eliminate_dead_code(rewrite(graph, _as_sum))


def multiply_integer_matrices(graph: Graph) -> Graph:
    """``graph`` with ops that the plan takes for products in place of matrix products of integers."""

    def multiplied(node: Node) -> Expansion | None:
        if node.op is not MATMUL or not node.output.spec.dtype.is_integer:
            return None
        return replaced_by(node.like(_INTEGER_MATMUL, node.inputs, node.attrs, node.specs))

    return expand(graph, multiplied, (MatMul,))


def _as_sum(node: Node, make: Make) -> Replacement:
    """An integer product as a sum of products: that of ``x[i, 4 k + b] * w[k, j, b]`` over k and b."""
    if node.op is not INTEGER_PRODUCT:
        return None
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
