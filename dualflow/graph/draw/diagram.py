"""Diagrams of graphs: boxes, wires between them, and diagrams inside boxes.

Inputs, ops, updates and the result are boxes. A value is a wire, labelled with its name and spec at its
source. Constants are part of the boxes of their consumers. Boxes of kernels, branches and loops contain the
diagrams of their bodies, whose inputs have the names of the outer values. Kernels have numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from dualflow.core.records import NamedTuple, dataclass, replace
from dualflow.graph.draw.box_text import arguments, body_names, counted
from dualflow.graph.draw.folding import Group, groups_of
from dualflow.graph.fused import body_of
from dualflow.graph.origin import origins_of
from dualflow.graph.printer import attributes, lines_of, value_names
from dualflow.ops.conversion import ASSIGNED_VALUE, identity
from dualflow.ops.op_kinds import CONTROL, Cond, Literal, Loop
from dualflow.ops.record import Effect

if TYPE_CHECKING:
    from dualflow.graph.ir import Graph, Node, Origin, Value

Kind = OneOf[
    "input", "variable", "op", "effect", "kernel", "control", "group", "update", "result", "reference"
]
_MAX_LINE = 40


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
        kernel: the number of the kernel that computes it; None for none.
    """

    kind: Kind
    title: str
    details: tuple[str, ...] = ()
    inputs: int = 0
    labels: tuple[str, ...] = ()
    panels: tuple[tuple[str, Diagram], ...] = ()
    names: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    kernel: int | None = None


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


class NumberedKernel(NamedTuple):
    """The kernel that computes a node: its name, and its number."""

    name: str
    number: int


def diagram(graph: Graph, kernels: Mapping[Node, NumberedKernel] | None = None) -> Diagram:
    """The diagram of ``graph``.

    Args:
        graph: the graph.
        kernels: the kernels that compute its nodes, and those of its branches and loops. By default its fused
            nodes are numbered in their order.
    """
    names = value_names(graph)
    captured = zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True)
    variables = {id(capture.source): names[value] for value, capture in captured if capture.variable}
    shared = _Shared(variables, _numbered_kernels(graph) if kernels is None else kernels)
    return _Drawing(graph, names, {}, {}, shared).diagram()


def _numbered_kernels(graph: Graph) -> dict[Node, NumberedKernel]:
    """The fused nodes of a graph, its branches and loops, numbered from 1."""
    return {node: NumberedKernel(f"kernel {i}", i) for i, node in enumerate(_fused_nodes(graph), start=1)}


def _fused_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        if body_of(node) is not None:
            yield node
        else:
            for _, body in node.bodies:
                yield from _fused_nodes(body)


class _Shared(NamedTuple):
    """What the diagrams inside each other share.

    Attributes:
        variables: the names of variables, by their ids.
        kernels: the kernels of nodes.
    """

    variables: Mapping[int, str]
    kernels: Mapping[Node, NumberedKernel]


class _Drawing:
    """Builds one diagram.

    Args:
        graph: the graph.
        names: the names of its values.
        titles: other titles for the boxes of its inputs.
        constants: the texts of inputs that are constants outside, and have no box.
        shared: the names of variables, and the kernels.
    """

    def __init__(
        self,
        graph: Graph,
        names: Mapping[Value, str],
        titles: Mapping[Value, str],
        constants: Mapping[Value, str],
        shared: _Shared,
    ) -> None:
        self._graph = graph
        self._names = names
        self._titles = titles
        self._constants = constants
        self._shared = shared
        self._boxes: list[Box] = []
        self._wires: list[Wire] = []
        self._sources: dict[Value, tuple[int, int]] = {}
        self._users = graph.users()
        self._used = {*self._users, *graph.results}

    def diagram(self) -> Diagram:
        graph = self._graph
        captured = dict(zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True))
        for value in graph.inputs:
            if value in self._used and value not in self._constants:
                kind: Kind = "variable" if value in captured and captured[value].variable else "input"
                title = _short(self._titles.get(value, self._names[value]))
                box = Box(kind, title, labels=(str(value.spec),), names=(_short(self._names[value]),))
                self._add(box, (), (value,))
        for group in groups_of(graph):
            if len(group) == 1:
                self._node(group[0])
            else:
                self._group(group)
        assigned = {n.inputs[0] for n in graph.nodes if n.effect is Effect.ASSIGN}
        assigned |= {n.output for n in graph.nodes if n.op is ASSIGNED_VALUE}
        for update in graph.updates:
            if update.value not in assigned:
                self._add(Box("update", f"{_short(self._names[update.input])} <-"), (update.value,), ())
        if graph.outputs:
            self._add(Box("result", "return"), graph.outputs, ())
        return Diagram(tuple(self._boxes), tuple(self._wires))

    def _node(self, node: Node) -> None:
        if node.effect is Effect.ASSIGN:
            self._assignment(node)
        elif node.op is ASSIGNED_VALUE or (node.op is identity.op and self._is_read(node.inputs[0])):
            self._sources[node.output] = self._sources[node.inputs[0]]  # a variable, or what it was assigned
        else:
            self._op(node)

    def _is_read(self, value: Value) -> bool:
        """Whether ``value`` is an input with a box."""
        return value.node is None and value in self._sources

    def _assignment(self, node: Node) -> None:
        variable = node.attrs["variable"]
        name = self._shared.variables.get(id(variable)) or f"%{str(variable.name).removesuffix(':0')}"
        origins = origins_of((node,))
        self._add(Box("update", f"{_short(name)} <-", (lines_of(node),), origins=origins), node.inputs, ())

    def _op(self, node: Node) -> None:
        names = tuple([_short(self._names[v]) for v in node.outputs])
        labels = [
            f"{name}: {v.spec}" if v in self._used else ""
            for name, v in zip(names, node.outputs, strict=True)
        ]
        control = isinstance(node.op.kind, CONTROL)
        kind: Kind = "control" if control else "kernel" if node.bodies else "op"
        panels = [
            (name, self._body(node, body, number))
            for number, (name, (_, body)) in enumerate(zip(body_names(node), node.bodies, strict=True))
        ]
        if isinstance(node.op.kind, Cond):
            panels.reverse()  # then, else
        details = list(arguments(node, self._label))
        if node.effect is not None:
            kind = "effect" if kind == "op" else kind
            details.append(f"effect: {node.effect.value}")
        if kind != "kernel":
            details.append(lines_of(node))
        shown = tuple([_short(line) for line in details if line])
        kernel = self._shared.kernels.get(node)
        if kind == "kernel":
            title = "kernel" if kernel is None else kernel.name
        else:
            title = node.op.name
            shown = shown if kernel is None else (kernel.name, *shown)
        number = None if kernel is None else kernel.number
        box = Box(kind, title, shown, 0, tuple(labels), tuple(panels), names, origins_of((node,)), number)
        self._add(box, node.inputs, node.outputs)

    def _group(self, group: Group) -> None:
        """The box of several nodes: repeated ops, or the nodes of a function or line in a large graph."""
        inner = dict.fromkeys(v for node in group for v in node.outputs)
        members, results = set(group), set(self._graph.results)
        outside = [v for v in inner if v in results or not members.issuperset(self._users.get(v, ()))]
        inputs = [v for v in dict.fromkeys(v for node in group for v in node.inputs) if v not in inner]
        ops = [node.op.name for node in group]
        first = group[0].origin
        if len(set(ops)) == 1:
            title, details = f"{ops[0]} \N{MULTIPLICATION SIGN} {len(ops)}", []
        else:
            title = f"{len(ops)} ops" if first is None else f"{first.function}: {len(ops)} ops"
            details = [counted(ops)]
        lines = dict.fromkeys(lines_of(node) for node in group)
        start = next(iter(lines))
        details.append(start if len(lines) == 1 else f"{len(lines)} lines, from {start}")
        label = str(outside[0].spec) if len(outside) == 1 else f"{len(outside)} values"
        labels = (label,) if outside else ()
        names = (_short(self._names[outside[0]]),) if outside else ()
        shown = tuple([_short(line) for line in details if line])
        index = len(self._boxes)
        self._add(Box("group", _short(title), shown, 0, labels, (), names, origins_of(group)), inputs, ())
        self._sources.update(dict.fromkeys(outside, (index, 0)))

    def _body(self, node: Node, body: Graph, number: int) -> Diagram:
        """The diagram of a body, whose inputs correspond to the last inputs of ``node``.

        Names of values inside begin with that of the node's first result, as %3.0, so that they are unique.
        """
        outer = dict(zip(body.inputs, node.inputs[len(node.inputs) - len(body.inputs) :], strict=False))
        prefix = self._names[node.outputs[0]] if node.outputs else f"%{node.op.name}"
        if len(node.bodies) > 1:
            prefix += f".{number}"
        own = {value: f"{prefix}.{name.removeprefix('%')}" for value, name in value_names(body).items()}
        outer_names = {inner: self._label(value) for inner, value in outer.items()}
        if isinstance(node.op.kind, Loop):
            titles = {v: f"{own[v]} from {name}" for v, name in outer_names.items()}
            return _Drawing(body, own, titles, {}, self._shared).diagram()
        constants = {
            inner: outer_names[inner] for inner, value in outer.items() if value not in self._sources
        }
        return _Drawing(body, own | outer_names, {}, constants, self._shared).diagram()

    def _label(self, value: Value) -> str:
        """The label of a value: its name, or the value of a constant."""
        if value in self._constants:
            return self._constants[value]
        if value.node is None or not isinstance(value.node.op.kind, Literal):
            return self._names[value]
        return ", ".join(attributes(value.node)).removeprefix("value=")

    def _add(self, box: Box, inputs: Iterable[Value], outputs: Iterable[Value]) -> None:
        """Add a box, with a wire for each of its inputs; inputs from one group share a wire."""
        index = len(self._boxes)
        sources = [self._sources[v] for v in inputs if v in self._sources]
        groups = {i for i, _ in sources if self._boxes[i].kind == "group"}
        # the key of a wire: its source, and its number unless the source is a group
        distinct = dict.fromkeys(s if s[0] in groups else (*s, n) for n, s in enumerate(sources))
        self._boxes.append(replace(box, inputs=len(distinct)))
        self._wires += [Wire(source[0], source[1], index, n) for n, source in enumerate(distinct)]
        self._sources.update({value: (index, port) for port, value in enumerate(outputs)})


def _short(line: str) -> str:
    return line if len(line) <= _MAX_LINE else f"{line[: _MAX_LINE - 3]}..."
