"""Inlines branches whose index is a constant."""

from __future__ import annotations

from dualflow.graph.control_spec import branches_of
from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.algebra import uniform
from dualflow.graph.passes.constant_folding import fold_constants
from dualflow.graph.rewrite import Expansion, copied, expand
from dualflow.ops.op_kinds import Cond


def take_branches(graph: Graph) -> Graph:
    """``graph`` with each cond that has a constant index, or one branch, replaced by the branch."""
    while (inlined := expand(graph, _taken, (Cond,))) is not graph:
        graph = fold_constants(inlined)  # the index of another cond may be a constant now
    return graph


def _taken(node: Node) -> Expansion | None:
    """cond(2, *operands) = branches[2](*operands)"""
    branches = branches_of(node)
    index = uniform(node.inputs[0]) if len(branches) > 1 else 0
    if index is None:
        return None
    branch = branches[int(index) if 0 <= index < len(branches) else -1]
    replaced = dict(zip(branch.inputs, node.inputs[1:], strict=True))
    nodes = copied(branch.nodes, replaced)
    return Expansion(nodes, [replaced[v] for v in branch.outputs])
