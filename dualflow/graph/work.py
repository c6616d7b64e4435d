"""How much a node computes and moves, from its op's form and its sizes."""

from __future__ import annotations

from dualflow.core.spec import TensorSpec
from dualflow.graph.axes import base_of
from dualflow.graph.control_spec import loop_of
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Node, Value
from dualflow.graph.scalars import bodies
from dualflow.ops.forms import Choice, Contraction, Element, Fold, Literal, Loop, Scatter, Take, View


def work(node: Node) -> float:
    """The cost of a node in additions, from its op's form and its sizes.

    A kernel costs what its ops do, a choice its dearest branch, a loop all of its iterations: one iteration
    where their number is not known. Sizes that are not known count as none.
    """
    form, body = node.op.form, body_of(node)
    made = float(sum(_size(spec) for spec in node.specs))
    read = [float(_size(v.spec)) for v in node.inputs]
    if body is not None:
        return sum(map(work, body.nodes))
    if isinstance(form, View | Literal):
        return 0.0
    if isinstance(form, Choice):
        return max(sum(map(work, branch.nodes)) for branch in bodies(node))
    if isinstance(form, Loop):
        return (iterations(node) or 1) * sum(work(n) for iteration in bodies(node) for n in iteration.nodes)
    if isinstance(form, Contraction):
        return 2 * made * _contracted(node)
    if isinstance(form, Element):
        return made * form.cost
    if isinstance(form, Fold):
        return read[0]
    if isinstance(form, Take):
        return made
    if isinstance(form, Scatter):
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
    put = _picked(node) if isinstance(node.op.form, Scatter) else None
    return sum(read.values()) + sum(map(_bytes, node.specs if put is None else [put]))


def computes(node: Node) -> bool:
    """Whether ``node`` is a step of its own: neither a view nor a number that is known."""
    return not isinstance(node.op.form, View | Literal)


def _picked(node: Node) -> TensorSpec | None:
    """The elements of its first input that a node touches; None for all."""
    form = node.op.form
    if isinstance(form, Take):
        return node.output.spec
    return node.inputs[-1].spec if isinstance(form, Scatter) and form.onto else None


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
