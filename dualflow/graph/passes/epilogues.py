"""Fuses sums into matrix products: ``c + s * (a @ b)`` is one call of BLAS, without a temporary."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.algebra import uniform
from dualflow.graph.rewrite import replace_matches
from dualflow.graph.scalar_functions import scalar_op_of
from dualflow.ops.contraction import MATMUL, PRODUCT_ADD
from dualflow.scalar import ScalarOp

_SIGNS: Final = {ScalarOp.ADD: 1.0, ScalarOp.SUBTRACT: -1.0}
_DTYPES = "fd"


class _Sum(NamedTuple):
    """``addend + scale * product``, and the nodes that become unused."""

    addend: Value
    scale: float
    product: Node
    unused: tuple[Node, ...]


def add_in_products(graph: Graph) -> Graph:
    """c + s * (a @ b) = product_add(a, b, c; s), if nothing else reads the product."""
    if MATMUL not in graph.ops:
        return graph
    return replace_matches(graph, _match, _product_add, lambda match: match.unused)


def _match(node: Node, single: Set[Value]) -> _Sum | None:
    op = scalar_op_of(node)
    sign = None if op is None else _SIGNS.get(op)
    if sign is None or node.output.spec.dtype.char not in _DTYPES:
        return None
    x, y = node.inputs
    for addend, term in ((x, y),) if sign < 0 else ((x, y), (y, x)):
        scaled = _scaled_product(term, single) if term is not addend else None
        if scaled is not None and addend.spec == term.spec == node.output.spec:
            scale, product, unused = scaled
            return _Sum(addend, sign * scale, product, unused)
    return None


def _scaled_product(value: Value, single: Set[Value]) -> tuple[float, Node, tuple[Node, ...]] | None:
    """If ``value`` is ``scale * (a @ b)``: the scale, the product, and the nodes that become unused."""
    scale, unused = 1.0, []
    while value in single and value.node is not None:
        node = value.node
        unused.append(node)
        if node.op is MATMUL:
            return scale, node, tuple(unused)
        factor = _scalar_factor(node) if scalar_op_of(node) is ScalarOp.MULTIPLY else None
        if factor is None:
            return None
        scale, value = scale * factor[0], factor[1]
    return None


def _scalar_factor(node: Node) -> tuple[float, Value] | None:
    """If ``node`` is ``constant * x``: the constant and ``x``."""
    for constant, other in (node.inputs, node.inputs[::-1]):
        scale = uniform(constant)
        if scale is not None and other.spec == node.output.spec:
            return float(scale), other
    return None


def _product_add(node: Node, match: _Sum) -> Node:
    product = match.product
    attrs = {**product.attrs, "scale": match.scale}
    return Node(
        PRODUCT_ADD, (*product.inputs, match.addend), attrs, node.specs, node.origin, node.merged_origins
    )
