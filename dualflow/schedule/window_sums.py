"""Depthwise convolutions: windows of a tensor times a filter, summed per channel.

The routine for them reads the tensor itself, and not the zeros around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.graph.cost_model import CostModel
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.scalar_functions import scalar_op_of
from dualflow.graph.views import sizes
from dualflow.ops.broadcasting import REDUCE_SUM
from dualflow.ops.op_kinds import CopyPieces, View
from dualflow.scalar import ScalarOp
from dualflow.schedule.operands import PRODUCT_CHARS
from dualflow.schedule.sliding import WINDOW_SUM, SlidingAxis, SlidingWindows
from dualflow.sizes.symbolic_sizes import is_static

MAX_WINDOW_AXES = 2
"""The largest number of axes that such windows slide over."""
MAX_WINDOW_ELEMENTS = 64
"""The largest number of elements of a window that a reduction adds sequentially, as the routine does."""


def sum_of_windows(node: Node, costs: CostModel) -> Node | None:
    """The node that replaces a kernel which only sums windows times a filter; None for any other kernel.

    All sizes but the number of images are static.
    """
    body = body_of(node)
    axes = None if body is None else _summed_axes(body)
    if axes is None or node.output.spec.dtype.char not in PRODUCT_CHARS:
        return None
    for view, weights in (node.inputs, node.inputs[::-1]):
        producer = view.node
        if producer is None or not isinstance(producer.op.kind, View) or not producer.op.kind.sliding:
            continue
        inner = tuple(range(1 + len(axes), 1 + 2 * len(axes)))
        source, windows = sliding_windows(producer)
        static = is_static([windows.channels, *[n for axis in windows.axes for n in axis]])
        fits = static and axes == inner and len(windows.axes) == len(axes)
        if fits and _is_supported(windows, weights, costs):
            attrs = {"windows": windows}
            return Node(WINDOW_SUM, [source, weights], attrs, node.specs, node.origin, node.merged_origins)
    return None


def _summed_axes(body: Graph) -> tuple[int, ...] | None:
    """The axes over which a graph sums the product of its two inputs; None for any other graph."""
    if len(body.nodes) != 2 or len(body.inputs) != 2 or len(body.outputs) != 1:
        return None
    product, total = body.nodes
    matches = (
        scalar_op_of(product) is ScalarOp.MULTIPLY
        and set(product.inputs) == set(body.inputs)
        and total.op is REDUCE_SUM
        and total.inputs[0] is product.output
        and body.outputs[0] is total.output
        and not total.attrs["keepdims"]
    )
    return tuple(total.attrs["axis"]) if matches else None


def _is_supported(windows: SlidingWindows, weights: Value, costs: CostModel) -> bool:
    """Whether the routine supports these windows, and the filter has their shape."""
    lengths = [a.length for a in windows.axes]
    return (
        0 < len(lengths) <= MAX_WINDOW_AXES
        and windows.channels >= costs.copied_run
        and 0 < math.prod(lengths) <= MAX_WINDOW_ELEMENTS
        and tuple(sizes(weights)) == (*lengths, windows.channels)
    )


def sliding_windows(node: Node) -> tuple[Value, SlidingWindows]:
    """The tensor that the windows of a view slide over, without padding, and the geometry of the windows."""
    source, paddings = _unpadded(node.inputs[0])
    shape = sizes(source)
    length, strides, dilations = (node.attrs[key] for key in ("size", "strides", "dilations"))
    counts = sizes(node.output)[1 : 1 + len(length)]
    before = [pair[0] for pair in paddings[1:-1]]
    axes = zip(shape[1:-1], before, counts, strides, length, dilations, strict=True)
    return source, SlidingWindows(tuple([SlidingAxis(*axis) for axis in axes]), shape[-1])


def _unpadded(value: Value) -> tuple[Value, Sequence[tuple[int, int]]]:
    """If ``value`` is a tensor padded with zeros: the tensor, and the padding before and after each axis."""
    node = value.node
    kind = None if node is None else node.op.kind
    if node is not None and isinstance(kind, CopyPieces) and kind.is_pad and node.attrs["value"] == 0:
        paddings = node.attrs["paddings"]
        if paddings[0] == paddings[-1] == (0, 0):
            return node.inputs[0], paddings
    return value, [(0, 0)] * value.spec.rank
