"""Merges loops: a loop replaces another one that computes a part of its outputs."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.graph.control_spec import loop_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.ops.op_kinds import Loop


def merge_loops(graph: Graph) -> Graph:
    """``graph`` with each loop replaced, where possible, by one of the same inputs that has its outputs, too.

    The gradient of a loop runs the loop again and stacks the residuals of the backward pass. This pass merges
    the two.
    """
    ops = {op for op in graph.ops if isinstance(op.kind, Loop)}
    loops = [n for n in graph.nodes if n.op in ops and n.effect is None] if ops else []
    of_inputs: dict[tuple[Value, ...], list[Node]] = {}
    for node in loops:
        of_inputs.setdefault(node.inputs, []).append(node)
    replacements = {n: _extension_of(n, of_inputs[n.inputs]) for n in loops}
    if all(n is longest for n, longest in replacements.items()):
        return graph
    merged_loops: dict[Node, Node] = {}

    def merged(node: Node, current: Node) -> Expansion | None:
        longest = replacements.get(node)
        if longest is None:
            return None
        earlier = merged_loops.get(longest)
        loop = earlier or (current if longest is node else longest.with_inputs(current.inputs))
        merged_loops[longest] = loop
        return Expansion((loop,) if earlier is None else (), loop.outputs[: len(node.outputs)])

    return rebuild(graph, merged)


def _extension_of(node: Node, loops: Sequence[Node]) -> Node:
    """The loop with the most outputs, the first of which are those of ``node``; or ``node`` itself.

    ``loops`` are those with its inputs.
    """
    loop = loop_of(node)
    extensions = [n for n in loops if loop_of(n).has_outputs_of(loop)]
    return max(extensions, key=lambda n: len(loop_of(n).derivation))
