"""Conversion of a graph to the message ``GraphDef``, which TensorBoard draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph_mode.operation import Operation
from dualflow.summary.tensorboardx import protocol


def definition(graph: Graph) -> Any:
    """A ``GraphDef`` with the graph's nodes, their inputs, output shapes, and the user's lines.

    Arguments, variables and captured tensors are nodes as well. A graph inside a node, such as of a branch or
    a loop, is a group of nodes with the node's name.
    """
    writer = DefinitionWriter()
    writer.graph(graph, "", None)
    return writer.message


def definition_of_operations(operations: Sequence[Operation]) -> Any:
    """A ``GraphDef`` with the operations of an explicit graph, under their own names.

    Control dependencies are inputs whose names begin with ``^``; a group of nodes depends on its nodes.
    """
    writer = DefinitionWriter()
    for operation in operations:
        writer.operation(operation)
    return writer.message


class DefinitionWriter:
    """Adds the nodes of graphs to one message, with unique names."""

    def __init__(self) -> None:
        self.message = protocol().graph.GraphDef()
        self.message.versions.producer = 22
        self._counts: dict[str, int] = {}

    def graph(self, graph: Graph, scope: str, input_names: list[str] | None) -> None:
        """Add the nodes of a graph, with names prefixed by ``scope``.

        ``input_names`` are the names of the inputs of a graph inside a node, if they are known.
        """
        names: dict[Value, str] = {}
        for i, value in enumerate(graph.inputs):
            names[value] = self._input(graph, i, scope, input_names)
        for node in graph.nodes:
            read = [names[v] for v in node.inputs]
            name = self._node(f"{scope}{node.op.name}", node.op.name, read, node.specs, _attributes(node))
            names.update((v, name if v.index == 0 else f"{name}:{v.index}") for v in node.outputs)
            inner = read if len(node.bodies) == 1 else None
            for part, body in node.bodies:
                fits = inner is not None and len(inner) == len(body.inputs)
                self.graph(body, f"{name}/{_word(part)}/", inner if fits else None)
        for i, output in enumerate(graph.outputs):
            self._node(f"{scope}output_{i}", "Identity", [names[output]], [output.spec], {})
        for update in graph.updates:
            read = [names[update.input], names[update.value]]
            self._node(f"{scope}assign", "AssignVariable", read, [], {})

    def operation(self, operation: Operation) -> None:
        """Add an operation of an explicit graph, and the graphs inside its node."""
        read = [tensor.name.removesuffix(":0") for tensor in operation.inputs]
        inputs = [*read, *[f"^{earlier.name}" for earlier in operation.control_inputs]]
        specs = [tensor.spec for tensor in operation.outputs]
        node = operation.nodes[0] if operation.nodes and not operation.is_group else None
        attributes = {} if node is None else _attributes(node)
        self._node(operation.name, operation.type, inputs, specs, attributes)
        bodies = () if node is None else node.bodies
        for part, body in bodies:
            fits = len(read) == len(body.inputs) and len(bodies) == 1
            self.graph(body, f"{operation.name}/{_word(part)}/", read if fits else None)

    def _input(self, graph: Graph, place: int, scope: str, input_names: list[str] | None) -> str:
        value = graph.inputs[place]
        if input_names is not None:
            return input_names[place]
        capture = place - len(graph.arguments)
        if capture < 0:
            name = value.spec.name or f"argument_{place}"
            return self._node(f"{scope}{name}", "Placeholder", [], [value.spec], {})
        source = graph.captures[capture]
        if source.variable:
            name = str(source.source.name).partition(":")[0]
            return self._node(f"{scope}{name}", "ReadVariable", [], [value.spec], {})
        return self._node(f"{scope}captured_{capture}", "Const", [], [value.spec], {})

    def _node(
        self,
        name: str,
        op: str,
        inputs: Iterable[str],
        specs: Iterable[TensorSpec],
        attributes: Mapping[str, str],
    ) -> str:
        full = self._unused("/".join(map(_word, name.split("/"))))
        node = self.message.node.add(name=full, op=op, input=inputs, device="/device:CPU:0")
        for spec in specs:
            _add_shape(node.attr["_output_shapes"].list.shape.add(), spec)
        for key, text in attributes.items():
            node.attr[key].s = text.encode()
        return full

    def _unused(self, name: str) -> str:
        count = self._counts.get(name, 0)
        self._counts[name] = count + 1
        return self._unused(f"{name}_{count}") if count else name


def _word(text: str) -> str:
    """``text`` with the characters that names of nodes may have."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text).lstrip("_-") or "_"


def _add_shape(message: Any, spec: TensorSpec) -> None:
    for size in spec.shape:
        message.dim.add(size=size if isinstance(size, int) else -1)


def _attributes(node: Node) -> dict[str, str]:
    """The attributes that TensorBoard shows for a node: dtypes, line and settings."""
    attributes = {"dtype": ", ".join(s.dtype.name for s in node.specs)} if node.specs else {}
    if node.origin is not None:
        attributes["line"] = str(node.origin)
    for name, value in node.settings.items():
        text = repr(value)
        attributes[f"setting_{name}"] = text if len(text) <= 200 else f"{text[:200]}..."
    return attributes
