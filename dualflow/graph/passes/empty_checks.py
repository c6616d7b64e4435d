"""Checks of tensors that may be empty: a kernel of no elements checks nothing."""

from __future__ import annotations

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.graph.deferred_errors import CHECK_VALUE, DeferredError
from dualflow.graph.ir import Graph, Node
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.ops.checks import REQUIRED
from dualflow.sizes.symbolic_sizes import bounds


def check_before_reading(graph: Graph) -> Graph:
    """``graph`` in which the condition of each ``required`` tensor that may be empty is a check of its own.

    The kernel that computes such a tensor tests the condition for each element, so not at all without any.
    """
    if REQUIRED not in graph.ops:
        return graph
    return rebuild(graph, lambda _, node: _checked(node), ops={REQUIRED})


def _checked(node: Node) -> Expansion | None:
    if not _may_be_empty(node.output.spec.shape):
        return None
    x, condition = node.inputs
    if condition.spec.shape != ():
        return None
    line = "" if node.origin is None else f"\n{node.origin}"
    error = DeferredError(InvalidArgumentError(f"{node.attrs['message']}{line}"))
    return Expansion((Node(CHECK_VALUE, [condition], {"error": error}, (), node.origin),), (x,))


def _may_be_empty(shape: Shape) -> bool:
    """Whether a size may be 0."""
    least = [None if size is None else bounds(size)[0] for size in shape]
    return any(size is None or size < 1 for size in least)
