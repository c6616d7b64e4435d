"""Which values of a graph differ from row to row, given which inputs do."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.graph.ir import Graph
from dualflow.ops.record import Effect


def by_row(graph: Graph, inputs: Sequence[bool]) -> list[bool]:
    """For each output whether it may differ: it depends on an input that does, or on random numbers."""
    found = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        differs = node.effect is Effect.RANDOM or any(found[v] for v in node.inputs)
        found.update(dict.fromkeys(node.outputs, differs))
    return [found[v] for v in graph.outputs]


def carried_by_row(body: Graph, carried: Sequence[bool], others: Sequence[bool]) -> list[bool]:
    """For each carried value of a loop whether it may differ in some iteration, from how they begin."""
    found = list(carried)
    while True:
        after = by_row(body, [*found, *others])[: len(found)]
        joined = [a or b for a, b in zip(found, after, strict=True)]
        if joined == found:
            return found
        found = joined
