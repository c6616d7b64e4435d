"""The work and memory traffic of nodes, from op kinds and sizes."""

from __future__ import annotations

import math
from collections.abc import Callable

from dualflow.core.shape import Dim
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import loop_of
from dualflow.graph.cost_model import CostModel
from dualflow.graph.fused import body_of, computed_nodes, product_of
from dualflow.graph.ir import Node, Value
from dualflow.graph.scalars import bodies
from dualflow.graph.views import base_of, sizes
from dualflow.ops.op_kinds import (
    Cond,
    Elementwise,
    Gather,
    Literal,
    Loop,
    MatMul,
    Reduce,
    Scatter,
    SizeVector,
    View,
)
from dualflow.sizes.symbolic_sizes import typical


def static_size(size: int) -> int:
    """``size``; 0 for a symbolic one."""
    return size if type(size) is int else 0


NumberOf = Callable[[int], int]
"""Returns a number for a size, which may be symbolic."""


def work(node: Node, number_of: NumberOf = static_size) -> float:
    """The cost of a node in additions.

    A kernel costs the sum of its ops, a branch its most expensive body, a loop all of its iterations; a
    dynamic trip count counts as one, and a tensor with a dynamic size as empty. ``number_of``
    maps a symbolic size to a number.
    """
    kind, body = node.op.kind, body_of(node)
    if body is not None:
        return sum([work(n, number_of) for n in body.nodes])
    if isinstance(kind, View | Literal | SizeVector):
        return 0.0
    if isinstance(kind, Reduce):
        return float(_size(node.inputs[0].spec, number_of))
    if isinstance(kind, Cond):
        return max(sum(work(n, number_of) for n in branch.nodes) for branch in bodies(node))
    if isinstance(kind, Loop):
        once = sum(work(n, number_of) for iteration in bodies(node) for n in iteration.nodes)
        return (iterations(node) or 1) * once
    elements = float(sum([_size(v.spec, number_of) for v in node.outputs]))
    if isinstance(kind, MatMul):
        inner = _contracted_size(node)
        return 0.0 if inner is None else 2 * elements * number_of(inner)
    if isinstance(kind, Elementwise):
        return elements * kind.cost
    if isinstance(kind, Gather):
        return elements
    operands = [float(_size(v.spec, number_of)) for v in node.inputs]
    if isinstance(kind, Scatter):
        return operands[-1]
    return max([elements, *operands])


def bytes_moved(node: Node, number_of: NumberOf = static_size) -> int:
    """The bytes that a node reads and writes, each value once; for a gather, the selected elements only."""

    def _bytes(spec: TensorSpec) -> int:
        return _size(spec, number_of) * spec.dtype.size

    body = body_of(node)
    read: dict[Value, int] = {}
    for part in filter(computes, computed_nodes(node)):
        for operand, value in enumerate(part.inputs):
            base = base_of(value)
            if body is None or base.node is None:
                picked = _picked(part) if operand == 0 else None
                nbytes = min(_bytes(base.spec), _bytes(value.spec if picked is None else picked))
                read[base] = max(read.get(base, 0), nbytes)
    scattered = _picked(node) if isinstance(node.op.kind, Scatter) else None
    return sum(read.values()) + sum(map(_bytes, node.specs if scattered is None else [scattered]))


def nanoseconds(node: Node, costs: CostModel, number_of: NumberOf = typical) -> float:
    """The estimated time of ``node`` on one thread; ``number_of`` is called for each size."""
    if isinstance(node.op.kind, MatMul):
        return work(node, number_of) * costs.product_ns / 2  # a multiplication and an addition are two ops
    return max(work(node, number_of) * costs.addition_ns, bytes_moved(node, number_of) * costs.memory_byte_ns)


def element_count(node: Node) -> int:
    """The size of a node's work: the elements of its largest operand; of a product, the multiplications."""
    if isinstance(node.op.kind, MatMul):
        product = product_of(node)
        inner = _contracted_size(product)
        return math.prod((*sizes(product.output), 1 if inner is None else inner))
    body = body_of(node)
    values = [v for n in (body.nodes if body else (node,)) for v in (*n.inputs, *n.outputs)]
    counts = [math.prod(sizes(v)) for v in values if v.spec.shape.is_static]
    return max(counts, key=typical, default=0)


def computes(node: Node) -> bool:
    """Whether ``node`` computes something: it is neither a view nor a constant."""
    return not isinstance(node.op.kind, View | Literal | SizeVector)


def _picked(node: Node) -> TensorSpec | None:
    """The spec of the elements of its first input that a gather or scatter accesses.

    None if it accesses all.
    """
    kind = node.op.kind
    if isinstance(kind, Gather):
        return node.output.spec
    return node.inputs[-1].spec if isinstance(kind, Scatter) and kind.onto else None


def _size(spec: TensorSpec, number_of: NumberOf) -> int:
    count = spec.num_elements
    return 0 if count is None else number_of(count)


def iterations(node: Node) -> int | None:
    """The trip count of a loop; None if it is dynamic."""
    loop = loop_of(node)
    if loop.condition is not None:
        return None
    count = loop.length
    if count is None:
        count = loop.split_inputs(node.inputs).scanned[0].spec.shape[0]
    return count if type(count) is int else None


def _contracted_size(node: Node) -> Dim:
    """The size of the contracted axis of a matrix product."""
    size: Dim = node.inputs[0].spec.shape[-2 if node.attrs.get("transpose_a") else -1]
    return size
