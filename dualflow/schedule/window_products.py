"""Replaces products and sums of sliding windows (convolutions) by nodes that read the tensor itself.

The matrix whose rows are windows has many times the elements of the tensor. A product by blocks needs only a
block of it at a time, and doesn't read the zeros around the tensor.
"""

from __future__ import annotations

import math

from dualflow.graph.cost_model import CostModel
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import Expansion, rebuild, replaced_by
from dualflow.graph.views import sizes
from dualflow.ops.op_kinds import MatMul, View
from dualflow.schedule.operands import PRODUCT_CHARS, is_contiguous_view
from dualflow.schedule.sliding import MAX_AXES, WINDOW_PRODUCT, SlidingWindows
from dualflow.schedule.window_sums import sliding_windows, sum_of_windows
from dualflow.sizes.symbolic_sizes import typical


def with_window_products(graph: Graph, replacements: dict[Value, Value] | None, costs: CostModel) -> Graph:
    """``graph`` in which convolutions read their tensor, without the unused windows and padding.

    The new value of each replaced value is added to ``replacements``.
    """

    def product(node: Node, current: Node) -> Expansion | None:
        replacement = _window_product(current, costs) or sum_of_windows(current, costs)
        return None if replacement is None else replaced_by(replacement)

    if not any(isinstance(n.op.kind, View) and n.op.kind.sliding for n in graph.nodes):
        return graph
    changed = rebuild(graph, product, replacements)
    return graph if changed is graph else _without_dead_nodes(changed, graph)


def _without_dead_nodes(graph: Graph, before: Graph) -> Graph:
    """``graph`` without dead nodes, but with all inputs."""
    live = eliminate_dead_code(graph)
    return before.with_results(graph.results, nodes=live.nodes)


def _window_product(node: Node, costs: CostModel) -> Node | None:
    """A product that reads windows of a tensor without copying them; None if it is no faster."""
    kind, spec = node.op.kind, node.outputs[0].spec if node.outputs else None
    if not isinstance(kind, MatMul) or spec is None or spec.dtype.char not in PRODUCT_CHARS:
        return None
    view = _sliding(node.inputs[0]) if spec.rank == 2 else None
    if view is None:
        return None
    source, windows = sliding_windows(view)
    if (
        len(windows.axes) > MAX_AXES
        or _copies_short_runs(windows, spec.shape[1], costs)
        or _is_strided_matrix(windows)
    ):
        return None
    attrs = {**node.attrs, "windows": windows}
    inputs = [source, *node.inputs[1:]]
    return Node(WINDOW_PRODUCT, inputs, attrs, node.specs, node.origin, node.merged_origins)


def _sliding(value: Value) -> Node | None:
    """The node of sliding windows whose rows ``value`` has; None for any other value."""
    node = value.node
    while node is not None and isinstance(node.op.kind, View) and not node.op.kind.sliding:
        node = node.inputs[0].node
    if node is None or not isinstance(node.op.kind, View) or not is_contiguous_view(value, node.output):
        return None
    shape, axes = sizes(node.output), len(node.attrs["size"])
    matrix = math.prod(shape[: 1 + axes]), math.prod(shape[1 + axes :])
    return node if sizes(value) == matrix else None


def _copies_short_runs(windows: SlidingWindows, columns: int | None, costs: CostModel) -> bool:
    """Whether the product would copy each window separately, a few elements at a time.

    Windows of a static filter are read from copies of whole lines, except in a product with one column.
    """
    separate = columns == 1 or not windows.has_static_filter
    return separate and typical(windows.contiguous_elements) < costs.copied_run


def _is_strided_matrix(windows: SlidingWindows) -> bool:
    """Whether windows have one element each, so that strides express their matrix."""
    return all(a.length == a.stride == 1 and a.before == 0 and a.windows == a.size for a in windows.axes)
