"""Replaces a matrix product, and the elementwise nest that reads it, by one node: a product with an epilogue.

The kernel of the product then computes the nest from each element of the product while that is in a
register: biases, activations, their derivatives, sums of residuals. The product is stored only if something
else reads it. A nest reads at most one product so; it must have the product's elements as its iterations, in
row-major order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dualflow.core.records import NamedTuple
from dualflow.graph.cost_model import CostModel
from dualflow.graph.failing import may_fail
from dualflow.graph.fused import FUSED, FUSED_PRODUCT, Axes, IterationSpace, operands_with_axes
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, copied, rebuild, removal
from dualflow.graph.views import base_of, is_view
from dualflow.ops.op_kinds import Elementwise
from dualflow.schedule.copying import COPY
from dualflow.schedule.operands import CallKind, is_contiguous_view, kind_of


class _Match(NamedTuple):
    """A product with an epilogue.

    Attributes:
        product: the product.
        views: the views between the product and the nest, which show all elements in order.
        element: the value that the nest reads: the product, or the last view.
        is_stored: whether something else reads it.
    """

    product: Node
    views: tuple[Node, ...]
    element: Value
    is_stored: bool


def with_product_epilogues(graph: Graph, replacements: dict[Value, Value] | None, costs: CostModel) -> Graph:
    """``graph`` in which products compute the elementwise nests that read them first.

    The new value of each replaced value is added to ``replacements``. An epilogue has fewer ops than what
    ``costs`` counts as a long kernel, since a work-item computes it for several elements.
    """
    matches = _matches(graph, costs)
    if not matches:
        return graph
    removed = {node for match in matches.values() for node in (match.product, *match.views)}
    replaced: dict[Value, Value] = {}

    def rule(node: Node, current: Node) -> Expansion | None:
        if node in removed:
            return removal(node)
        match = matches.get(node)
        if match is None:
            return None
        operands = [replaced.get(v, v) for v in match.product.inputs]
        fused = _fused_product(match, current, operands, node.inputs.index(match.element))
        if match.is_stored:
            replaced[match.element] = fused.outputs[-1]
        return Expansion((fused,), fused.outputs[: len(node.outputs)])

    changed = rebuild(graph, rule, replaced)
    if replacements is not None:
        replacements.update({old: replaced.get(new, new) for old, new in replacements.items()})
        replacements.update({old: new for old, new in replaced.items() if old not in replacements})
    return changed


def _matches(graph: Graph, costs: CostModel) -> dict[Node, _Match]:
    """For each nest that becomes an epilogue, its product and the views between."""
    index = {node: i for i, node in enumerate(graph.nodes)}
    users, results = graph.users(), set(graph.results)
    matches: dict[Node, _Match] = {}
    for product in graph.nodes:
        if kind_of(product) is not CallKind.PRODUCT or not product.output.spec.dtype.is_floating:
            continue
        element, views = product.output, []
        while len(readers := users.get(element, [])) == 1 and is_view(readers[0]) and element not in results:
            views.append(readers[0])
            element = readers[0].output
        if not readers or not is_contiguous_view(element, product.output):
            continue
        nest, *others = sorted(readers, key=index.__getitem__)
        if nest not in matches and _is_epilogue(nest, element, costs):
            is_stored = bool(others) or element in results
            matches[nest] = _Match(product, tuple(views), element, is_stored)
    return matches


def _is_epilogue(node: Node, element: Value, costs: CostModel) -> bool:
    """Whether ``node`` is a nest of elementwise ops whose iterations are the elements of ``element``."""
    if node.op is not FUSED or may_fail(node):
        return False
    if [v for v in node.inputs if base_of(v) is base_of(element)] != [element]:
        return False
    body: Graph = node.attrs["body"]
    space: IterationSpace = node.attrs["space"]
    computed = [n for n in body.nodes if n in space.index_axes]
    if len(computed) >= costs.long_kernel or not all(isinstance(n.op.kind, Elementwise) for n in computed):
        return False
    value = body.inputs[node.inputs.index(element)]
    reads = [(v, axes) for n in computed for v, axes in _reads(n, space.index_axes) if base_of(v) is value]
    stores = [space.index_axes.get(v.node) for v in body.outputs if v.node is not None]
    rank = len(space.shape)
    return (
        value not in body.outputs
        and all(v is value and _is_row_major(axes, rank) for v, axes in reads)
        and all(axes is not None and _is_row_major(axes, rank) for axes in stores)
    )


def _is_row_major(axes: Axes, rank: int) -> bool:
    """Whether a value has all axes of an iteration space, in order."""
    return [a for a in axes if a is not None] == list(range(rank))


def _fused_product(match: _Match, nest: Node, operands: Sequence[Value], position: int) -> Node:
    """The product with its epilogue; if the product is stored, it is the last output.

    Args:
        match: the product and the views.
        nest: the nest.
        operands: the operands of the product.
        position: the number of the nest's input that is the product.
    """
    body: Graph = nest.attrs["body"]
    space: IterationSpace = nest.attrs["space"]
    value = body.inputs[position]
    factors = [Value(v.spec) for v in operands]
    new = dict(zip(match.product.inputs, factors, strict=True))
    nodes = copied((match.product, *match.views), new)
    new[value] = nodes[-1].output
    others = [i for i in range(len(body.inputs)) if i != position]
    new.update({body.inputs[i]: Value(body.inputs[i].spec) for i in others})
    inner = copied(body.nodes, new)
    copy_of = dict(zip(body.nodes, inner, strict=True))
    index_axes: Mapping[Node, Axes] = {copy_of[n]: axes for n, axes in space.index_axes.items()}
    outputs = [new[v] for v in body.outputs]
    if match.is_stored:
        copy = Node(COPY, [new[value]], {}, [value.spec], match.product.origin)
        axes = next(a for n in inner for v, a in _reads(n, index_axes) if v is new[value])
        inner, outputs, index_axes = [*inner, copy], [*outputs, copy.output], {**index_axes, copy: axes}
    repeated = frozenset([copy_of[n] for n in space.repeated])
    name = f"{match.product.op.name}+{body.name}"
    graph = Graph(name, (*factors, *(new[body.inputs[i]] for i in others)), (*nodes, *inner), tuple(outputs))
    attrs = {"body": graph, "space": IterationSpace(space.shape, space.reduced, index_axes, repeated)}
    inputs = (*operands, *(nest.inputs[i] for i in others))
    merged = (*match.product.merged_origins, *nest.merged_origins)
    return Node(FUSED_PRODUCT, inputs, attrs, [v.spec for v in outputs], nest.origin, merged)


def _reads(node: Node, index_axes: Mapping[Node, Axes]) -> Sequence[tuple[Value, Axes]]:
    """The operands of a node of the body, each with its axes."""
    if node not in index_axes:
        return ()
    return operands_with_axes(node, index_axes[node])
