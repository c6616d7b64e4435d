"""Infers which outputs of a graph are batched from which of its inputs are batched."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.graph.ir import Graph
from dualflow.ops.record import Effect


def batched_outputs(graph: Graph, inputs: Sequence[bool]) -> list[bool]:
    """Whether each output is batched: it depends on a batched input, or on random numbers."""
    batched = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        differs = node.effect is Effect.RANDOM or any(batched[v] for v in node.inputs)
        batched.update(dict.fromkeys(node.outputs, differs))
    return [batched[v] for v in graph.outputs]


def batched_carries(body: Graph, carried: Sequence[bool], others: Sequence[bool]) -> list[bool]:
    """Whether each carried value of a loop is batched in some iteration: the least fixed point."""
    batched = list(carried)
    while True:
        after = batched_outputs(body, [*batched, *others])[: len(batched)]
        joined = [a or b for a, b in zip(batched, after, strict=True)]
        if joined == batched:
            return batched
        batched = joined
