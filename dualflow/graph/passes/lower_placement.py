"""Lowers the placement of nodes: what a block of ``df.device("/CPU:0")`` computes is opaque to a device.

An op of such a block becomes an opaque op with the same NumPy kernel. So no later pass fuses it, merges it
with an op outside of the block or changes it, and the plan runs it on the host, between transfers. Programs
in the host's memory have one place for all ops, so there the original ops are put back.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dualflow.core.device_names import CPU
from dualflow.core.records import replace
from dualflow.graph.ir import Graph, Node
from dualflow.graph.rewrite import Expansion, expand, replaced_by
from dualflow.graph.symbolic_size_ops import binds_or_checks_size
from dualflow.ops.op_kinds import CONTROL, Check, Decompose, Literal, Opaque, SizeVector
from dualflow.ops.record import Effect, Op

_REASON: Final = "it is in a block of df.device('/CPU:0')"
_WITHOUT_PLACE: Final = (*CONTROL, Literal, Check, Decompose, SizeVector)
"""The kinds of ops that compute no elements."""


def place_on_host(graph: Graph) -> Graph:
    """``graph`` with opaque ops in place of those that are marked with the CPU."""

    def placed(node: Node) -> Expansion | None:
        if not _is_marked(node):
            return None
        return replaced_by(node.like(_host_op(node.op), node.inputs, node.attrs, node.specs))

    return expand(graph, placed) if _names_cpu(graph) else graph


def without_placement(graph: Graph) -> Graph:
    """``graph`` with the original ops in place of those of :func:`place_on_host`, and without their mark."""

    def unplaced(node: Node) -> Expansion | None:
        if node.device != CPU:
            return None
        op = original_op(node)
        return replaced_by(Node(op, node.inputs, node.attrs, node.specs, node.origin, node.merged_origins))

    return expand(graph, unplaced) if _names_cpu(graph) else graph


def _names_cpu(graph: Graph) -> bool:
    """Whether a block of the CPU called an op of ``graph``, without those of its bodies."""
    return CPU in {node.device for node in graph.nodes}


def is_placed_on_host(node: Node) -> bool:
    """Whether a block of ``df.device("/CPU:0")`` places ``node`` on the host of a device."""
    return original_op(node) is not node.op


def original_op(node: Node) -> Op:
    """The op of ``node`` without its placement."""
    op = node.op.kind.placed_op if isinstance(node.op.kind, Opaque) else None
    return node.op if op is None else op


def _is_marked(node: Node) -> bool:
    """Whether ``node`` computes in a block of the CPU; the nodes inside a branch or loop are marked, too."""
    if node.device != CPU or node.effect not in (None, Effect.RANDOM) or is_placed_on_host(node):
        return False
    return not isinstance(node.op.kind, _WITHOUT_PLACE) and not binds_or_checks_size(node)


@lru_cache(4096)
def _host_op(op: Op) -> Op:
    return replace(op, kind=Opaque(_REASON, placed_op=op))
