"""Lowers products of complex matrices to products of their parts, for backends without a routine for them."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.lower_nodes import lower_nodes
from dualflow.graph.rewrite import Make
from dualflow.ops.arithmetic import add, subtract
from dualflow.ops.complex_numbers import COMPLEX, IMAG, REAL
from dualflow.ops.contraction import MATMUL


def split_complex_products(graph: Graph) -> Graph:
    """``graph`` with four products of real matrices in place of each product of complex ones."""
    return lower_nodes(graph, _is_complex_product, _as_products_of_parts) if MATMUL in graph.ops else graph


def _is_complex_product(node: Node) -> bool:
    return node.op is MATMUL and node.output.spec.dtype.is_complex


def _as_products_of_parts(node: Node, make: Make) -> Sequence[Value]:
    """(a + b i) @ (c + d i) = (a @ c - b @ d) + (a @ d + b @ c) i"""
    x, y = node.inputs
    a, b, c, d = (make(part, (value,)) for value in (x, y) for part in (REAL, IMAG))
    ac, bd, ad, bc = (make(MATMUL, factors, node.attrs) for factors in ((a, c), (b, d), (a, d), (b, c)))
    return (make(COMPLEX, (make(subtract.op, (ac, bd)), make(add.op, (ad, bc)))),)
