"""Explicit graphs: what ops are added to until a session runs parts of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import (
    DTypeError,
    InvalidArgumentError,
    NotFoundError,
)
from dualflow.core.naming import scoped
from dualflow.core.tracebacks import entry
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import tracing
from dualflow.graph.ir import Node, Value
from dualflow.graph_mode.graph_engine import GraphEngine
from dualflow.graph_mode.names import UnknownNameError
from dualflow.graph_mode.operation import Operation

innermost_graph: Final[ContextVar[ExplicitGraph | None]] = ContextVar("dualflow_graph", default=None)
"""The graph of each thread's innermost ``as_default`` block."""


class ExplicitGraph:
    """A computation to be run later, in parts, by a :class:`Session`.

    Inside of ``with graph.as_default():`` every op adds a node to the graph and returns a symbolic tensor.
    Each thread has its own blocks; threads that build one graph at once must take turns.

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
        """The block in which ops are added to this graph."""
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
        """The block whose names begin with ``name/``, made unique; it is given that prefix.

        A name that ends in ``/`` enters the scope of that name again; None and ``""`` leave all scopes.

        Raises:
            InvalidArgumentError: ``name`` holds characters that names may not have.
        """
        return self.engine.open.names.within(name)

    def unique_name(self, name: str) -> str:
        """``name`` in the present scope, with a number if it is taken; nobody else gets it."""
        return self.engine.open.names.unique(name)

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

    @entry
    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> NoReturn:
        """TensorFlow's protocol buffer of the graph, which does not exist here.

        Raises:
            NotFoundError: always; :meth:`get_operations` lists what the graph holds.
        """
        raise NotFoundError(
            "A graph has no GraphDef: dualflow neither reads nor writes TensorFlow's protocol buffers. "
            "graph.get_operations() lists its operations with their inputs and outputs."
        )

    def finalize(self) -> None:
        """Refuse whatever would add to the graph from now on."""
        self.engine.open.closed = True

    @property
    def finalized(self) -> bool:
        """Whether the graph is closed."""
        return self.engine.open.closed

    # Collections

    def add_to_collection(self, name: str, value: Any) -> None:
        """Put ``value``, anything, into the collection called ``name``."""
        self.engine.collect(value, [name])

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """What has been put into a collection, in that order: a new list.

        Args:
            name: of the collection; those of variables are named in ``GraphKeys``.
            scope: only what has a name that begins so.
        """
        found = list(self.engine.collections.get(name, ()))
        return found if scope is None else [x for x in found if getattr(x, "name", "").startswith(scope)]

    # What is there

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
                f"Name {name!r} appears to refer to a Tensor, not a Operation: ask get_tensor_by_name for it."
            )
        names = self.engine.open.names
        found = names.find(name)
        if found is None:
            raise UnknownNameError(
                f"The name {name!r} refers to an Operation not in the graph.{names.like(name)}"
            )
        return found if isinstance(found, Operation) else self.engine.operation_of(found)

    def get_tensor_by_name(self, name: str) -> SymbolicTensor:
        """The tensor called ``name``, an operation's name and which of its results: ``"matmul:0"``.

        Raises:
            InvalidArgumentError: ``name`` has another form.
            UnknownNameError: the graph has no such tensor; it is a KeyError too.
        """
        operation, colon, index = name.rpartition(":")
        names = self.engine.open.names
        if not colon or not index.isdecimal():
            known = names.find(name) is not None
            raise InvalidArgumentError(
                f"The name {name!r} {'refers to' if known else 'looks like'} an Operation, not a Tensor. "
                "Tensor "
                f'names must be of the form "<op_name>:<output_index>": "{name}:0" is the first result.'
            )
        if names.find(operation) is None:
            raise UnknownNameError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, {operation!r}, "
                f"does not exist in the graph.{names.like(operation)}"
            )
        outputs = self.get_operation_by_name(operation).outputs
        if int(index) >= len(outputs):
            raise UnknownNameError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, {operation!r}, "
                f"exists but only has {len(outputs)} outputs."
            )
        return outputs[int(index)]

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> SymbolicTensor | Operation:
        """The tensor or operation of this graph that ``obj`` is, or names; a variable gives its value.

        Raises:
            InvalidArgumentError: ``obj`` belongs to another graph.
            UnknownNameError: the graph has nothing of that name.
            DTypeError: ``obj`` is neither, or of a kind that is not allowed.
        """
        found = self._element(obj, allow_tensor)
        if (allow_tensor and isinstance(found, SymbolicTensor)) or (
            allow_operation and isinstance(found, Operation)
        ):
            return found
        wanted = " or ".join(["Tensor"] * allow_tensor + ["Operation"] * allow_operation) or "graph element"
        raise DTypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")

    def nodes_of(self, given: Any) -> list[Node]:
        """The nodes behind a tensor, a variable or an operation of this graph."""
        found = self.as_graph_element(given)
        if isinstance(found, Operation):
            return list(found.nodes)
        return [] if found._value.node is None else [found._value.node]

    def _element(self, obj: Any, allow_tensor: bool) -> Any:
        if isinstance(obj, str):
            by_tensor = allow_tensor and ":" in obj
            return self.get_tensor_by_name(obj) if by_tensor else self.get_operation_by_name(obj)
        if isinstance(obj, Operation):
            strange = obj.graph is not self
        elif isinstance(obj, SymbolicTensor):
            strange = obj._tracer is not self.engine
        elif isinstance(obj, AbstractVariable):
            value: Value | None = self.engine.value_of(obj)
            if value is not None:
                return self.engine.tensor_of(value)
            strange = True
        else:
            return None
        if strange:
            raise InvalidArgumentError(
                f"{obj!r} is not an element of this graph. Build it in the block of the graph that the "
                "session runs, or run it in a session of its own graph: Session(graph=g)."
            )
        return obj
