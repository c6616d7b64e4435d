"""Sums that a matrix product can take along: ``c + s * (a @ b)`` is one call of BLAS, without a temporary."""

from __future__ import annotations

from typing import Final

from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.algebra import uniform
from dualflow.graph.rewrite import Expansion, by, reading, rebuild, without
from dualflow.graph.scalar_functions import scalar_op_of
from dualflow.ops.contraction import MATMUL, PRODUCT_ADD
from dualflow.scalar import ScalarOp

_SIGNS: Final = {ScalarOp.ADD: 1.0, ScalarOp.SUBTRACT: -1.0}
_DTYPES = "fd"


class _Sum(NamedTuple):
    """``addend + scale * product``, and the nodes that nothing needs once it is one."""

    addend: Value
    scale: float
    product: Node
    gone: tuple[Node, ...]


def add_in_products(graph: Graph) -> Graph:
    """c + s * (a @ b) = product_add(a, b, c; s), where only the sum reads the product."""
    if MATMUL not in {node.op for node in graph.nodes}:
        return graph
    results = set(graph.results)
    single = {v for v, readers in graph.users().items() if len(readers) == 1 and v not in results}
    sums = {n: found for n in graph.nodes if (found := _match(n, single)) is not None}
    if not sums:
        return graph
    gone = {n for found in sums.values() for n in found.gone}
    moved: dict[Value, Value] = {}

    def added(node: Node, current: Node) -> Expansion | None:
        if node in sums:
            return by(reading(_product_add(node, sums[node]), moved))
        return without(node) if node in gone else None

    return rebuild(graph, added, moved)


def _match(node: Node, single: set[Value]) -> _Sum | None:
    op = scalar_op_of(node)
    sign = None if op is None else _SIGNS.get(op)
    if sign is None or node.output.spec.dtype.char not in _DTYPES:
        return None
    x, y = node.inputs
    for addend, term in ((x, y),) if sign < 0 else ((x, y), (y, x)):
        found = _scaled_product(term, single) if term is not addend else None
        if found is not None and addend.spec == term.spec == node.output.spec:
            scale, product, gone = found
            return _Sum(addend, sign * scale, product, gone)
    return None


def _scaled_product(value: Value, single: set[Value]) -> tuple[float, Node, tuple[Node, ...]] | None:
    """The scale and the product of which ``value`` is the only use, and the nodes between them."""
    scale, gone = 1.0, []
    while value in single and value.node is not None:
        node = value.node
        gone.append(node)
        if node.op is MATMUL:
            return scale, node, tuple(gone)
        factor = _scalar_factor(node) if scalar_op_of(node) is ScalarOp.MULTIPLY else None
        if factor is None:
            return None
        scale, value = scale * factor[0], factor[1]
    return None


def _scalar_factor(node: Node) -> tuple[float, Value] | None:
    """The number by which a multiplication scales its other input, if it does."""
    for number, other in (node.inputs, node.inputs[::-1]):
        found = uniform(number)
        if found is not None and other.spec == node.output.spec:
            return float(found), other
    return None


def _product_add(node: Node, found: _Sum) -> Node:
    product = found.product
    attrs = {**product.attrs, "scale": found.scale}
    return Node(PRODUCT_ADD, (*product.inputs, found.addend), attrs, node.specs, node.origin, node.also)
