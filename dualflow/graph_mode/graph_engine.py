"""The engine of an explicit graph: a trace to which ops can be added at any time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import FailedPreconditionError, InaccessibleTensorError, InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spec import TensorSpec
from dualflow.eager.updates import value_of
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.ir import GraphBuilder, Node, Origin, Value
from dualflow.graph.origin import caller
from dualflow.graph_mode.default_session import session_for
from dualflow.graph_mode.names import UniqueNames
from dualflow.graph_mode.operation import Operation
from dualflow.graph_mode.replaced_ops import ASSIGN, READ
from dualflow.graph_mode.streams import OpSeeds
from dualflow.graph_mode.unknown_rank import POSTPONED_OPS, is_unknown, postpone, postponed_part
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Op

GLOBAL_VARIABLES = "variables"
TRAINABLE_VARIABLES = "trainable_variables"


class OpenBuilder(GraphBuilder):
    """A graph that can be added to until it is closed, with names and control dependencies.

    Attributes:
        closed: whether the graph is read-only.
        names: of nodes, of the inputs, and of operations that are groups of nodes.
        origins: the line of the program that added an input or a group.
        lines: the lines of all additions, in order.
        first: the nodes that new nodes depend on.
        after: the control dependencies of nodes.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.closed = False
        self.names: UniqueNames[Node | Value | Operation] = UniqueNames()
        self.origins: dict[Value | Operation, Origin | None] = {}
        self.lines: list[Origin | None] = []
        self.first: tuple[Node, ...] = ()
        self.after: dict[Node, tuple[Node, ...]] = {}

    def argument(self, spec: TensorSpec) -> Value:
        self.check_open("a placeholder")
        return self._input(super().argument(spec), spec.name or "Placeholder")

    def capture(self, spec: TensorSpec, source: Any, *, variable: bool, name: str | None = None) -> Value:
        self.check_open("a value from outside the graph")
        base = name or (source.name.partition(":")[0] if variable else "Const")
        return self._input(super().capture(spec, source, variable=variable), base)

    def add(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        origin: Origin | None = None,
        name: str | None = None,
    ) -> Node:
        self.check_open(f"the op {op.name}")
        node = super().add(op, inputs, attrs, origin)
        self.names.add(node, name or (attrs["called"] if op in POSTPONED_OPS else op.name))
        self.lines.append(origin)
        # constants are shared with code outside the block
        if self.first and not isinstance(op.kind, Literal):
            self.after[node] = self.first
        return node

    def check_open(self, what: str) -> None:
        """Raise FailedPreconditionError if the graph is closed."""
        if self.closed:
            where = caller()
            raise FailedPreconditionError(
                f"Graph is finalized and cannot be modified. {what[:1].upper()}{what[1:]} would be added to "
                "it. Build the graph before finalize(), and outside of the loop that runs it."
                + (f"\n  {where}" if where else "")
            )

    def group(self, operation: Operation) -> None:
        """Add an operation that is a group of nodes."""
        self.check_open(f"the operation {operation.name}")
        operation.name = self._named(operation, operation.name)

    def _input(self, value: Value, base: str) -> Value:
        self._named(value, base)
        return value

    def _named(self, element: Value | Operation, base: str) -> str:
        line = self.origins[element] = caller()
        self.lines.append(line)
        return self.names.add(element, base)


class GraphEngine(Tracer):
    """Records ops in an explicit graph, in which reads and assignments of variables are nodes.

    Attributes:
        graph: the explicit graph.
        variables: the variables of the graph, in the order of their creation.
        initial: the nodes that assign their initial values.
        assignments: all nodes that assign, in program order.
        seeds: the seeds of its random ops.
        collections: lists of values by name; two of them have the variables.
    """

    __slots__ = (
        "_current_reads",
        "_initial_reads",
        "_operations",
        "assignments",
        "collections",
        "graph",
        "initial",
        "open",
        "seeds",
        "variables",
    )

    hashes_by_identity = True
    hint = " A session has it: session.run(x)."

    def __init__(self, graph: object) -> None:
        super().__init__("graph")
        self.graph = graph
        self.open = OpenBuilder("graph")
        self.builder = self.open
        self.outer = None
        self.variables: list[Any] = []
        self.initial: list[Node] = []
        self.assignments: list[Node] = []
        self.seeds = OpSeeds()
        self.collections: dict[str, list[Any]] = {}
        self._initial_reads: dict[int, SymbolicTensor] = {}
        self._current_reads: dict[int, SymbolicTensor] = {}
        self._operations: dict[Node | Value, Operation] = {}

    # The interface of an engine for ops

    def unary(self, op: Op, x: Any) -> Any:
        if is_unknown(x):
            return self.run(op, op.prepare((x,), self), {})
        return self._unique(super().unary(op, x))

    def binary(self, op: Op, x: Any, y: Any) -> Any:
        if is_unknown(x) or is_unknown(y):
            return self.run(op, op.prepare((x, y), self), {})
        return self._unique(super().binary(op, x, y))

    def part(self, rule: Callable[[Any, Any], Any], x: Any, key: Any) -> Any:
        if is_unknown(x):
            return postponed_part(x, key)
        return super().part(rule, x, key)

    def postponed(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        values = (*self.builder.inputs, *[v for node in self.builder.nodes for v in node.outputs])
        if not any(v.spec.shape is UNKNOWN_RANK for v in values):
            return None
        try:
            return postpone(function, tuple(args), dict(kwargs))
        except InvalidArgumentError:  # the error of the call itself is more precise
            return None

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if op not in POSTPONED_OPS and any(map(is_unknown, inputs)):
            return postpone(_AppliedOp(op, attrs), inputs, {})
        outputs = super().run(op, inputs, attrs)
        if not isinstance(outputs, tuple):
            return self._unique(outputs)
        return tuple([self._unique(s) for s in outputs]) or self.operation_of(self.builder.nodes[-1])

    def constant(self, array: Any) -> Any:
        return self._unique(super().constant(array))

    def read(self, variable: AbstractVariable) -> SymbolicTensor:
        key = id(variable)
        if key not in self._initial_reads:
            if value_of(variable) is None:  # only a variable outside of graphs has a value to capture
                raise InaccessibleTensorError(
                    f"{variable!r} is not an element of this graph: another graph holds it. Create it in the "
                    "block of the graph that uses it."
                )
            return super().read(variable)
        tensor = self._current_reads.get(key)
        if tensor is None:
            tensor = self._current_reads[key] = self._add(READ, (), variable, "read")
        return tensor

    def assign(self, variable: AbstractVariable, value: Any) -> SymbolicTensor:
        """Add an assignment, which runs if a fetch depends on it; returns the variable's new value."""
        if id(variable) not in self._initial_reads:
            raise InaccessibleTensorError(
                f"{variable!r} was created outside of this graph, which can read it but not assign it. "
                "Create it in the graph's block."
            )
        return self._assign(variable, value)

    def stream(self, seed: int | None) -> Any:
        return self.seeds.stream(seed)

    def set_own_seed(self, seed: int | None) -> bool:
        self.seeds.graph = seed
        return True

    def record_assignment(self, variable: AbstractVariable, value: Any) -> None:
        """Does nothing: assignments are nodes, which a run orders."""

    def update(self, variable: AbstractVariable, value: Any, outputs: Sequence[Any]) -> None:
        """Add an assignment that runs whenever one of ``outputs`` is computed.

        Raises:
            FailedPreconditionError: there are no outputs.
        """
        if not outputs:
            raise FailedPreconditionError(
                f"{variable!r} is assigned by code that computes no result, so no run would execute it. "
                "Return the assigned value, and fetch it."
            )
        node = _node_of(self.assign(variable, value))
        after = self.open.after
        for producer in dict.fromkeys(x._value.node for x in outputs):
            after[producer] = (*after.get(producer, ()), node)

    def name_scope(self, name: str) -> AbstractContextManager[str]:
        return self.open.names.scoped(name)

    @contextmanager
    def no_control_dependencies(self) -> Iterator[None]:
        before = self.order_after(())
        try:
            yield
        finally:
            self.order_after(before)

    def create_variable(self, variable: Any, initial: Any) -> None:
        before = self.order_after(())  # initial values have no control dependencies, whatever block is open
        name = self.open.names.unique(variable.name.partition(":")[0])
        variable._name = name
        self.variables.append(variable)
        self.initial.append(_node_of(self._assign(variable, initial, "Assign")))
        self._initial_reads[id(variable)] = tensor = self._add(READ, (), variable)
        self.open.names.rename(_node_of(tensor), name)
        self.collect(variable, [GLOBAL_VARIABLES, *([TRAINABLE_VARIABLES] if variable.trainable else [])])
        self.order_after(before)

    def _out_of_scope(self, tensor: AbstractTensor) -> str:
        return (
            f"{tensor!r} is not an element of this graph: it belongs to another graph or a traced function. "
            "Build both in one graph, or fetch its value with session.run and feed that."
        )

    # The interface for tensors of the graph

    def pending_clause(self) -> str:
        return "before a session runs the graph"

    def value_advice(self) -> str:
        return "Fetch it, session.run(x)"

    def origin(self, value: Value) -> Origin | None:
        return self.open.origins.get(value) if value.node is None else value.node.origin

    def operation(self, tensor: SymbolicTensor) -> Operation:
        return self.operation_of(tensor._value.node or tensor._value)

    def graph_of(self, tensor: SymbolicTensor) -> object:
        return self.graph

    def evaluate(self, tensor: SymbolicTensor, feed_dict: Mapping[Any, Any] | None, session: Any) -> Any:
        return session_for(session, self.graph, "evaluate tensor using `eval()`").run(tensor, feed_dict)

    # The interface for the graph

    def operation_of(self, element: Node | Value) -> Operation:
        """The operation of a node, or of a value from outside the graph; created once and cached."""
        operation = self._operations.get(element)
        if operation is None:
            operation = self._operations[element] = self._operation(element)
        return operation

    def initializer_of(self, variable: Any) -> Any:
        pairs = zip(self.variables, self.initial, strict=True)
        return next((self.operation_of(initial) for v, initial in pairs if v is variable), None)

    def rename(self, node: Node, name: str) -> None:
        """Set the name of a node and of its operation."""
        self.open.names.rename(node, name)
        if node in self._operations:
            self._operations[node].name = name

    def operations(self) -> list[Operation]:
        """All operations, in the order in which they were added."""
        return [x if isinstance(x, Operation) else self.operation_of(x) for x in self.open.names]

    def group(self, name: str, nodes: Sequence[Node]) -> Operation:
        """A new operation that runs ``nodes``."""
        operation = Operation(self, name, "NoOp", nodes)
        self.open.group(operation)
        return operation

    def ordered_before(self, nodes: Sequence[Node]) -> list[Operation]:
        """The operations that run before ``nodes`` by control dependencies."""
        return [
            self.operation_of(n) for n in dict.fromkeys(n for m in nodes for n in self.open.after.get(m, ()))
        ]

    def line_of(self, operation: Operation) -> Origin | None:
        """The line of the program that added an operation."""
        if operation.outputs:
            return self.origin(operation.outputs[0]._value)
        origins = self.open.origins
        return origins[operation] if operation in origins else operation.nodes[0].origin

    def collect(self, value: Any, names: Sequence[str]) -> None:
        """Add ``value`` to the collections called ``names``."""
        for name in names:
            self.collections.setdefault(name, []).append(value)

    def value_of(self, variable: AbstractVariable) -> Value | None:
        """The variable's value at the start of a run; None if it is not a variable of the graph."""
        tensor = self._initial_reads.get(id(variable))
        return None if tensor is None else tensor._value

    def reads(self, variable: AbstractVariable) -> list[Value]:
        if self.value_of(variable) is None:  # a variable outside of the graph, which captures its value
            return super().reads(variable)
        return [n.output for n in self.builder.nodes if n.op is READ and n.attrs["variable"] is variable]

    def order_after(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Make new nodes depend on ``nodes``; returns the previous dependencies."""
        before, self.open.first = self.open.first, tuple(nodes)
        self._current_reads.clear()  # a read with other dependencies is another value
        return before

    def tensor_name(self, value: Value) -> str:
        """The name of a tensor: that of its operation, and the number of the result."""
        return f"{self.open.names.of(value.node or value)}:{value.index}"

    def _operation(self, element: Node | Value) -> Operation:
        name = self.open.names.of(element)
        if isinstance(element, Node):
            inputs, outputs = ([self.tensor_of(v) for v in vs] for vs in (element.inputs, element.outputs))
            return Operation(self, name, element.op.name, [element], inputs, outputs)
        sources = dict(self.builder.captures)
        kind = (
            "Placeholder" if element not in sources else "Variable" if sources[element].variable else "Const"
        )
        return Operation(self, name, kind, [], (), [self.tensor_of(element)])

    def _unique(self, tensor: Any) -> Any:
        """The first symbolic tensor of the same value, so that operations return the user's own tensors."""
        if not isinstance(tensor, SymbolicTensor):  # a composite
            return tensor
        return self.tensors.setdefault(tensor._value, tensor)

    def _assign(self, variable: AbstractVariable, value: Any, name: str = "assign") -> SymbolicTensor:
        tensor = self._add(ASSIGN, (self.lift(value)._value,), variable, name)
        self.assignments.append(_node_of(tensor))
        self._current_reads.pop(id(variable), None)
        return tensor

    def _add(
        self, op: Op, inputs: tuple[Value, ...], variable: Any, name: str | None = None
    ) -> SymbolicTensor:
        """Add a node that reads or assigns a variable, and name it after the variable."""
        node = self.builder.add(op, inputs, {"variable": variable}, caller())
        names = self.open.names
        if name is not None:
            names.rename(node, names.numbered(f"{variable._name}/{name}"))
        return self.tensor_of(node.output)


class _AppliedOp:
    """An op with its attributes, as a function of its inputs."""

    __slots__ = ("__name__", "_attrs", "_op")

    def __init__(self, op: Op, attrs: dict[str, Any]) -> None:
        self.__name__ = op.name
        self._op = op
        self._attrs = attrs

    def __call__(self, *inputs: Any) -> Any:
        return dispatch.current().run(self._op, inputs, self._attrs)


def _node_of(tensor: SymbolicTensor) -> Node:
    node = tensor._value.node
    assert node is not None, "it is the result of an op"
    return node
