"""Loops: one that keeps more replaces one that keeps less, and none keeps or carries what nobody reads."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from dualflow.graph.extract import ancestors
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.forms import Loop


def merge_loops(graph: Graph) -> Graph:
    """``graph`` where a loop that begins as another does, over the same inputs, stands for both.

    The gradient of a loop runs it once more and keeps what the way back reads: this makes one run of the two.
    """
    loops = [n for n in graph.nodes if isinstance(n.op.form, Loop) and n.op.effect is None]
    stands_for = {n: _longest(n, loops) for n in loops}
    if all(n is found for n, found in stands_for.items()):
        return graph
    moved: dict[Value, Value] = {}
    placed: dict[Node, Node] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        wanted = stands_for.get(node, node)
        if wanted not in placed:
            placed[wanted] = _reading(wanted, moved)
            nodes.append(placed[wanted])
        if placed[wanted] is not node:
            moved.update(zip(node.outputs, placed[wanted].outputs, strict=False))
    return graph.with_results([moved.get(v, v) for v in graph.results], nodes=tuple(nodes))


def _longest(node: Node, loops: Sequence[Node]) -> Node:
    """The first loop that goes on furthest from where ``node`` ends, itself if none does."""
    lineage = node.attrs["lineage"]
    found = [n for n in loops if n.inputs == node.inputs and n.attrs["lineage"][: len(lineage)] == lineage]
    return max(found, key=lambda n: len(n.attrs["lineage"]))


def _reading(node: Node, moved: dict[Value, Value]) -> Node:
    inputs = [moved.get(v, v) for v in node.inputs]
    return node if tuple(inputs) == node.inputs else node.with_inputs(inputs)


def trim_loops(graph: Graph) -> Graph:
    """``graph`` whose loops carry, read and keep only what somebody needs."""
    needs: dict[Node, _Needs] = {}
    live = set(graph.results)
    for node in reversed(graph.nodes):
        if node.op.effect is None and live.isdisjoint(node.outputs):
            continue
        if isinstance(node.op.form, Loop):
            needs[node] = _needs(node, live)
            live.update([node.inputs[i] for i in needs[node].inputs])
        else:
            live.update(node.inputs)
    moved: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        made = _reading(node, moved)
        if node in needs and not needs[node].all_of(node):
            made = _trimmed(made, needs[node])
            moved.update(zip([node.outputs[i] for i in needs[node].outputs], made.outputs, strict=True))
            moved.update({node.outputs[i]: moved.get(v := node.inputs[i], v) for i in needs[node].constant})
        elif made is not node:
            moved.update(zip(node.outputs, made.outputs, strict=True))
        nodes.append(made)
    return graph.with_results([moved.get(v, v) for v in graph.results], nodes=tuple(nodes))


@dataclass(frozen=True, slots=True)
class _Needs:
    """What of a loop is needed: places among its inputs, and among its outputs.

    ``constant`` are the carried values that no turn changes: those read are among ``rest``.
    """

    carried: tuple[int, ...]
    mapped: tuple[int, ...]
    rest: tuple[int, ...]
    stacks: tuple[int, ...]
    constant: tuple[int, ...]

    @property
    def inputs(self) -> tuple[int, ...]:
        return (*self.carried, *self.mapped, *self.rest)

    @property
    def outputs(self) -> tuple[int, ...]:
        return (*self.carried, *self.stacks)

    def all_of(self, node: Node) -> bool:
        return len(self.inputs) == len(node.inputs) and len(self.outputs) == len(node.outputs)


def _needs(node: Node, live: Container[Value]) -> _Needs:
    body: Graph = node.attrs["body"]
    test: Graph | None = node.attrs["condition"]
    carried, end = node.attrs["carried"], node.attrs["carried"] + node.attrs["mapped"]
    constant = {i for i in range(carried) if body.outputs[i] is body.inputs[i]}
    stacks = [i for i in range(carried, len(node.outputs)) if node.outputs[i] in live]
    effects = [n for n in body.nodes if n.op.effect is not None]
    tested = _read(test, test.outputs) if test is not None else set()
    read = {i if i < carried else i - carried + end for i in tested}
    needed = {i for i in range(carried) if node.outputs[i] in live and i not in constant}
    while True:
        needed |= {i for i in read if i < carried and i not in constant}
        found = _read(body, [body.outputs[i] for i in (*sorted(needed), *stacks)], effects)
        if found <= read:
            break
        read |= found
    mapped = [i for i in range(carried, end) if i in read]
    if not mapped and end > carried and node.attrs["length"] is None:
        mapped = [carried]  # its rows are counted
    rest = [i for i in sorted(read) if i >= end or i in constant]
    return _Needs(tuple(sorted(needed)), tuple(mapped), tuple(rest), tuple(stacks), tuple(sorted(constant)))


def _read(graph: Graph, wanted: Iterable[Value], effects: Iterable[Node] = ()) -> set[int]:
    """The places of the inputs on which ``wanted`` and ``effects`` depend."""
    _, sources = ancestors(wanted, (), effects)
    return {i for i, v in enumerate(graph.inputs) if v in sources}


def _trimmed(node: Node, needs: _Needs) -> Node:
    body: Graph = node.attrs["body"]
    test: Graph | None = node.attrs["condition"]
    carried, mapped = node.attrs["carried"], node.attrs["mapped"]
    attrs = {**node.attrs, "carried": len(needs.carried), "mapped": len(needs.mapped)}
    attrs["body"] = _part(body, needs.inputs, [body.outputs[i] for i in needs.outputs])
    if test is not None:
        seen = [i if i < carried else i - mapped for i in (*needs.carried, *needs.rest)]
        attrs["condition"] = _part(test, seen, test.outputs)
    specs = [node.outputs[i].spec for i in needs.outputs]
    return Node(node.op, [node.inputs[i] for i in needs.inputs], attrs, specs, node.origin, node.also)


def _part(graph: Graph, inputs: Iterable[int], outputs: Sequence[Value]) -> Graph:
    effects = [n for n in graph.nodes if n.op.effect is not None]
    needed, _ = ancestors(outputs, (), effects)
    nodes = tuple([n for n in graph.nodes if n in needed])
    return Graph(graph.name, tuple([graph.inputs[i] for i in inputs]), nodes, tuple(outputs))
