"""``import_graph_def``: adds the operations of a graph definition to a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualflow.core.errors import DTypeError, DualflowError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.graph.ir import GraphBuilder, Node, Value
from dualflow.graph.respecialise_bodies import attrs_for
from dualflow.graph_mode.default_graph import graph_being_built
from dualflow.graph_mode.graph import ExplicitGraph
from dualflow.graph_mode.graph_def import GraphDef
from dualflow.graph_mode.graph_def_text import DefinedGraph
from dualflow.graph_mode.operation import Operation
from dualflow.graph_mode.replaced_ops import ASSIGN
from dualflow.ops.creation import convert_to_tensor


@entry
def import_graph_def(
    graph_def: GraphDef,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: object = None,
    producer_op_list: object = None,
) -> Any:
    """Add the operations of a graph definition to the graph that is being built.

    Variables are added with their initial assignments, for sessions to run, and to no collection. Nothing is
    added if an error is raised.

    Args:
        graph_def: a :class:`GraphDef`, from ``graph.as_graph_def()`` or read from a file.
        input_map: tensors of the graph, or what converts to one, in place of tensors of the definition, by
            their names, ``"x"`` or ``"x:0"``. Consumers read them instead; dynamic sizes are inferred again.
        return_elements: names of operations, ``"y"``, and of tensors, ``"y:0"``, to return.
        name: the name scope of the operations, ``import`` by default; ``""`` for none.
        op_dict, producer_op_list: TensorFlow's, and ignored.

    Returns:
        A list of the operations and tensors of ``return_elements``; None without it.

    Raises:
        InvalidArgumentError: the definition has no element of a name; a tensor has another dtype, or sizes
            with which an operation is invalid; ``name`` is invalid.
        DTypeError: ``graph_def`` is of another type.
        FailedPreconditionError: outside a graph's block, or the graph is finalized.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default() as graph:
    ...     y = v1.square(v1.placeholder(v1.float32, [], name="x"), name="y")
    >>> definition = graph.as_graph_def()
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     (y,) = v1.import_graph_def(definition, {"x:0": v1.constant(3.0)}, ["y:0"])
    ...     print(y.name, session.run(y))
    import/y:0 9.0
    """
    if not isinstance(graph_def, GraphDef):
        raise DTypeError(
            f"import_graph_def takes a GraphDef, not a {type(graph_def).__name__}: graph.as_graph_def() "
            "returns one, and GraphDef.FromString(data) reads one."
        )
    graph = graph_being_built("import_graph_def()")
    if not isinstance(input_map, Mapping | None):
        raise DTypeError(f"input_map is a dict of names and tensors, not a {type(input_map).__name__}.")
    importer = _Importer(graph, graph_def.definition)
    returned = [importer.element(x) for x in return_elements or ()]
    for key, tensor in (input_map or {}).items():
        importer.map_input(key, tensor)
    importer.check()
    with graph.name_scope("import" if name is None else name.removesuffix("/")):
        importer.add_all()
    return None if return_elements is None else [importer.imported(x) for x in returned]


class _Importer:
    """Adds the nodes of a definition to a graph.

    Attributes:
        graph: the graph that is being built.
        definition: the definition.
    """

    def __init__(self, graph: ExplicitGraph, definition: DefinedGraph) -> None:
        self.graph = graph
        self.definition = definition
        self._by_name = {name: x for x, name in definition.names.items()}
        self._mapped: dict[Value, Value] = {}
        self._values: dict[Value, Value] = {}
        self._nodes: dict[Node, Node] = {}
        self._groups: dict[str, Operation] = {}

    def element(self, name: Any) -> Value | Node | str:
        """The value, node or group of the definition called ``name``."""
        if not isinstance(name, str):
            raise DTypeError(f"return_elements are names, not {name!r}.")
        operation, colon, index = name.partition(":")
        if not colon:
            if operation in self.definition.groups:
                return operation
            if operation in self._by_name:
                return self._by_name[operation]
        return self._tensor(name, operation, index, "Requested return_element")

    def _tensor(self, name: str, operation: str, index: str, what: str) -> Value:
        element = self._by_name.get(operation)
        outputs = element.outputs if isinstance(element, Node) else [element] if element is not None else []
        place = int(index) if index.isdecimal() else -1
        if not 0 <= place < len(outputs):
            raise InvalidArgumentError(f"{what} {name!r} not found in graph_def.")
        return outputs[place]

    def map_input(self, name: Any, tensor: Any) -> None:
        """Let ``tensor`` be read in place of the tensor of the definition called ``name``."""
        if not isinstance(name, str):
            raise DTypeError(f"The keys of input_map are names of tensors, not {name!r}.")
        operation, colon, index = name.partition(":")
        value = self._tensor(name, operation, index if colon else "0", "Attempted to map an input:")
        converted: Any = convert_to_tensor(tensor)
        replacement = self.graph.engine.lift(converted)._value
        if replacement.spec.dtype is not value.spec.dtype:
            raise InvalidArgumentError(
                f"input_map replaces {name!r}, of dtype {value.spec.dtype.name}, by a tensor of dtype "
                f"{replacement.spec.dtype.name}; cast it."
            )
        self._mapped[value] = replacement

    def check(self) -> None:
        """Raise the error of an operation that is invalid for the shapes of the mapped inputs."""
        self.graph.engine.open.check_open("an imported operation")
        values = {v: Value(r.spec) for v, r in self._mapped.items()}
        scratch = GraphBuilder("import")
        for node in self.definition.graph.nodes if values else ():
            inputs = [values.get(v, v) for v in node.inputs]
            try:
                copied = scratch.add(node.op, inputs, attrs_for(node, [v.spec for v in inputs]), node.origin)
            except DualflowError as error:
                raise InvalidArgumentError(
                    f"The imported operation {self.definition.names[node]!r} can't read the tensors of "
                    f"input_map: {error}"
                ) from error
            for old, new in zip(node.outputs, copied.outputs, strict=True):
                values.setdefault(old, new)

    def add_all(self) -> None:
        """Add all operations, in the open name scope."""
        graph, names, builder = self.definition.graph, self.definition.names, self.graph.engine.open
        for value in graph.arguments:
            spec = TensorSpec(value.spec.shape, value.spec.dtype, names[value])
            self._values[value] = builder.argument(spec)
        for value, capture in zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True):
            if not capture.variable:
                self._values[value] = builder.capture(
                    value.spec, capture.source, variable=False, name=names[value]
                )
        for node in graph.nodes:
            self._add(node)
        for node, earlier in self.definition.after.items():
            own = builder.after.get(self._nodes[node], ())
            builder.after[self._nodes[node]] = (*own, *[self._nodes[n] for n in earlier])
        for name, nodes in self.definition.groups.items():
            self._groups[name] = self.graph.engine.group(name, [self._nodes[n] for n in nodes])

    def _add(self, node: Node) -> None:
        engine = self.graph.engine
        inputs = [self._read(v) for v in node.inputs]
        attrs = attrs_for(node, [v.spec for v in inputs])
        copied = engine.open.add(node.op, inputs, attrs, node.origin, self.definition.names[node])
        self._nodes[node] = copied
        self._values.update(zip(node.outputs, copied.outputs, strict=True))
        if node.op is ASSIGN:
            engine.assignments.append(copied)

    def _read(self, value: Value) -> Value:
        return self._mapped.get(value) or self._values[value]

    def imported(self, element: Value | Node | str) -> SymbolicTensor | Operation:
        """The tensor or operation of the graph for an element of the definition."""
        engine = self.graph.engine
        if isinstance(element, str):
            return self._groups[element]
        if isinstance(element, Node):
            return engine.operation_of(self._nodes[element])
        return engine.tensor_of(self._read(element))
