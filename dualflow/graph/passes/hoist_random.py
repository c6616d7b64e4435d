"""Random numbers of a loop, drawn at once before it: the generator gives the same ones in the same order."""

from __future__ import annotations

from typing import Any

from dualflow.core.records import replace
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.control import LOOP
from dualflow.graph.control_spec import loop_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, expand, rebuild, without
from dualflow.ops.op_kinds import Loop, Opaque
from dualflow.ops.record import Effect


def draw_before_loops(graph: Graph, room: int) -> Graph:
    """A loop that draws numbers in each iteration, and has no other effect = a draw for all iterations, and
    the loop.

    Without a host call in its body, it is machine code. The numbers of a loop take at most ``room`` bytes.
    """
    return expand(graph, lambda node: _drawn_before(node, room), (Loop,))


def _drawn_before(node: Node, room: int) -> Expansion | None:
    if node.effect is not Effect.RANDOM:
        return None
    loop = loop_of(node)
    draw = only_draw(loop.body, loop.iterations, room) if loop.iterations and not loop.reverse else None
    if draw is None or loop.iterations is None:
        return None
    many = _drawn(draw, loop.iterations)
    reading = replace(loop, body=with_rows(loop.body, draw, loop.end), scanned=loop.scanned + 1)
    inputs = (*node.inputs[: loop.end], many.output, *node.inputs[loop.end :])
    made = Node(LOOP, inputs, {"loop": reading}, node.specs, node.origin, node.also)
    return Expansion((many, made), made.outputs)


def only_draw(body: Graph, length: int, room: int) -> Node | None:
    """The draw in a body that runs so many times, if it is its only effect and can be made at once.

    ``room`` is how many bytes there are for that.
    """
    effects = [n for n in body.nodes if n.effect not in (None, Effect.ASSIGN)]
    if len(effects) != 1:
        return None
    kind = effects[0].op.kind
    if not isinstance(kind, Opaque) or not kind.drawn_singly:
        return None
    nbytes = length * effects[0].output.spec.nbytes
    return effects[0] if nbytes <= room else None


def for_all_iterations(draw: Node, length: int) -> dict[str, Any]:
    """The attributes of ``draw`` for so many iterations at once."""
    return {**draw.attrs, "shape": (length, *draw.attrs["shape"])}


def with_rows(body: Graph, draw: Node, at: int) -> Graph:
    """``body`` with a row, the input of place ``at``, for ``draw``."""
    row = Value(draw.output.spec)
    found = rebuild(body, lambda node, _: without(node) if node is draw else None, {draw.output: row})
    return replace(found, inputs=(*body.inputs[:at], row, *body.inputs[at:]))


def _drawn(draw: Node, length: int) -> Node:
    attrs = for_all_iterations(draw, length)
    spec = TensorSpec.of(Shape(attrs["shape"]), draw.output.spec.dtype)
    return Node(draw.op, (), attrs, [spec], draw.origin, draw.also)
