"""Explicit graphs: ops are added to them, and sessions run parts of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import (
    DTypeError,
    InvalidArgumentError,
)
from dualflow.core.naming import scoped
from dualflow.core.tracebacks import entry
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import tracing
from dualflow.graph.ir import Node, Value
from dualflow.graph_mode.graph_def import GraphDef
from dualflow.graph_mode.graph_engine import GraphEngine
from dualflow.graph_mode.names import UnknownNameError
from dualflow.graph_mode.operation import Operation

innermost_graph: Final[ContextVar[ExplicitGraph | None]] = ContextVar("dualflow_graph", default=None)
"""The graph of each thread's innermost ``as_default`` block."""


class ExplicitGraph:
    """A computation that a :class:`Session` runs later, in parts.

    Inside ``with graph.as_default():`` every op adds a node to the graph and returns a symbolic tensor. Each
    thread has its own blocks. Only one thread at a time may add to a graph.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default() as graph:
    ...     x = v1.placeholder(v1.float32, [None])
    ...     y = v1.reduce_sum(x * x)
    >>> with v1.Session(graph=graph) as session:
    ...     print(session.run(y, {x: [3.0, 4.0]}))
    25.0
    """

    def __init__(self) -> None:
        self.engine = GraphEngine(self)

    @contextmanager
    def as_default(self) -> Iterator[ExplicitGraph]:
        """A context whose ops are added to this graph."""
        token = innermost_graph.set(self)
        try:
            with scoped(""), tracing(self.engine):
                yield self
        finally:
            innermost_graph.reset(token)

    @entry
    def __reduce__(self) -> NoReturn:
        raise DTypeError(
            "A tf.Graph can't be pickled or copied: its tensors are objects of this process. Pickle the "
            "function that builds it, and build it where it is needed."
        )

    # Building

    def name_scope(self, name: str | None) -> AbstractContextManager[str]:
        """A context in which names begin with ``name/``, made unique; ``as`` binds that prefix.

        A name that ends in ``/`` enters the scope of that name again; None and ``""`` leave all scopes.

        Raises:
            InvalidArgumentError: ``name`` has characters that names may not have.
        """
        return self.engine.open.names.scoped(name)

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """``name`` in the current scope, with a number if it is taken.

        Args:
            name: the name.
            mark_as_used: whether it is taken afterwards.
        """
        names = self.engine.open.names
        return names.unique(name) if mark_as_used else names.next_unique(name)

    @contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Iterator[None]:
        """A context whose ops run after ``control_inputs``: tensors or operations; None clears them."""
        nodes: list[Node] = []
        for control_input in control_inputs or ():
            nodes += self.nodes_of(control_input)
        earlier = self.engine.open.first if control_inputs is not None else ()
        before = self.engine.order_after((*earlier, *nodes))
        try:
            yield
        finally:
            self.engine.order_after(before)

    @contextmanager
    def assignments(self) -> Iterator[list[Node]]:
        """A context; ``as`` binds a list that has its assignments afterwards, except initial assignments."""
        before = len(self.engine.assignments)
        added: list[Node] = []
        yield added
        initial = set(self.engine.initial)
        added += [node for node in self.engine.assignments[before:] if node not in initial]

    @entry
    def as_graph_def(self, from_version: None = None, add_shapes: bool = False) -> GraphDef:
        """The graph as it is now, as text from which :func:`import_graph_def` builds it again.

        Args:
            from_version: None; graphs here have no versions.
            add_shapes: ignored: a graph definition always has shapes.

        Raises:
            InvalidArgumentError: an operation has no text, such as a call of a Python function or on a tensor
                of unknown rank; or the graph reads an eager variable.

        >>> from dualflow.compat import v1
        >>> with v1.Graph().as_default() as graph:
        ...     y = v1.multiply(v1.placeholder(v1.float32, [2], name="x"), 3.0, name="y")
        >>> print(graph.as_graph_def())
        graph graph(%x: float32[2])
            %y/constant: float32[] = constant(value=3.)
            %y: float32[2] = multiply(%x, %y/constant)   # ...
            return nothing
        """
        if from_version is not None:
            raise InvalidArgumentError(
                f"A graph here has no versions, so from_version is None, not {from_version!r}."
            )
        return GraphDef.of(self.engine)

    def finalize(self) -> None:
        """Make the graph read-only: adding to it raises FailedPreconditionError."""
        self.engine.open.closed = True

    @property
    def finalized(self) -> bool:
        """Whether the graph is read-only."""
        return self.engine.open.closed

    # Collections

    def add_to_collection(self, name: str, value: object) -> None:
        """Put ``value``, anything, into the collection called ``name``."""
        self.engine.collect(value, [name])

    def add_to_collections(self, names: str | Iterable[str], value: object) -> None:
        """Put ``value``, anything, into the collections called ``names``, once into each."""
        self.engine.collect(value, [names] if isinstance(names, str) else list(dict.fromkeys(names)))

    def get_collection_ref(self, name: str) -> list[Any]:
        """The list itself of a collection: what is added to it is in the collection."""
        return self.engine.collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[str]:
        """The names of the collections that have values, in the order of their first values."""
        return [name for name, values in self.engine.collections.items() if values]

    def clear_collection(self, name: str) -> None:
        """Remove all values of a collection."""
        self.engine.collections.pop(name, None)

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """The values of a collection, in the order in which they were added: a new list.

        Args:
            name: of the collection; ``GraphKeys`` has those of variables.
            scope: a regular expression; selects the values whose names match it from their beginning.
        """
        values = list(self.engine.collections.get(name, ()))
        if scope is None:
            return values
        return [x for x in values if hasattr(x, "name") and re.match(scope, x.name)]

    # Elements

    def get_operations(self) -> list[Operation]:
        """The graph's operations, in the order in which they were added."""
        return self.engine.operations()

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation called ``name``.

        Raises:
            InvalidArgumentError: ``name`` is a tensor's.
            UnknownNameError: there is none; it is a KeyError too.
        """
        if ":" in name:
            raise InvalidArgumentError(
                f"Name {name!r} appears to refer to a Tensor, not a Operation: call get_tensor_by_name."
            )
        names = self.engine.open.names
        element = names.find(name)
        if element is None:
            raise UnknownNameError(
                f"The name {name!r} refers to an Operation not in the graph.{names.suggestion(name)}"
            )
        return element if isinstance(element, Operation) else self.engine.operation_of(element)

    def get_tensor_by_name(self, name: str) -> SymbolicTensor:
        """The tensor called ``name``, an operation's name and the number of the result: ``"matmul:0"``.

        Raises:
            InvalidArgumentError: ``name`` has another form.
            UnknownNameError: the graph has no such tensor; it is a KeyError too.
        """
        operation, colon, index = name.rpartition(":")
        names = self.engine.open.names
        if not colon or not index.isdecimal():
            verb = "refers to" if names.find(name) is not None else "looks like"
            raise InvalidArgumentError(
                f"The name {name!r} {verb} an Operation, not a Tensor. Tensor names must be of the form "
                f'"<op_name>:<output_index>": "{name}:0" is the first result.'
            )
        if names.find(operation) is None:
            raise UnknownNameError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, {operation!r}, "
                f"does not exist in the graph.{names.suggestion(operation)}"
            )
        outputs = self.get_operation_by_name(operation).outputs
        if int(index) >= len(outputs):
            raise UnknownNameError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, {operation!r}, "
                f"exists but only has {len(outputs)} outputs."
            )
        return outputs[int(index)]

    def as_graph_element(
        self, obj: object, allow_tensor: bool = True, allow_operation: bool = True
    ) -> SymbolicTensor | Operation:
        """The tensor or operation for ``obj``: an element of this graph, its name, or a variable.

        Raises:
            InvalidArgumentError: ``obj`` belongs to another graph.
            UnknownNameError: the graph has nothing of that name.
            DTypeError: ``obj`` is neither, or of a kind that is not allowed.
        """
        element = self._element(obj, allow_tensor)
        if (allow_tensor and isinstance(element, SymbolicTensor)) or (
            allow_operation and isinstance(element, Operation)
        ):
            return element
        kinds = " or ".join(["Tensor"] * allow_tensor + ["Operation"] * allow_operation) or "graph element"
        raise DTypeError(f"Can not convert a {type(obj).__name__} into a {kinds}.")

    def nodes_of(self, obj: object) -> list[Node]:
        """The nodes that compute a tensor, a variable or an operation of this graph.

        None has none: it is the operation of a check that holds whenever the graph runs.
        """
        if obj is None:
            return []
        element = self.as_graph_element(obj)
        if isinstance(element, Operation):
            return list(element.nodes)
        return [] if element._value.node is None else [element._value.node]

    def _element(self, obj: Any, allow_tensor: bool) -> Any:
        if isinstance(obj, str):
            by_tensor = allow_tensor and ":" in obj
            return self.get_tensor_by_name(obj) if by_tensor else self.get_operation_by_name(obj)
        if isinstance(obj, Operation):
            is_foreign = obj.graph is not self
        elif isinstance(obj, SymbolicTensor):
            is_foreign = obj._tracer is not self.engine
        elif isinstance(obj, AbstractVariable):
            value: Value | None = self.engine.value_of(obj)
            if value is not None:
                return self.engine.tensor_of(value)
            is_foreign = True
        else:
            return None
        if is_foreign:
            raise InvalidArgumentError(
                f"{obj!r} is not an element of this graph. Build it in the block of the graph that the "
                "session runs, or run it in a session of its own graph: Session(graph=g)."
            )
        return obj
