"""Graphs as text.

    graph step(%x: float32[8, 3], %weight: float32[3, 1] = variable)
        %0: float32[8, 1] = matmul(%x, %weight)   # train.py:12
        return %0

The bodies of branches, loops, custom gradients and fused nodes are indented under their node. The grammar is
in docs/saved_model.md, and :func:`dualflow.graph.parser.parse` reads it. ``print(graph)`` cuts long constants
short; :func:`complete_text` stores them elsewhere, so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass, field
from dualflow.graph.ir import Capture, Graph, Node, Value
from dualflow.graph.literals import NoText, elements, elements_exactly, literal, quoted, shown
from dualflow.graph.origin import line_label, origins_of
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.record import Effect

_INDENT = "    "
_PLAIN = (bool, int, float, str, tuple)
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Storage:
    """Storage for the objects that a complete text names: large arrays, captured variables and tensors.

    Attributes:
        constant: stores an array, and returns the name under which the text refers to it.
        source: returns the name of a captured variable or tensor.
    """

    constant: Callable[[Array], str]
    source: Callable[[Any], str]


def text(graph: Graph) -> str:
    """The text of ``graph``, for people: long constants are cut short, and captures have no reference."""
    return "\n".join(_Printer(_variable_names(graph, _input_names(graph))).lines(graph, ""))


def complete_text(graph: Graph, storage: Storage, names: Mapping[Value, str] | None = None) -> str:
    """The text of ``graph`` from which :func:`~dualflow.graph.parser.parse` reads the same graph.

    ``names`` has a name for each value of the graph, without the ``%``; by default results are numbered.

    Raises:
        InvalidArgumentError: an attribute has no text, such as a Python function; with the user's line.
    """
    shown = value_names(graph) if names is None else {v: f"%{quoted(name)}" for v, name in names.items()}
    return "\n".join(_Printer(_variable_names(graph, shown), storage).lines(graph, "", names=shown))


def value_names(graph: Graph) -> dict[Value, str]:
    """The name of each value in the text of ``graph``. Values of bodies have names of their own."""
    names = _input_names(graph)
    computed = (value for node in graph.nodes for value in node.outputs)
    return names | {value: f"%{i}" for i, value in enumerate(computed)}


def attributes(node: Node) -> list[str]:
    """The attributes as ``name=value``, without bodies and compiler hints."""
    return _Printer({}).attributes(node)


def lines_of(node: Node) -> str:
    """The user's lines that called the node's op, as ``file.py:12``; empty without any."""
    return ", ".join(dict.fromkeys(map(line_label, origins_of((node,)))))


@dataclass(slots=True)
class _Printer:
    """Writes one graph and the graphs inside it.

    Attributes:
        variables: the name of the input for each captured variable, by the variable's id.
        storage: where long constants and captures are stored; None for a text for people.
        loops: the numbers of loops in this text, by the numbers in their derivations.
    """

    variables: dict[int, str]
    storage: Storage | None = None
    loops: dict[int, int] = field(default_factory=dict)

    def lines(
        self, graph: Graph, margin: str, title: str = "", names: Mapping[Value, str] | None = None
    ) -> Iterator[str]:
        names = value_names(graph) if names is None else names
        inputs = [f"{names[v]}: {v.spec}" for v in graph.inputs]
        first = len(graph.arguments)
        for i, capture in enumerate(graph.captures, start=first):
            inputs[i] += f" = {self._capture(capture)}"
        yield f"{margin}{title}graph {quoted(graph.name)}({', '.join(inputs)})"
        inner = margin + _INDENT
        for node in graph.nodes:
            results = ", ".join(f"{names[v]}: {v.spec}" for v in node.outputs)
            call = f"{node.op.name}({', '.join([names[v] for v in node.inputs] + self.attributes(node))})"
            where = lines_of(node)
            yield f"{inner}{results}{' = ' if results else ''}{call}" + (f"   # {where}" if where else "")
            for name, body in node.bodies:
                yield from self.lines(body, inner + _INDENT, f"{name}: ")
        for update in graph.updates:
            yield f"{inner}{names[update.input]} <- {names[update.value]}"
        yield f"{inner}return {', '.join(names[v] for v in graph.outputs) or 'nothing'}"

    def attributes(self, node: Node) -> list[str]:
        """The attributes as ``name=value``, without bodies and compiler hints."""
        settings = node.settings
        if node.bodies:
            settings = {name: value for name, value in settings.items() if isinstance(value, _PLAIN)}
        return [f"{name}={self._value(node, name, value)}" for name, value in settings.items()]

    def _value(self, node: Node, name: str, value: Any) -> str:
        if name == "derivation":
            value = tuple([self.loops.setdefault(number, len(self.loops)) for number in value])
        if isinstance(value, np.ndarray):
            return self._array(value)
        try:
            return literal(value, lambda variable: self.variables.get(id(variable)))
        except NoText as error:
            if self.storage is None:
                return shown(value)
            raise InvalidArgumentError(_without_text(node, name, error.args[0])) from None

    def _array(self, array: Array) -> str:
        exact = elements_exactly(array)
        if exact is not None:
            return exact
        return elements(array) if self.storage is None else f"@{quoted(self.storage.constant(array))}"

    def _capture(self, capture: Capture) -> str:
        kind = "variable" if capture.variable else "captured tensor"
        return kind if self.storage is None else f"{kind} @{quoted(self.storage.source(capture.source))}"


def _input_names(graph: Graph) -> dict[Value, str]:
    """The name of each input: that of the argument or variable if it has one, made unique."""
    own_names = [v.spec.name or f"in{i}" for i, v in enumerate(graph.arguments)]
    own_names += [getattr(c.source, "name", None) or f"captured{i}" for i, c in enumerate(graph.captures)]
    names: dict[Value, str] = {}
    taken: set[str] = set()
    for i, (value, name) in enumerate(zip(graph.inputs, own_names, strict=True)):
        short = str(name).removesuffix(":0")
        while short in taken or short.isdigit():
            short = f"{short}_{i}"
        names[value] = f"%{quoted(short)}"
        taken.add(short)
    return names


def _variable_names(graph: Graph, names: Mapping[Value, str]) -> dict[int, str]:
    captured = graph.inputs[len(graph.arguments) :]
    pairs = zip(captured, graph.captures, strict=True)
    return {id(capture.source): names[value] for value, capture in pairs if capture.variable}


def _without_text(node: Node, name: str, value: Any) -> str:
    what = f"{node.op.name} can't be saved: its attribute {name} is {shown(value)!r}, which has no text."
    if node.effect is Effect.PYTHON:
        remedy = "Saved graphs call no Python; write the function in ops."
    elif node.op is CUSTOM:
        remedy = "Its function can't be traced inside of a branch or loop; call it outside."
    elif "compute" in node.attrs:
        remedy = "It needs dynamic sizes of the trace as numbers; give it known sizes by a TensorSpec."
    else:
        remedy = "Trace the function with plain values in its place."
    where = "" if node.origin is None else f"\n  {node.origin}"
    return f"{what} {remedy}{where}"
