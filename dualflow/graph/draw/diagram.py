"""Diagrams of graphs: boxes, wires between them, and diagrams inside boxes.

Inputs, ops, updates and the result are boxes. A value is a wire, labelled with its name and spec at its
source. Constants are part of the boxes of their consumers. Boxes of kernels, branches and loops contain the
diagrams of their bodies, whose inputs have the names of the outer values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from dualflow.core.records import dataclass
from dualflow.graph.printer import attributes, lines_of, value_names
from dualflow.ops.op_kinds import Cond, Literal, Loop

if TYPE_CHECKING:
    from dualflow.graph.ir import Graph, Node, Origin, Value

Kind = OneOf["input", "variable", "op", "effect", "kernel", "control", "update", "result", "reference"]
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Box:
    """One box.

    Attributes:
        kind: what it represents.
        title: the op's name, or the input's.
        details: lines below the title.
        inputs: the number of wires that end at it, next to each other.
        labels: one for each wire that begins at it.
        panels: the diagrams inside, each with a title.
        names: the names of the values whose wires begin at it.
        origins: the user's lines that called its ops.
    """

    kind: Kind
    title: str
    details: tuple[str, ...] = ()
    inputs: int = 0
    labels: tuple[str, ...] = ()
    panels: tuple[tuple[str, Diagram], ...] = ()
    names: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class Wire:
    """A wire from output ``port`` of box ``source`` to input number ``input`` of box ``target``."""

    source: int
    port: int
    target: int
    input: int


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes and wires, without cycles."""

    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]


def diagram(graph: Graph) -> Diagram:
    """The diagram of ``graph``."""
    return _Drawing(graph, value_names(graph), {}).diagram()


class _Drawing:
    """Builds one diagram; ``titles`` replaces the titles of input boxes."""

    def __init__(self, graph: Graph, names: Mapping[Value, str], titles: Mapping[Value, str]) -> None:
        self._graph = graph
        self._names = names
        self._titles = titles
        self._boxes: list[Box] = []
        self._wires: list[Wire] = []
        self._places: dict[Value, tuple[int, int]] = {}
        users = graph.users()
        self._read = {*users, *graph.results}

    def diagram(self) -> Diagram:
        graph = self._graph
        captured = dict(zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True))
        for value in graph.inputs:
            if value in self._read:
                kind: Kind = "variable" if value in captured and captured[value].variable else "input"
                title = _short(self._titles.get(value, self._names[value]))
                box = Box(kind, title, labels=(str(value.spec),), names=(_short(self._names[value]),))
                self._add(box, (), (value,))
        for node in graph.nodes:
            if not isinstance(node.op.kind, Literal) or node.output in graph.results:
                self._node(node)
        for update in graph.updates:
            title = f"{_short(self._names[update.input])} <-"
            box = Box("update", title, ("variable updated",), 1)
            self._add(box, (update.value,), ())
        if graph.outputs:
            self._add(Box("result", "return", (), len(graph.outputs)), graph.outputs, ())
        return Diagram(tuple(self._boxes), tuple(self._wires))

    def _node(self, node: Node) -> None:
        wired = [v for v in node.inputs if v in self._places]
        names = tuple([_short(self._names[v]) for v in node.outputs])
        labels = [
            f"{name}: {v.spec}" if v in self._read else ""
            for name, v in zip(names, node.outputs, strict=True)
        ]
        control = isinstance(node.op.kind, Cond | Loop)
        kind: Kind = "control" if control else "kernel" if node.bodies else "op"
        panels = tuple([("" if kind == "kernel" else n, self._body(node, body)) for n, body in node.bodies])
        details = [f"constant {self._label(v)}" for v in node.inputs if v not in self._places]
        details += attributes(node)
        if node.effect is not None:
            kind = "effect" if kind == "op" else kind
            details.append(f"effect: {node.effect.value}")
        if kind != "kernel":
            details.append(lines_of(node))
        shown = tuple([_short(line) for line in details if line])
        title = "kernel" if kind == "kernel" else node.op.name
        origins = tuple([o for o in (node.origin, *node.merged_origins) if o is not None])
        box = Box(kind, title, shown, len(wired), tuple(labels), panels, names, origins)
        self._add(box, wired, node.outputs)

    def _body(self, node: Node, body: Graph) -> Diagram:
        """The diagram of a body, whose inputs correspond to the last inputs of ``node``."""
        outer = node.inputs[len(node.inputs) - len(body.inputs) :]
        outer_names = {inner: self._label(value) for inner, value in zip(body.inputs, outer, strict=False)}
        own = value_names(body)
        if not isinstance(node.op.kind, Loop):
            return _Drawing(body, own | outer_names, {}).diagram()
        titles = {v: name if name == own[v] else f"{own[v]} from {name}" for v, name in outer_names.items()}
        return _Drawing(body, own, titles).diagram()

    def _label(self, value: Value) -> str:
        """The label of a value: its name, or the value of a constant."""
        if value.node is None or value in self._places:
            return self._names[value]
        return ", ".join(attributes(value.node)).removeprefix("value=")

    def _add(self, box: Box, inputs: tuple[Value, ...] | list[Value], outputs: tuple[Value, ...]) -> None:
        index = len(self._boxes)
        self._boxes.append(box)
        for number, value in enumerate(inputs):
            source, port = self._places[value]
            self._wires.append(Wire(source, port, index, number))
        self._places.update({value: (index, port) for port, value in enumerate(outputs)})


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
