"""Matrix products and sums of windows of a tensor: they read the windows where those lie.

A matrix of windows, each a row, has an element for each element of each window, many times what the tensor
has. A product that takes it in blocks needs no more of it than a block at a time, and zeros around the tensor
are not read at all.
"""

from __future__ import annotations

import math

from dualflow.core.symbolic_sizes import typical
from dualflow.graph.axes import sizes
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import Expansion, by, rebuild
from dualflow.ops.op_kinds import MatMul, View
from dualflow.schedule.operands import PRODUCT_CHARS, shows_in_order
from dualflow.schedule.sliding import MOST_AXES, WINDOW_PRODUCT, SlidingWindows
from dualflow.schedule.window_sums import seen_windows, sum_of_windows


def with_window_products(
    graph: Graph, moved: dict[Value, Value] | None = None, costs: CostModel = CPU
) -> Graph:
    """``graph`` where products of windows read the tensor; windows and zeros nobody else reads are gone.

    ``moved`` learns which values take the place of others.
    """

    def product(node: Node, current: Node) -> Expansion | None:
        found = _of_windows(current, costs) or sum_of_windows(current, costs)
        return None if found is None else by(found)

    if not any(isinstance(n.op.kind, View) and n.op.kind.sliding for n in graph.nodes):
        return graph
    changed = rebuild(graph, product, moved)
    return graph if changed is graph else _used(changed, graph)


def _used(graph: Graph, before: Graph) -> Graph:
    """``graph`` without the nodes that nobody reads, but with all inputs."""
    kept = eliminate_dead_code(graph)
    return before.with_results(graph.results, nodes=kept.nodes)


def _of_windows(node: Node, costs: CostModel) -> Node | None:
    """A product as one that reads windows where they lie; None where it has none, or reads them as well."""
    kind, spec = node.op.kind, node.outputs[0].spec if node.outputs else None
    if not isinstance(kind, MatMul) or spec is None or spec.dtype.char not in PRODUCT_CHARS:
        return None
    seen = _sliding(node.inputs[0]) if spec.rank == 2 else None
    if seen is None:
        return None
    source, lie = seen_windows(seen)
    if len(lie.axes) > MOST_AXES or typical(lie.run) < costs.copied_run or _lies_as_matrix(lie):
        return None
    attrs = {**node.attrs, "windows": lie}
    inputs = [source, *node.inputs[1:]]
    return Node(WINDOW_PRODUCT, inputs, attrs, node.specs, node.origin, node.also)


def _sliding(value: Value) -> Node | None:
    """The node of the windows whose rows ``value`` is, in order."""
    node = value.node
    while node is not None and isinstance(node.op.kind, View) and not node.op.kind.sliding:
        node = node.inputs[0].node
    if node is None or not isinstance(node.op.kind, View) or not shows_in_order(value, node.output):
        return None
    shape, axes = sizes(node.output), len(node.attrs["size"])
    matrix = math.prod(shape[: 1 + axes]), math.prod(shape[1 + axes :])
    return node if sizes(value) == matrix else None


def _lies_as_matrix(lie: SlidingWindows) -> bool:
    """Whether windows are of one element, and one for each element: strides can say so."""
    return all(a.length == a.stride == 1 and a.before == 0 and a.windows == a.size for a in lie.axes)
