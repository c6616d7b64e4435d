"""The engine of an explicit graph: a trace that stays open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import FailedPreconditionError, InaccessibleTensorError
from dualflow.core.spec import TensorSpec
from dualflow.eager.updates import value_of
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.ir import GraphBuilder, Node, Origin, Value
from dualflow.graph.origin import caller
from dualflow.graph_mode.default_session import session_for
from dualflow.graph_mode.names import UniqueNames
from dualflow.graph_mode.operation import Operation
from dualflow.graph_mode.streams import OpSeeds
from dualflow.graph_mode.unknown_rank import POSTPONED, is_unknown, postpone
from dualflow.graph_mode.variable_ops import ASSIGN, READ
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Op

GLOBAL_VARIABLES = "variables"
TRAINABLE_VARIABLES = "trainable_variables"


class OpenBuilder(GraphBuilder):
    """A graph that grows until it is closed, with names, and order edges where the user asks for them.

    Attributes:
        closed: whether nothing may be added any more.
        names: of nodes, of the inputs, and of operations that are groups of nodes.
        origins: the line that asked for each input, and for each group.
        lines: behind every addition, in order.
        first: the nodes that run before those that are added now.
        after: the nodes that must run before each node that asks for it.
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

    def capture(self, spec: TensorSpec, source: Any, *, variable: bool) -> Value:
        self.check_open("a value from outside")
        base = source.name.partition(":")[0] if variable else "Const"
        return self._input(super().capture(spec, source, variable=variable), base)

    def add(
        self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any], origin: Origin | None = None
    ) -> Node:
        self.check_open(f"the op {op.name}")
        node = super().add(op, inputs, attrs, origin)
        self.names.add(node, attrs["called"] if op is POSTPONED else op.name)
        self.lines.append(origin)
        if self.first and not isinstance(op.kind, Literal):  # constants are shared beyond the block
            self.after[node] = self.first
        return node

    def check_open(self, what: str) -> None:
        """Raise FailedPreconditionError if the graph is closed."""
        if self.closed:
            where = caller()
            raise FailedPreconditionError(
                f"Graph is finalized and cannot be modified. {what[:1].upper()}{what[1:]} would be added to "
                "it. Build all that is run before finalize(), and outside of the loop that runs it."
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
    """Records ops in an explicit graph, where reading and assigning a variable are nodes too.

    Attributes:
        graph: the explicit graph that it records, for those who ask a tensor or an operation for it.
        variables: the variables of the graph, in the order of their creation.
        initial: the node that gives each of them its first value.
        assignments: the nodes that assign, in program order.
        seeds: of its random ops.
        collections: lists of anything under names of the user's choice; the variables are in two of them.
    """

    __slots__ = (
        "_first_read",
        "_operations",
        "_read",
        "assignments",
        "collections",
        "graph",
        "initial",
        "open",
        "seeds",
        "variables",
    )

    keys_feeds = True
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
        self._first_read: dict[int, SymbolicTensor] = {}
        self._read: dict[int, SymbolicTensor] = {}
        self._operations: dict[Node | Value, Operation] = {}

    # what ops ask of an engine

    def unary(self, op: Op, x: Any) -> Any:
        return self.run(op, op.prepare((x,), self), {}) if is_unknown(x) else self._kept(super().unary(op, x))

    def binary(self, op: Op, x: Any, y: Any) -> Any:
        if is_unknown(x) or is_unknown(y):
            return self.run(op, op.prepare((x, y), self), {})
        return self._kept(super().binary(op, x, y))

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if op is not POSTPONED and any(map(is_unknown, inputs)):
            return postpone(_AppliedOp(op, attrs), inputs, {})
        found = super().run(op, inputs, attrs)
        if not isinstance(found, tuple):
            return self._kept(found)
        return tuple([self._kept(s) for s in found]) or self.operation_of(self.builder.nodes[-1])

    def constant(self, array: Any) -> SymbolicTensor:
        return self._kept(super().constant(array))

    def read(self, variable: AbstractVariable) -> SymbolicTensor:
        key = id(variable)
        if key not in self._first_read:
            if value_of(variable) is None:  # only a variable from outside of graphs has one to capture
                raise InaccessibleTensorError(
                    f"{variable!r} is not an element of this graph: another graph holds it. Create it in the "
                    "block of the graph that uses it."
                )
            return super().read(variable)
        found = self._read.get(key)
        if found is None:
            found = self._read[key] = self._add(READ, (), variable, "read")
        return found

    def assign(self, variable: AbstractVariable, value: Any) -> SymbolicTensor:
        """The variable's value after the assignment, which happens in the runs that depend on it."""
        if id(variable) not in self._first_read:
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
        """Nothing: assignments are nodes, which runs put in order."""

    def update(self, variable: AbstractVariable, value: Any, outputs: Sequence[Any]) -> None:
        """Assign in the runs that compute any of ``outputs``.

        Raises:
            FailedPreconditionError: there is nothing to fetch that the assignment could go with.
        """
        if not outputs:
            raise FailedPreconditionError(
                f"{variable!r} is assigned by code that computes no result, so no run could ask for it. "
                "Return the assigned value, and fetch it."
            )
        node = _made(self.assign(variable, value))
        after = self.open.after
        for maker in dict.fromkeys(x._value.node for x in outputs):
            after[maker] = (*after.get(maker, ()), node)

    def name_scope(self, name: str) -> AbstractContextManager[str]:
        return self.open.names.within(name)

    @contextmanager
    def unordered(self) -> Iterator[None]:
        before = self.order_after(())
        try:
            yield
        finally:
            self.order_after(before)

    def create_variable(self, variable: Any, initial: Any) -> None:
        before = self.order_after(())  # a variable begins on its own, whatever block creates it
        value = self.open.names.unique(variable.name.partition(":")[0])
        variable._name = value
        self.variables.append(variable)
        self.initial.append(_made(self._assign(variable, initial, "Assign")))
        self._first_read[id(variable)] = symbol = self._add(READ, (), variable)
        self.open.names.rename(_made(symbol), value)
        self.collect(variable, [GLOBAL_VARIABLES, *([TRAINABLE_VARIABLES] if variable.trainable else [])])
        self.order_after(before)

    def _out_of_scope(self, tensor: AbstractTensor) -> str:
        return (
            f"{tensor!r} is not an element of this graph: another graph or a traced function made it. "
            "Build both in one graph, or fetch its value with session.run and feed that."
        )

    # what a tensor of the graph asks

    def pending(self) -> str:
        return "before a session runs the graph"

    def way_to_value(self) -> str:
        return "Ask a session for it, session.run(x)"

    def origin(self, value: Value) -> Origin | None:
        return self.open.origins.get(value) if value.node is None else value.node.origin

    def operation(self, symbol: SymbolicTensor) -> Operation:
        return self.operation_of(symbol._value.node or symbol._value)

    def graph_of(self, symbol: SymbolicTensor) -> object:
        return self.graph

    def evaluate(self, symbol: SymbolicTensor, feed_dict: Mapping[Any, Any] | None, session: Any) -> Any:
        return session_for(session, self.graph, "evaluate tensor using `eval()`").run(symbol, feed_dict)

    # what a graph asks

    def operation_of(self, element: Node | Value) -> Operation:
        """The one operation of a node, or of a value from outside."""
        found = self._operations.get(element)
        if found is None:
            found = self._operations[element] = self._operation(element)
        return found

    def rename(self, node: Node, name: str) -> None:
        """Give a node, and its operation, a name that was made for it."""
        self.open.names.rename(node, name)
        if node in self._operations:
            self._operations[node].name = name

    def operations(self) -> list[Operation]:
        """All, in the order in which they were added."""
        return [x if isinstance(x, Operation) else self.operation_of(x) for x in self.open.names]

    def group(self, name: str, nodes: Sequence[Node]) -> Operation:
        """A new operation that runs ``nodes``."""
        made = Operation(self, name, "NoOp", nodes)
        self.open.group(made)
        return made

    def ordered_before(self, nodes: Sequence[Node]) -> list[Operation]:
        """The operations that ``nodes`` must wait for."""
        return [
            self.operation_of(n) for n in dict.fromkeys(n for m in nodes for n in self.open.after.get(m, ()))
        ]

    def line_of(self, operation: Operation) -> Origin | None:
        """The line of the program that added an operation."""
        if operation.outputs:
            return self.origin(operation.outputs[0]._value)
        origins = self.open.origins
        return origins[operation] if operation in origins else operation.nodes[0].origin

    def collect(self, thing: Any, names: Sequence[str]) -> None:
        """Put ``thing`` into the collections called ``names``."""
        for name in names:
            self.collections.setdefault(name, []).append(thing)

    def value_of(self, variable: AbstractVariable) -> Value | None:
        """What stands for the variable's value as a run begins; None if it is not the graph's."""
        found = self._first_read.get(id(variable))
        return None if found is None else found._value

    def reads(self, variable: AbstractVariable) -> list[Value]:
        """Every node's reading of the variable."""
        return [n.output for n in self.builder.nodes if n.op is READ and n.attrs["variable"] is variable]

    def order_after(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Let the nodes that follow run after ``nodes``; returns the nodes that were asked for before."""
        before, self.open.first = self.open.first, tuple(nodes)
        self._read.clear()  # what is read under another order is another value
        return before

    def tensor_name(self, value: Value) -> str:
        """The name of its operation, and which of the results it is."""
        return f"{self.open.names.of(value.node or value)}:{value.index}"

    # inside

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

    def _kept(self, symbol: SymbolicTensor) -> SymbolicTensor:
        """The one symbol that stands for its value: what operations show is what the user holds."""
        return self.tensors.setdefault(symbol._value, symbol)

    def _assign(self, variable: AbstractVariable, value: Any, name: str = "assign") -> SymbolicTensor:
        symbol = self._add(ASSIGN, (self.lift(value)._value,), variable, name)
        self.assignments.append(_made(symbol))
        self._read.pop(id(variable), None)
        return symbol

    def _add(
        self, op: Op, inputs: tuple[Value, ...], variable: Any, name: str | None = None
    ) -> SymbolicTensor:
        """A node about a variable, called after it."""
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


def _made(symbol: SymbolicTensor) -> Node:
    node = symbol._value.node
    assert node is not None, "a symbol of an op's result"
    return node
