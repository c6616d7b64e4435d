"""Random numbers of a loop, drawn at once before it: the generator gives the same ones in the same order."""

from __future__ import annotations

from typing import Final

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
    drawn = {n: found for n in graph.nodes if (found := _only_draw(n)) is not None}
    if not drawn:
        return graph
    moved: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        made = reading(node, moved)
        if node in drawn:
            many = _for_all_turns(drawn[node], node.attrs["length"])
            nodes.append(many)
            made = _with_rows(made, drawn[node], many.output)
        nodes.append(made)
        if made is not node:
            moved.update(zip(node.outputs, made.outputs, strict=True))
    return graph.with_results([moved.get(v, v) for v in graph.results], nodes=tuple(nodes))


def _only_draw(loop: Node) -> Node | None:
    """The draw in the body of a loop, if it is the only effect and the number of turns is known."""
    if not isinstance(loop.op.form, Loop) or loop.op.effect is not Effect.RANDOM or loop.attrs["reverse"]:
        return None
    if loop.attrs["condition"] is not None or not loop.attrs["length"]:
        return None
    effects = [n for n in loop.attrs["body"].nodes if n.op.effect is not None]
    if len(effects) != 1 or effects[0].op.name not in _ONE_BY_ONE:
        return None
    nbytes = loop.attrs["length"] * effects[0].output.spec.nbytes
    return effects[0] if nbytes <= min(MAX_BYTES, loop_budget()[0]) else None


def _for_all_turns(draw: Node, length: int) -> Node:
    shape = (length, *draw.attrs["shape"])
    spec = TensorSpec.of(Shape(shape), draw.output.spec.dtype)
    return Node(draw.op, (), {**draw.attrs, "shape": shape}, [spec], draw.origin, draw.also)


def _with_rows(loop: Node, draw: Node, rows: Value) -> Node:
    """``loop`` with a row of ``rows`` in the place of ``draw``."""
    body: Graph = loop.attrs["body"]
    at = loop.attrs["carried"] + loop.attrs["mapped"]
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
    turn = Graph(body.name, (*body.inputs[:at], row, *body.inputs[at:]), tuple(nodes), outputs)
    attrs = {**loop.attrs, "body": turn, "mapped": loop.attrs["mapped"] + 1}
    inputs = (*loop.inputs[:at], rows, *loop.inputs[at:])
    return Node(LOOP, inputs, attrs, loop.specs, loop.origin, loop.also)
