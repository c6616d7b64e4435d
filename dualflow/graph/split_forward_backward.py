"""A graph with its gradient, cut into what runs now and what runs when the gradient is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from dualflow.core.records import NamedTuple
from dualflow.graph.extract import ancestors, extract
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.op_kinds import Literal, View


class SourceKind(Enum):
    """What the way back reads of the joint graph."""

    INPUT = "an input"
    OUTPUT = "one of the first outputs"
    RESIDUAL = "a value that the way forward hands out beside them"


Source = tuple[SourceKind, int]
"""Which, and its place among them."""


class Halves(NamedTuple):
    """The two graphs.

    Attributes:
        forward: from the first inputs to the first outputs, then the residuals.
        backward: from ``sources`` to the remaining outputs.
        sources: where each argument of ``backward`` comes from: an input of the joint graph (so also what
            only the backward half reads, the cotangents), one of its first outputs, or a residual.
    """

    forward: Graph
    backward: Graph
    sources: tuple[Source, ...]


def halve(joint: Graph, inputs: int, outputs: int, effects: int, lasting: Sequence[Value] = ()) -> Halves:
    """Cut ``joint``.

    All that the first ``outputs``, the updates and the first ``effects`` nodes with an effect need runs
    forward, from the first ``inputs``. A residual is a value of the forward half that the backward half
    reads; inputs, constants and views that are no smaller than what they show are taken from where they come
    from instead. What depends on the inputs ``lasting`` alone is computed again, and so is what has no known
    size.
    """
    active = [n for n in joint.nodes if n.effect is not None]
    first, last = active[:effects], active[effects:]
    ahead, _ = ancestors([*joint.outputs[:outputs], *(u.value for u in joint.updates)], (), first)
    flows = joint.outputs[outputs:]
    kept = ahead - _computed_again(joint, ahead, lasting)
    read = _read([*flows, *(v for n in last for v in n.inputs)], kept)
    given = [v for v in joint.arguments if v in read]
    saved = [v for n in joint.nodes if n in kept for v in n.outputs if v in read]
    place = {v: i for i, v in reversed(list(enumerate(joint.outputs[:outputs])))}
    residuals = [v for v in saved if v not in place]
    slot = {v: i for i, v in enumerate(residuals)}
    at = {v: i for i, v in enumerate(joint.arguments)}
    sources: list[Source] = [(SourceKind.INPUT, at[v]) for v in given]
    sources += [
        (SourceKind.OUTPUT, place[v]) if v in place else (SourceKind.RESIDUAL, slot[v]) for v in saved
    ]
    return Halves(
        extract(
            joint,
            joint.arguments[:inputs],
            [*joint.outputs[:outputs], *residuals],
            updates=joint.updates,
            effects=first,
        ),
        extract(joint, [*given, *saved], flows, name=f"{joint.name}_backward", effects=last),
        tuple(sources),
    )


def _computed_again(joint: Graph, ahead: set[Node], lasting: Sequence[Value]) -> set[Node]:
    """The nodes of ``ahead`` whose values aren't kept: see :func:`halve`."""
    known = set(lasting)
    found = {n for n in ahead if not all(v.spec.shape.is_static for v in n.outputs) and n.effect is None}
    for node in joint.nodes if lasting else ():
        if node in ahead and node.inputs and known.issuperset(node.inputs) and node.effect is None:
            known.update(node.outputs)
            found.add(node)
    return found


def _read(wanted: Sequence[Value], ahead: set[Node]) -> set[Value]:
    """The inputs and forward values on which ``wanted`` depends directly."""
    found: set[Value] = set()
    seen: set[Value] = set()
    pending = list(wanted)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        node = value.node
        if node is None or (node in ahead and not _free(node)):
            found.add(value)
        else:
            pending += node.inputs
    return found


def _free(node: Node) -> bool:
    """Whether making the node's value again costs nothing and keeps no more memory than the value itself."""
    if isinstance(node.op.kind, Literal):
        return True
    if not isinstance(node.op.kind, View) or not all(
        v.spec.shape.is_static for v in (*node.inputs, *node.outputs)
    ):
        return False
    return sum(v.spec.nbytes for v in node.inputs) <= node.output.spec.nbytes
