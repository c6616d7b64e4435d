"""Lowers products of 8-bit integers to multiply and reduce_sum, for backends without a routine for them."""

from __future__ import annotations

from dualflow.core.dtypes import int32
from dualflow.core.shape import Shape
from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import Make, Replacement, rewrite
from dualflow.ops.arithmetic import multiply
from dualflow.ops.arrangement import RESHAPE
from dualflow.ops.broadcasting import REDUCE_SUM
from dualflow.ops.conversion import CAST
from dualflow.ops.integer_product import INTEGER_PRODUCT


def sum_integer_products(graph: Graph) -> Graph:
    """``graph`` with a sum in place of each product of 8-bit integers."""
    if all(node.op is not INTEGER_PRODUCT for node in graph.nodes):
        return graph
    return eliminate_dead_code(rewrite(graph, _as_sum))


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
