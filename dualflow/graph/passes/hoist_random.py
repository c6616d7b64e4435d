"""Hoists random draws out of loops: one draw before the loop gives the same numbers in the same order."""

from __future__ import annotations

from typing import Any

from dualflow.core.records import replace
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_ops import LOOP
from dualflow.graph.control_spec import loop_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, expand, rebuild, removal
from dualflow.ops.op_kinds import Loop, Opaque
from dualflow.ops.record import Effect


def draw_before_loops(graph: Graph, budget: int) -> Graph:
    """``graph`` with one random draw before each loop that has a draw in each iteration, and no other effect.

    The loop then has no host call and runs natively. The numbers take at most ``budget`` bytes.
    """
    return expand(graph, lambda node: _drawn_before(node, budget), (Loop,))


def _drawn_before(node: Node, budget: int) -> Expansion | None:
    if node.effect is not Effect.RANDOM:
        return None
    loop = loop_of(node)
    draw = (
        single_random_op(loop.body, loop.iterations, budget) if loop.iterations and not loop.reverse else None
    )
    if draw is None or loop.iterations is None:
        return None
    all_draws = _drawn(draw, loop.iterations)
    scanning = replace(loop, body=with_scanned_draw(loop.body, draw, loop.end), scanned=loop.scanned + 1)
    carried, scanned, invariants = loop.split_inputs(node.inputs)
    inputs = (*carried, *scanned, all_draws.output, *invariants)
    new_loop = Node(LOOP, inputs, {"loop": scanning}, node.specs, node.origin, node.merged_origins)
    return Expansion((all_draws, new_loop), new_loop.outputs)


def single_random_op(body: Graph, length: int, budget: int) -> Node | None:
    """The random op of a body, if it is the only effect, and all iterations draw at most ``budget`` bytes."""
    effects = [n for n in body.nodes if n.effect not in (None, Effect.ASSIGN)]
    if len(effects) != 1:
        return None
    kind = effects[0].op.kind
    if not isinstance(kind, Opaque) or not kind.drawn_singly:
        return None
    nbytes = length * effects[0].output.spec.nbytes
    return effects[0] if nbytes <= budget else None


def batched_attributes(draw: Node, length: int) -> dict[str, Any]:
    """The attributes of one draw that replaces ``draw`` in ``length`` iterations."""
    return {**draw.attrs, "shape": (length, *draw.attrs["shape"])}


def with_scanned_draw(body: Graph, draw: Node, at: int) -> Graph:
    """``body`` with ``draw`` replaced by a scanned input with index ``at``."""
    row = Value(draw.output.spec)
    rebuilt = rebuild(body, lambda node, _: removal(node) if node is draw else None, {draw.output: row})
    return replace(rebuilt, inputs=(*body.inputs[:at], row, *body.inputs[at:]))


def _drawn(draw: Node, length: int) -> Node:
    attrs = batched_attributes(draw, length)
    spec = TensorSpec.of(Shape(attrs["shape"]), draw.output.spec.dtype)
    return Node(draw.op, (), attrs, [spec], draw.origin, draw.merged_origins)
