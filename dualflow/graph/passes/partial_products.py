"""Slices of matrix products become products of slices.

The gradient of ``concat([x, h]) @ w`` by ``h`` alone is such a slice, in each iteration of a recurrent net.
"""

from __future__ import annotations

from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, rebuild, removal
from dualflow.graph.views import sizes
from dualflow.ops.contraction import MATMUL
from dualflow.ops.indexing import GETITEM
from dualflow.sizes.symbolic_sizes import is_static

_DTYPES = "fd"


class _PartialProduct(NamedTuple):
    """A slice of a matrix product: the begin and end of its ``rows`` and ``columns``."""

    product: Node
    rows: tuple[int, int]
    columns: tuple[int, int]


def cut_products(graph: Graph) -> Graph:
    """(a @ b)[i:j, k:l] = a[i:j] @ b[:, k:l], if nothing else reads the product."""
    if GETITEM not in graph.ops or MATMUL not in graph.ops:
        return graph
    matches = {n: part for n in graph.nodes if n.op is GETITEM and (part := _match(n)) is not None}
    if not matches:
        return graph
    users, results = graph.users(), set(graph.results)
    parts = {
        n: part
        for n, part in matches.items()
        if len(users[part.product.output]) == 1 and part.product.output not in results
    }
    unused = {part.product for part in parts.values()}
    replaced: dict[Value, Value] = {}

    def cut(node: Node, _: Node) -> Expansion | None:
        if node in parts:
            return _product_of_parts(node, parts[node], replaced)
        return removal(node) if node in unused else None

    return rebuild(graph, cut, replaced) if parts else graph


def _match(node: Node) -> _PartialProduct | None:
    """``node`` as a slice of a product; None if it is no slice, or is all of it, or a single row or column.

    The products of single rows and columns add in another order.
    """
    product = node.inputs[0].node
    if product is None or product.op is not MATMUL or product.output.spec.dtype.char not in _DTYPES:
        return None
    key, fixed = node.attrs["key"], all(is_static(sizes(v)) for v in (*product.inputs, product.output))
    if not fixed or any(v.spec.rank != 2 for v in product.inputs) or not all(map(_is_contiguous_slice, key)):
        return None
    shape = sizes(product.output)
    bounds = [*[(entry[0], entry[1]) for entry in key], *[(0, size) for size in shape[len(key) :]]]
    if sizes(node.output) == shape or min(sizes(node.output)) < 2:
        return None
    return _PartialProduct(product, bounds[0], bounds[1])


def _is_contiguous_slice(entry: object) -> bool:
    """Whether an entry of a key is a slice of step 1."""
    return type(entry) is tuple and all(type(n) is int for n in entry) and entry[2] == 1 and entry[0] >= 0


def _product_of_parts(node: Node, part: _PartialProduct, replaced: dict[Value, Value]) -> Expansion:
    product, nodes = part.product, []
    factors = [replaced.get(v, v) for v in product.inputs]
    in_rows = not product.attrs.get("transpose_a"), bool(product.attrs.get("transpose_b"))
    for i, (bounds, first) in enumerate(zip((part.rows, part.columns), in_rows, strict=True)):
        factor = factors[i]
        size = sizes(factor)[0 if first else 1]
        if bounds != (0, size):
            attrs = {"key": ((*bounds, 1),) if first else ((0, sizes(factor)[0], 1), (*bounds, 1))}
            specs = GETITEM.specs([factor.spec], attrs)
            nodes.append(Node(GETITEM, (factor,), attrs, specs, node.origin, node.merged_origins))
            factors[i] = nodes[-1].output
    nodes.append(Node(MATMUL, factors, product.attrs, node.specs, product.origin, product.merged_origins))
    return Expansion(nodes, nodes[-1].outputs)
