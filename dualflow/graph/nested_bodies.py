"""The bodies inside a graph, innermost first, without recursion: they may nest deeper than Python calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from dualflow.graph.ir import Graph

T = TypeVar("T")


def innermost_first(graph: Graph, skip: Callable[[Graph], bool] = lambda graph: False) -> list[Graph]:
    """The bodies inside ``graph``, each once and after those inside it, and ``graph`` at the end.

    Graphs for which ``skip`` is true are left out, with all bodies inside them.

    >>> import dualflow as df
    >>> f = df.function(lambda x: df.map_fn(lambda y: df.cond(y > 0, lambda: y, lambda: -y), x))
    >>> graph = f.get_concrete_function(df.TensorSpec([3])).graph
    >>> [len(g.ops) for g in innermost_first(graph)][-1] == len(graph.ops)
    True
    """
    ordered: dict[Graph, None] = {}
    pending = [(graph, False)]
    while pending:
        current, inner_done = pending.pop()
        if inner_done:
            ordered[current] = None
        elif current not in ordered and not skip(current):
            pending.append((current, True))
            pending += [(body, False) for node in current.nodes for _, body in node.bodies]
    return list(ordered)


def computed_from_bodies(compute: Callable[[Graph], T]) -> Callable[[Graph], T]:
    """``compute``, a function that calls the result of this one for bodies, computed once for each graph.

    It is computed for bodies before the graphs around them, so its calls don't nest.
    """

    @wraps(compute)
    def computed(graph: Graph) -> T:
        if computed not in graph.facts:
            for current in innermost_first(graph, lambda inner: computed in inner.facts):
                current.facts[computed] = compute(current)
        result: T = graph.facts[computed]
        return result

    return computed
