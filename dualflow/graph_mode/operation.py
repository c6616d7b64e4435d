"""Operations: the elements of an explicit graph that a session can run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.graph.ir import Node, Origin
from dualflow.graph_mode.default_session import session_for


class RecordsOperations(Protocol):
    """The interface of a graph's engine that its operations use."""

    @property
    def graph(self) -> Any:
        """The graph that is recorded."""

    def ordered_before(self, nodes: Sequence[Node]) -> list[Operation]:
        """The operations that run before ``nodes`` by control dependencies."""

    def operation_of(self, element: Node) -> Operation:
        """The operation of a node."""

    def line_of(self, operation: Operation) -> Origin | None:
        """The line of the program that added an operation."""


class Operation:
    """A node or a group of nodes of a graph; fetching it returns None. It may be a key of dicts.

    Attributes:
        name: its unique name in the graph.
        type: the op's name; ``Placeholder``, ``Const`` or ``Variable`` for a value from outside the graph;
            ``NoOp`` for a group.
        inputs: the tensors that it reads.
        outputs: the tensors that it computes.
        nodes: its nodes; none for a value from outside the graph.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     x = v1.placeholder(v1.float32, [2], name="x")
    ...     print(v1.exp(x, name="y").op)
    <tf.Operation 'y' type=exp>
    """

    __slots__ = ("__weakref__", "_engine", "inputs", "name", "nodes", "outputs", "type")

    def __init__(
        self,
        engine: RecordsOperations,
        name: str,
        type: str,
        nodes: Sequence[Node],
        inputs: Sequence[SymbolicTensor] = (),
        outputs: Sequence[SymbolicTensor] = (),
    ) -> None:
        self._engine = engine
        self.name = name
        self.type = type
        self.nodes = tuple(nodes)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)

    @property
    def graph(self) -> Any:
        """The graph that it belongs to."""
        return self._engine.graph

    @property
    def is_group(self) -> bool:
        """Whether it is a group of other operations."""
        return self.type == "NoOp"

    @property
    def control_inputs(self) -> list[Operation]:
        """The operations that run before this one by control dependencies; of a group, its members."""
        if self.is_group:
            return [self._engine.operation_of(node) for node in self.nodes]
        return self._engine.ordered_before(self.nodes)

    @property
    def origin(self) -> Origin | None:
        """The line of the program that added it."""
        return self._engine.line_of(self)

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: object = None) -> None:
        """Run it in ``session``, by default the innermost block's.

        Raises:
            InvalidArgumentError: there is no session, or it runs another graph.
        """
        session_for(session, self.graph, "execute operation using `run()`").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"
