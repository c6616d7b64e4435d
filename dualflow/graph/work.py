"""How much a node computes and moves, from its op's form and its sizes."""

from __future__ import annotations

from dualflow.core.spec import TensorSpec
from dualflow.graph.axes import base_of
from dualflow.graph.control_spec import loop_of
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Node, Value
from dualflow.graph.scalars import bodies
from dualflow.ops.op_kinds import Cond, Elementwise, Gather, Literal, Loop, MatMul, Reduce, Scatter, View


def work(node: Node) -> float:
    """The cost of a node in additions, from its op's form and its sizes.

    A kernel costs what its ops do, a conditional its dearest branch, a loop all of its iterations: one
    iteration where their number is not known. Sizes that are not known count as none.
    """
    kind, body = node.op.kind, body_of(node)
    made = float(sum(_size(spec) for spec in node.specs))
    read = [float(_size(v.spec)) for v in node.inputs]
    if body is not None:
        return sum(map(work, body.nodes))
    if isinstance(kind, View | Literal):
        return 0.0
    if isinstance(kind, Cond):
        return max(sum(map(work, branch.nodes)) for branch in bodies(node))
    if isinstance(kind, Loop):
        return (iterations(node) or 1) * sum(work(n) for iteration in bodies(node) for n in iteration.nodes)
    if isinstance(kind, MatMul):
        return 2 * made * _contracted(node)
    if isinstance(kind, Elementwise):
        return made * kind.cost
    if isinstance(kind, Reduce):
        return read[0]
    if isinstance(kind, Gather):
        return made
    if isinstance(kind, Scatter):
        return read[-1]
    return max([made, *read])


def bytes_moved(node: Node) -> int:
    """What a node reads and writes in bytes, each value once; where it picks elements, those it picks."""
    body = body_of(node)
    read: dict[Value, int] = {}
    for part in filter(computes, (node,) if body is None else body.nodes):
        for slot, value in enumerate(part.inputs):
            base = base_of(value)
            if body is None or base.node is None:
                seen = _picked(part) if slot == 0 else None
                found = min(_bytes(base.spec), _bytes(value.spec if seen is None else seen))
                read[base] = max(read.get(base, 0), found)
    put = _picked(node) if isinstance(node.op.kind, Scatter) else None
    return sum(read.values()) + sum(map(_bytes, node.specs if put is None else [put]))


def computes(node: Node) -> bool:
    """Whether ``node`` is a step of its own: neither a view nor a number that is known."""
    return not isinstance(node.op.kind, View | Literal)


def _picked(node: Node) -> TensorSpec | None:
    """The elements of its first input that a node touches; None for all."""
    kind = node.op.kind
    if isinstance(kind, Gather):
        return node.output.spec
    return node.inputs[-1].spec if isinstance(kind, Scatter) and kind.onto else None


def _size(spec: TensorSpec) -> int:
    return spec.shape.num_elements() or 0


def _bytes(spec: TensorSpec) -> int:
    return _size(spec) * spec.dtype.size


def iterations(node: Node) -> int | None:
    """The number of iterations of a loop; None where only the run knows."""
    loop = loop_of(node)
    if loop.condition is not None:
        return None
    return loop.length if loop.length is not None else node.inputs[loop.carried].spec.shape[0]


def _contracted(node: Node) -> float:
    """How many products each element of a matrix product adds up."""
    return float(node.inputs[0].spec.shape[-2 if node.attrs.get("transpose_a") else -1])
