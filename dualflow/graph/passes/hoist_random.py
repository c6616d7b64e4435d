"""Random numbers of a loop, drawn at once before it: the generator gives the same ones in the same order."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.memory import loop_budget
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.control import LOOP
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import reading
from dualflow.ops.forms import Loop
from dualflow.ops.record import Effect

MAX_BYTES: Final = 64 << 20
"""How much memory the numbers may take, if loops may take so much."""
_ONE_BY_ONE: Final = ("random_normal", "random_uniform")
"""The draws that NumPy's generators make number by number, so that many are many draws of few."""


def draw_before_loops(graph: Graph) -> Graph:
    """A loop that draws numbers in each turn, and has no other effect = a draw for all turns, and the loop.

    Without a host call in its body, it is machine code.
    """
    drawn = {n: found for n in graph.nodes if (found := _draw_of(n)) is not None}
    if not drawn:
        return graph
    moved: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        made = reading(node, moved)
        if node in drawn:
            many = _drawn(drawn[node], node.attrs["length"])
            nodes.append(many)
            made = _reading_rows(made, drawn[node], many.output)
        nodes.append(made)
        if made is not node:
            moved.update(zip(node.outputs, made.outputs, strict=True))
    return graph.with_results([moved.get(v, v) for v in graph.results], nodes=tuple(nodes))


def only_draw(body: Graph, length: int) -> Node | None:
    """The draw in a body that runs so many times, if it is its only effect and can be made at once."""
    effects = [n for n in body.nodes if n.op.effect not in (None, Effect.ASSIGN)]
    if len(effects) != 1 or effects[0].op.name not in _ONE_BY_ONE:
        return None
    nbytes = length * effects[0].output.spec.nbytes
    return effects[0] if nbytes <= min(MAX_BYTES, loop_budget()[0]) else None


def for_all_turns(draw: Node, length: int) -> dict[str, Any]:
    """The attributes of ``draw`` for so many turns at once."""
    return {**draw.attrs, "shape": (length, *draw.attrs["shape"])}


def with_rows(body: Graph, draw: Node, at: int) -> Graph:
    """``body`` with a row, the input of place ``at``, for ``draw``."""
    row = Value(draw.output.spec)
    moved = {draw.output: row}
    nodes: list[Node] = []
    for node in body.nodes:
        if node is draw:
            continue
        nodes.append(reading(node, moved))
        if nodes[-1] is not node:
            moved.update(zip(node.outputs, nodes[-1].outputs, strict=True))
    outputs = tuple([moved.get(v, v) for v in body.outputs])
    return Graph(body.name, (*body.inputs[:at], row, *body.inputs[at:]), tuple(nodes), outputs)


def _draw_of(loop: Node) -> Node | None:
    """The draw that can be made before ``loop``."""
    if not isinstance(loop.op.form, Loop) or loop.op.effect is not Effect.RANDOM or loop.attrs["reverse"]:
        return None
    if loop.attrs["condition"] is not None or not loop.attrs["length"]:
        return None
    return only_draw(loop.attrs["body"], loop.attrs["length"])


def _drawn(draw: Node, length: int) -> Node:
    attrs = for_all_turns(draw, length)
    spec = TensorSpec.of(Shape(attrs["shape"]), draw.output.spec.dtype)
    return Node(draw.op, (), attrs, [spec], draw.origin, draw.also)


def _reading_rows(loop: Node, draw: Node, rows: Value) -> Node:
    """``loop`` with a row of ``rows`` in the place of ``draw``."""
    at = loop.attrs["carried"] + loop.attrs["mapped"]
    body = with_rows(loop.attrs["body"], draw, at)
    attrs = {**loop.attrs, "body": body, "mapped": loop.attrs["mapped"] + 1}
    return Node(LOOP, (*loop.inputs[:at], rows, *loop.inputs[at:]), attrs, loop.specs, loop.origin, loop.also)
