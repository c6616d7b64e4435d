"""Windows of a tensor times a filter, summed channel by channel: a depthwise convolution.

The routine for it reads the tensor where it lies, and no zeros around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.core.symbolic_sizes import is_static
from dualflow.graph.axes import sizes
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.scalar_functions import scalar_op_of
from dualflow.ops.broadcasting import REDUCE_SUM
from dualflow.ops.op_kinds import CopyPieces, View
from dualflow.scalar import ScalarOp
from dualflow.schedule.operands import PRODUCT_CHARS
from dualflow.schedule.sliding import WINDOW_SUM, SlidingAxis, SlidingWindows

AXES = 2
"""The most axes that such windows slide over."""
MOST_ELEMENTS = 64
"""The most elements of a window: a fold adds so many one after another, as the routine does."""


def sum_of_windows(node: Node, costs: CostModel = CPU) -> Node | None:
    """A kernel that only adds windows times a filter as the node that reads them where they lie, or None."""
    body = body_of(node)
    axes = None if body is None else _summed_axes(body)
    fixed = axes is not None and all(is_static(sizes(v)) for v in (*node.inputs, node.output))
    if axes is None or not fixed or node.output.spec.dtype.char not in PRODUCT_CHARS:
        return None
    for seen, weights in (node.inputs, node.inputs[::-1]):
        maker = seen.node
        if maker is None or not isinstance(maker.op.kind, View) or not maker.op.kind.sliding:
            continue
        inner = tuple(range(1 + len(axes), 1 + 2 * len(axes)))
        source, lie = seen_windows(maker)
        if axes == inner and len(lie.axes) == len(axes) and _suits(lie, weights, costs):
            attrs = {"windows": lie}
            return Node(WINDOW_SUM, [source, weights], attrs, node.specs, node.origin, node.also)
    return None


def _summed_axes(body: Graph) -> tuple[int, ...] | None:
    """The axes over which the product of the graph's two inputs is summed, where that is all it computes."""
    if len(body.nodes) != 2 or len(body.inputs) != 2 or len(body.outputs) != 1:
        return None
    product, total = body.nodes
    whole = (
        scalar_op_of(product) is ScalarOp.MULTIPLY
        and set(product.inputs) == set(body.inputs)
        and total.op is REDUCE_SUM
        and total.inputs[0] is product.output
        and body.outputs[0] is total.output
        and not total.attrs["keepdims"]
    )
    return tuple(total.attrs["axis"]) if whole else None


def _suits(lie: SlidingWindows, weights: Value, costs: CostModel) -> bool:
    """Whether the routine takes such windows, and a filter that has an element for each of theirs."""
    lengths = [a.length for a in lie.axes]
    return (
        0 < len(lengths) <= AXES
        and lie.channels >= costs.copied_run
        and 0 < math.prod(lengths) <= MOST_ELEMENTS
        and tuple(sizes(weights)) == (*lengths, lie.channels)
    )


def seen_windows(node: Node) -> tuple[Value, SlidingWindows]:
    """What the windows of a view slide over, without the zeros around it, and how they lie there."""
    source, around = _surrounded(node.inputs[0])
    shape = sizes(source)
    length, strides, dilations = (node.attrs[key] for key in ("size", "strides", "dilations"))
    counts = sizes(node.output)[1 : 1 + len(length)]
    before = [pair[0] for pair in around[1:-1]]
    axes = zip(shape[1:-1], before, counts, strides, length, dilations, strict=True)
    return source, SlidingWindows(tuple([SlidingAxis(*axis) for axis in axes]), shape[-1])


def _surrounded(value: Value) -> tuple[Value, Sequence[tuple[int, int]]]:
    """What zeros surround in ``value``, and how many: before and after each axis."""
    node = value.node
    kind = None if node is None else node.op.kind
    if node is not None and isinstance(kind, CopyPieces) and kind.surrounds and node.attrs["value"] == 0:
        paddings = node.attrs["paddings"]
        if paddings[0] == paddings[-1] == (0, 0):
            return node.inputs[0], paddings
    return value, [(0, 0)] * value.spec.rank
