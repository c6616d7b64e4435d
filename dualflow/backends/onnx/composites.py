"""Matches composites, functions of several ops, for which ONNX has one op: convolutions, pooling, softmax.

A composite with a custom gradient ends with a ``custom_gradient`` node, whose rule has the layout of the
windows. One op replaces this node before the algebra pass removes it; the other ops of the composite are
then dead code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import float16, float32, float64
from dualflow.core.errors import InternalError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.pipeline import Pass
from dualflow.graph.rewrite import Expansion, producer, rebuild
from dualflow.graph.views import sizes
from dualflow.ops.arithmetic import divide, subtract
from dualflow.ops.broadcasting import REDUCE_SUM
from dualflow.ops.conversion import stop_gradient
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.exponential import exp
from dualflow.ops.neural.correlation import CorrelationVjp, TransposedCorrelationVjp
from dualflow.ops.neural.window_reductions import MaxPoolVjp, SumPoolVjp, counts_inside
from dualflow.ops.neural.windows import Geometry
from dualflow.ops.op_kinds import Literal, Opaque
from dualflow.ops.record import Op
from dualflow.ops.reduction import REDUCE_MAX
from dualflow.sizes.symbolic_sizes import is_static

_KIND: Final = Opaque("an op of exported graphs")
"""The kind of the ops below: the pass :data:`COMPOSITES` adds their nodes, and ``products.py`` writes them.

No graph with such nodes is compiled, so that no other code reads the kind.
"""


def _op(name: str, doc: str, shape: Callable[..., list[Any]]) -> Op:
    """An op that only the exporter supports: it has no kernel."""

    def infer(x: TensorSpec, *others: TensorSpec, **attrs: Any) -> TensorSpec:
        return TensorSpec.of(Shape(shape(x.shape, *[other.shape for other in others], **attrs)), x.dtype)

    def kernel(*arrays: Any, **attrs: Any) -> Any:
        raise InternalError(f"{name} is written by the exporter only")

    return Op(name=name, doc=doc, infer=infer, kernel=kernel, kind=_KIND)


def _pooled_shape(x: Shape, layout: Geometry) -> list[Any]:
    return [x[0], *layout.counts(x[1:-1]), x[-1]]


CONVOLUTION: Final = _op(
    "convolution",
    "The products of windows of ``x`` with the filter ``w``.",
    lambda x, w, geometry, groups: [*_pooled_shape(x, geometry)[:-1], w[-1]],
)
TRANSPOSED_CONVOLUTION: Final = _op(
    "transposed_convolution",
    "The adjoint of a convolution: each element of ``y`` times the filter, summed where windows overlap.",
    lambda y, w, geometry, output_padding, spatial: [y[0], *spatial, w[-2]],
)
MAX_POOL: Final = _op("max_pool", "The maximum of each window.", _pooled_shape)
MEAN_POOL: Final = _op(
    "mean_pool", "The mean of the elements of each window that are in the tensor.", _pooled_shape
)
SOFTMAX: Final = _op("softmax", "The softmax over an axis.", lambda x, axis: list(x))
SUM_POOL: Final = _op("sum_pool", "The sum of each window.", _pooled_shape)


def with_composites(graph: Graph) -> Graph:
    """``graph`` with one op for each convolution, pooling and softmax."""
    changed = rebuild(graph, lambda _, node: _composite(node))
    return graph if changed is graph else eliminate_dead_code(changed)


COMPOSITES: Final = Pass(
    "composites",
    "first: algebra removes the custom_gradient nodes by which composites are recognised",
    lambda graph, options: with_composites(graph),
    in_bodies=True,
)


def _composite(node: Node) -> Expansion | None:
    if node.op is divide.op:
        return _mean(node) or _softmax(node)
    if node.op is not CUSTOM:
        return None
    rule, (value, *operands) = node.attrs["grad"], node.inputs
    dtype = value.spec.dtype
    match rule:
        case CorrelationVjp(geometry) if dtype in (float16, float32) and _has_onnx_padding(geometry):
            x, w = operands
            groups = x.spec.shape[-1] // w.spec.shape[-2]
            return _replaced(node, CONVOLUTION, operands, {"geometry": geometry, "groups": groups})
        case TransposedCorrelationVjp(geometry) if dtype in (float16, float32) and _has_onnx_padding(
            geometry
        ):
            output_padding = _output_padding(geometry, operands[0], value)
            if output_padding is not None and operands[1].spec.shape[-2] == value.spec.shape[-1]:
                attrs = {
                    "geometry": geometry,
                    "output_padding": output_padding,
                    "spatial": sizes(value)[1:-1],
                }
                return _replaced(node, TRANSPOSED_CONVOLUTION, operands, attrs)
        case MaxPoolVjp(layout) if dtype in (float16, float32, float64) and _has_onnx_padding(layout):
            return _replaced(node, MAX_POOL, operands, {"layout": layout})
        case SumPoolVjp(layout) if dtype in (float16, float32) and _has_onnx_padding(layout):
            return _replaced(node, SUM_POOL, operands, {"layout": layout})
    return None


def _replaced(node: Node, op: Op, operands: Any, attrs: Mapping[str, Any]) -> Expansion:
    new = Node(op, operands, attrs, node.specs, node.origin, node.merged_origins)
    return Expansion((new,), new.outputs)


def _has_onnx_padding(geometry: Geometry) -> bool:
    """Whether no element is removed before the windows are taken, and padding is less than a window."""
    pairs = zip(geometry.pairs, geometry.dilated_size, strict=True)
    return all(0 <= before < reach and 0 <= after < reach for (before, after), reach in pairs)


def _output_padding(geometry: Geometry, y: Value, result: Value) -> tuple[int, ...] | None:
    """The positions after the last window of each axis, which ONNX calls output_padding; None if too many."""
    counts, spatial = sizes(y)[1:-1], sizes(result)[1:-1]
    if not is_static(counts) or not is_static(spatial):
        return None
    axes = zip(counts, spatial, geometry.strides, geometry.dilated_size, geometry.pairs, strict=True)
    output_padding = tuple([n + sum(pair) - (count - 1) * s - size for count, n, s, size, pair in axes])
    limits = [max(s, d) for s, d in zip(geometry.strides, geometry.dilations, strict=True)]
    if all(0 <= b < limit for b, limit in zip(output_padding, limits, strict=True)):
        return output_padding
    return None


def _mean(node: Node) -> Expansion | None:
    """The mean of windows, if ``node`` divides their sums by the numbers of elements inside of the tensor."""
    pool, number = node.inputs[0].node, node.inputs[1].node
    if pool is None or pool.op is not SUM_POOL or number is None or not isinstance(number.op.kind, Literal):
        return None
    layout, spatial = pool.attrs["layout"], sizes(pool.inputs[0])[1:-1]
    if not is_static(spatial) and any(any(pair) for pair in layout.pairs):
        return None
    counts = counts_inside(layout, spatial)
    if not np.array_equal(np.broadcast_to(number.attrs["value"], np.shape(counts)), counts):
        return None
    return _replaced(node, MEAN_POOL, pool.inputs, {"layout": layout})


def _softmax(node: Node) -> Expansion | None:
    """The softmax, if ``node`` is ``e / sum(e)`` for ``e = exp(x - max(x))`` over one axis."""
    power, total = producer(node.inputs[0], exp.op), producer(node.inputs[1], REDUCE_SUM)
    shifted = None if power is None else producer(power.inputs[0], subtract.op)
    if shifted is None or total is None or total.inputs[0] is not node.inputs[0]:
        return None
    x, largest = shifted.inputs[0], producer(shifted.inputs[1], stop_gradient.op)
    maximum = producer(largest.inputs[0] if largest is not None else shifted.inputs[1], REDUCE_MAX)
    settings = {"axis": total.attrs["axis"], "keepdims": True}
    if maximum is None or maximum.inputs[0] is not x or len(settings["axis"]) != 1:
        return None
    if dict(maximum.attrs) != settings or dict(total.attrs) != settings:
        return None
    return _replaced(node, SOFTMAX, (x,), {"axis": settings["axis"][0]})
