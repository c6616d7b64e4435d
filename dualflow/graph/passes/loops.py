"""Loops: one that keeps more replaces one that keeps less."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.graph.control_spec import loop_of
from dualflow.graph.ir import Graph, Node
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.ops.op_kinds import Loop


def merge_loops(graph: Graph) -> Graph:
    """``graph`` where a loop that begins as another does, over the same inputs, stands for both.

    The gradient of a loop runs it once more and keeps what the way back reads: this makes one run of the two.
    """
    loops = [n for n in graph.nodes if isinstance(n.op.kind, Loop) and n.effect is None]
    stands_for = {n: _longest(n, loops) for n in loops}
    if all(n is found for n, found in stands_for.items()):
        return graph
    placed: dict[Node, Node] = {}

    def merged(node: Node, current: Node) -> Expansion | None:
        wanted = stands_for.get(node)
        if wanted is None:
            return None
        before = placed.get(wanted)
        made = before or (current if wanted is node else wanted.with_inputs(current.inputs))
        placed[wanted] = made
        return Expansion((made,) if before is None else (), made.outputs[: len(node.outputs)])

    return rebuild(graph, merged)


def _longest(node: Node, loops: Sequence[Node]) -> Node:
    """The first loop that goes on furthest from where ``node`` ends, itself if none does."""
    loop = loop_of(node)
    found = [n for n in loops if n.inputs == node.inputs and loop_of(n).extends(loop)]
    return max(found, key=lambda n: len(loop_of(n).lineage))
