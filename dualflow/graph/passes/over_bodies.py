"""Applies passes to the bodies of branches and loops. No function here recurses: bodies may nest deeply."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dualflow.core.records import NamedTuple
from dualflow.graph.ir import BodySpec, Graph, Node
from dualflow.graph.rewrite import Expansion, expand, replaced_by
from dualflow.ops.op_kinds import CONTROL

Transform = Callable[[Graph], Graph]


def inside_out(transform: Transform) -> Transform:
    """The pass that applies ``transform`` to all bodies, the innermost first, and then to the graph."""

    def run(graph: Graph) -> Graph:
        """Transform the bodies, then the graph, which has the nodes hoisted from the bodies by then."""
        return _nested(graph, _unchanged, transform)

    return run


def outside_in(transform: Transform) -> Transform:
    """The pass that applies ``transform`` to the graph, and then to the bodies that remain in it."""
    return lambda graph: _nested(graph, transform, _unchanged)


def map_bodies(graph: Graph, change: Transform) -> Graph:
    """``graph`` with ``change`` applied to each body of its branches and loops, not to bodies in these."""

    def changed(node: Node) -> Expansion | None:
        ((name, spec),) = node.attrs.items()
        assert isinstance(spec, BodySpec), f"{node} has no graphs inside"
        new = spec.with_bodies(change)
        if new is spec:
            return None
        return replaced_by(node.like(node.op, node.inputs, {name: new}, node.specs))

    return expand(graph, changed, CONTROL)


class _Visit(NamedTuple):
    """A graph whose bodies are being transformed.

    Attributes:
        graph: the graph.
        remaining: the bodies to transform, the next one last.
        done: the transformed bodies, in order.
    """

    graph: Graph
    remaining: list[Graph]
    done: list[Graph]


def _nested(graph: Graph, before: Transform, after: Transform) -> Graph:
    """``graph`` after ``before``, then this function of each of its bodies, then ``after``."""
    visits = [_visit(before(graph))]
    while True:
        current = visits[-1]
        if current.remaining:
            visits.append(_visit(before(current.remaining.pop())))
            continue
        visits.pop()
        changed = after(_with_bodies(current.graph, iter(current.done)))
        if not visits:
            return changed
        visits[-1].done.append(changed)


def _with_bodies(graph: Graph, bodies: Iterator[Graph]) -> Graph:
    return map_bodies(graph, lambda _: next(bodies))


def _visit(graph: Graph) -> _Visit:
    bodies: list[Graph] = []

    def collect(body: Graph) -> Graph:
        bodies.append(body)
        return body

    map_bodies(graph, collect)
    return _Visit(graph, bodies[::-1], [])


def _unchanged(graph: Graph) -> Graph:
    return graph
