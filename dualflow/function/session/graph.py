"""Explicit graphs: what ops are added to until a session runs parts of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from dualflow.function.session.engine import GraphEngine
from dualflow.function.symbol import Symbol
from dualflow.function.trace import tracing
from dualflow.graph.ir import Node


class Operation:
    """Nodes of a graph to run for what they do; fetching them gives None.

    Attributes:
        name: unique in the graph.
        type: the op's name.
        nodes: what runs.
        outputs: the tensors it computes.
        graph: that it belongs to.
    """

    __slots__ = ("graph", "name", "nodes", "outputs", "type")

    def __init__(
        self, graph: Graph, name: str, type: str, nodes: Sequence[Node], outputs: Sequence[Symbol] = ()
    ) -> None:
        self.graph = graph
        self.name = name
        self.type = type
        self.nodes = tuple(nodes)
        self.outputs = tuple(outputs)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"


class Graph:
    """A computation to be run later, in parts, by a :class:`Session`.

    Inside of ``with graph.as_default():`` every op adds a node to the graph and answers a symbolic tensor.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default() as graph:
    ...     x = v1.placeholder(v1.float32, [None])
    ...     y = v1.reduce_sum(x * x)
    >>> with v1.Session(graph=graph) as session:
    ...     print(session.run(y, {x: [3.0, 4.0]}))
    25.0
    """

    def __init__(self) -> None:
        self.engine = GraphEngine()
        self.plans: dict[tuple[Any, ...], Any] = {}

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """The block in which ops are added to this graph."""
        token = _default.set(self)
        try:
            with tracing(self.engine):
                yield self
        finally:
            _default.reset(token)

    @contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Iterator[None]:
        """The block whose ops run after ``control_inputs``, tensors or operations; None lifts the order."""
        wanted: list[Node] = []
        for given in control_inputs or ():
            wanted += self.nodes_of(given)
        earlier = self.engine.open.first if control_inputs is not None else ()
        before = self.engine.order_after((*earlier, *wanted))
        try:
            yield
        finally:
            self.engine.order_after(before)

    @contextmanager
    def assignments(self) -> Iterator[list[Node]]:
        """The block whose assignments the list holds after it, without those that start new variables."""
        before = len(self.engine.assignments)
        made: list[Node] = []
        yield made
        starts = set(self.engine.initial)
        made += [node for node in self.engine.assignments[before:] if node not in starts]

    def finalize(self) -> None:
        """Refuse whatever would add to the graph from now on."""
        self.engine.open.closed = True

    @property
    def finalized(self) -> bool:
        """Whether the graph is closed."""
        return self.engine.open.closed

    def nodes_of(self, given: Any) -> list[Node]:
        """The nodes behind a tensor, a variable or an operation of this graph."""
        if isinstance(given, Operation):
            return list(given.nodes)
        value = given._value if isinstance(given, Symbol) else self.engine.value_of(given)
        return [] if value is None or value.node is None else [value.node]

    def get_operations(self) -> list[Operation]:
        """The graph's operations, in the order in which they were added; placeholders have none."""
        return [self._operation(node) for node in self.engine.builder.nodes]

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation called ``name``.

        Raises:
            NotFoundError: there is none.
        """
        for node in self.engine.builder.nodes:
            if self.engine.name_of(node) == name:
                return self._operation(node)
        raise NotFoundError(f"The name {name!r} refers to an Operation not in the graph.")

    def get_tensor_by_name(self, name: str) -> Symbol:
        """The tensor called ``name``, an operation's name and which of its results: ``"matmul:0"``.

        Raises:
            InvalidArgumentError: ``name`` has another form.
            NotFoundError: the graph has no such tensor.
        """
        operation, colon, index = name.rpartition(":")
        if not colon or not index.isdecimal():
            raise InvalidArgumentError(
                f"The name {name!r} looks like an Operation, not a Tensor. Tensor names are "
                '"<op_name>:<index>".'
            )
        for value in self.engine.builder.inputs:
            if self.engine.tensor_name(value) == name:
                return self.engine.symbol(value)
        outputs = self.get_operation_by_name(operation).outputs
        if int(index) >= len(outputs):
            raise NotFoundError(f"{operation!r} has {len(outputs)} outputs, so there is no tensor {name!r}.")
        return outputs[int(index)]

    def _operation(self, node: Node) -> Operation:
        outputs = [self.engine.symbol(v) for v in node.outputs]
        return Operation(self, self.engine.name_of(node), node.op.name, [node], outputs)


def get_default_graph() -> Graph:
    """The graph of the innermost ``as_default`` block; outside of all, one that every thread shares."""
    return _default.get() or _Root.graph


def reset_default_graph() -> None:
    """Begin the shared default graph anew.

    Raises:
        FailedPreconditionError: inside of an ``as_default`` block.
    """
    if _default.get() is not None:
        raise FailedPreconditionError(
            "Do not use reset_default_graph() to clear nested graphs: leave the as_default block first."
        )
    _Root.graph = Graph()


def graph_recording() -> Graph | None:
    """The graph that ops are added to now; None where they run, or are traced for a function."""
    graph = _default.get()
    return graph if graph is not None and dispatch.current().unrecorded is graph.engine else None


def graph_being_built(what: str) -> Graph:
    """The graph of the innermost ``as_default`` block.

    Raises:
        FailedPreconditionError: ops run eagerly here.
    """
    graph = _default.get()
    if graph is None:
        raise FailedPreconditionError(
            f"{what} is not compatible with eager execution: call it in a block `with Graph().as_default():`."
        )
    return graph


_default: Final[ContextVar[Graph | None]] = ContextVar("dualflow_graph", default=None)


class _Root:
    """Holds the default graph outside of every block."""

    graph = Graph()
