"""Gives each copy of an inlined graph new random streams, which start from the beginning."""

from __future__ import annotations

from typing import Any

from dualflow.core.dispatch import Engine
from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.over_bodies import inside_out
from dualflow.graph.rewrite import Expansion, expand, replaced_by
from dualflow.ops.record import Effect


def with_streams_of(graph: Graph, engine: Engine) -> Graph:
    """``graph`` for inlining by ``engine``: its random ops draw from streams of that engine's trace."""
    if all(node.effect is None for node in graph.nodes):
        return graph

    def copied(node: Node) -> Expansion | None:
        source: Any = node.attrs.get("generator") if node.effect is Effect.RANDOM else None
        own = None if source is None else source.for_copied_op(engine)
        if own is source:
            return None
        attrs = {**node.attrs, "generator": own}
        return replaced_by(node.like(node.op, node.inputs, attrs, node.specs))

    return inside_out(lambda body: expand(body, copied))(graph)
