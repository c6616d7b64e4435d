"""Graph definitions: an explicit graph as text, which TensorFlow stores as a protocol buffer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode.graph_def_text import DefinedGraph, read, recorded, write

if TYPE_CHECKING:
    from dualflow.graph_mode.graph_engine import GraphEngine


@dataclass(slots=True)
class NodeDef:
    """An operation of a graph definition.

    Attributes:
        name: its name.
        op: the op's name; ``Placeholder``, ``Const`` or ``NoOp`` as :attr:`Operation.type`.
        input: the names of the tensors that it reads, ``"x"`` or ``"x:1"``, then ``"^y"`` for each operation
            that runs before it.
        attr: the attributes of the op.
        device: may be set, and is ignored.
    """

    name: str
    op: str
    input: tuple[str, ...] = ()
    attr: Mapping[str, Any] = field(default_factory=dict)
    device: str = ""


@entry
class GraphDef:
    """A graph as text: its operations by name, with shapes, constants, variables and control dependencies.

    It holds no values of variables: a :class:`Session` has them. Its methods are those of a protocol buffer,
    but the bytes are the text, whose grammar is in docs/saved_model.md, in UTF-8. Copies share nothing.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default() as graph:
    ...     y = v1.square(v1.placeholder(v1.float32, [], name="x"), name="y")
    >>> data = graph.as_graph_def().SerializeToString()
    >>> definition = v1.GraphDef()
    >>> _ = definition.ParseFromString(data)
    >>> [(node.name, node.op) for node in definition.node]
    [('x', 'Placeholder'), ('y', 'square')]
    """

    __slots__ = ("_definition", "_nodes", "_text")

    def __init__(self) -> None:
        self._definition = DefinedGraph.empty()
        self._text: str | None = None
        self._nodes: tuple[NodeDef, ...] | None = None

    @classmethod
    def of(cls, engine: GraphEngine) -> GraphDef:
        """The definition of the graph that ``engine`` records; see :meth:`Graph.as_graph_def`."""
        return cls.from_definition(recorded(engine))

    @classmethod
    def from_definition(cls, definition: DefinedGraph) -> GraphDef:
        """The graph definition with these nodes, names and dependencies, written as text and read again.

        Raises:
            InvalidArgumentError: an attribute has no text.
        """
        return cls.FromString(write(definition).encode())

    @classmethod
    def FromString(cls, serialized: bytes) -> GraphDef:
        """The graph definition of :meth:`SerializeToString`; see :meth:`ParseFromString`."""
        graph_def = cls()
        graph_def.ParseFromString(serialized)
        return graph_def

    def ParseFromString(self, serialized: bytes) -> int:
        """Read the text of a graph definition; returns the number of bytes.

        Raises:
            InvalidArgumentError: it is invalid, with the line; then this object is unchanged.
            DTypeError: ``serialized`` is not bytes.
        """
        if not isinstance(serialized, bytes | bytearray | memoryview):
            raise DTypeError(f"A GraphDef is read from bytes, not from a {type(serialized).__name__}.")
        data = bytes(serialized)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise InvalidArgumentError(_FOREIGN) from None
        if text and not text.startswith("graph "):
            raise InvalidArgumentError(_FOREIGN)
        self._set(read(text) if text else DefinedGraph.empty(), text)
        return len(data)

    def SerializeToString(self) -> bytes:
        """The text in UTF-8."""
        return str(self).encode()

    def ByteSize(self) -> int:
        """The number of bytes of :meth:`SerializeToString`."""
        return len(self.SerializeToString())

    def CopyFrom(self, other: GraphDef) -> None:
        """Become equal to ``other``."""
        self._set(other._definition, other._text)

    @property
    def node(self) -> tuple[NodeDef, ...]:
        """The operations, in the order in which they were added to the graph; groups are last."""
        if self._nodes is None:
            self._nodes = tuple(_node_defs(self._definition))
        return self._nodes

    @property
    def definition(self) -> DefinedGraph:
        """The parsed text."""
        return self._definition

    def _set(self, definition: DefinedGraph, text: str | None) -> None:
        self._definition = definition
        self._text = text
        self._nodes = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphDef) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]  # it may change

    def __copy__(self) -> Self:
        copy = type(self)()
        copy.CopyFrom(self)
        return copy

    def __deepcopy__(self, memo: Any) -> Self:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).FromString, (self.SerializeToString(),)

    def __str__(self) -> str:
        return self._text or ""

    def __repr__(self) -> str:
        return f"<GraphDef of {len(self.node)} operations>"


_FOREIGN = (
    "This is no graph definition of dualflow, which is a text that begins with 'graph'. Protocol buffers of "
    "TensorFlow are not read: build the graph by its Python code, and write it by tf.io.write_graph."
)


def _node_defs(definition: DefinedGraph) -> Iterable[NodeDef]:
    graph, names = definition.graph, definition.names

    def tensor(value: Any) -> str:
        name = names[value if value.node is None else value.node]
        return name if value.index == 0 else f"{name}:{value.index}"

    for value in graph.arguments:
        attributes = {"dtype": value.spec.dtype, "shape": value.spec.shape}
        yield NodeDef(names[value], "Placeholder", (), attributes)
    for value, capture in zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True):
        if not capture.variable:
            yield NodeDef(names[value], "Const", (), {"value": capture.source.numpy()})
    for node in graph.nodes:
        earlier = [f"^{names[n]}" for n in definition.after.get(node, ())]
        yield NodeDef(names[node], node.op.name, (*map(tensor, node.inputs), *earlier), node.settings)
    for name, nodes in definition.groups.items():
        yield NodeDef(name, "NoOp", tuple([f"^{names[n]}" for n in nodes]))
