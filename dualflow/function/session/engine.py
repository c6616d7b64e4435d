"""The engine of an explicit graph: a trace that stays open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import FailedPreconditionError, InaccessibleTensorError
from dualflow.core.spec import TensorSpec
from dualflow.function.session.state import ASSIGN, READ
from dualflow.function.symbol import Symbol
from dualflow.function.trace import Tracer
from dualflow.graph.ir import GraphBuilder, Node, Origin, Value
from dualflow.graph.origin import caller
from dualflow.ops.forms import Literal
from dualflow.ops.record import Op


class OpenBuilder(GraphBuilder):
    """A graph that grows until it is closed, with order edges where the user asks for them.

    Attributes:
        closed: whether nothing may be added any more.
        first: the nodes that run before those that are added now.
        after: the nodes that must run before each node that asks for it.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.closed = False
        self.first: tuple[Node, ...] = ()
        self.after: dict[Node, tuple[Node, ...]] = {}

    def argument(self, spec: TensorSpec) -> Value:
        self._check_open()
        return super().argument(spec)

    def capture(self, spec: TensorSpec, source: Any, *, variable: bool) -> Value:
        self._check_open()
        return super().capture(spec, source, variable=variable)

    def add(
        self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any], origin: Origin | None = None
    ) -> Node:
        self._check_open()
        node = super().add(op, inputs, attrs, origin)
        if self.first and not isinstance(op.form, Literal):  # constants are shared beyond the block
            self.after[node] = self.first
        return node

    def _check_open(self) -> None:
        if self.closed:
            raise FailedPreconditionError("Graph is finalized and cannot be modified.")


class GraphEngine(Tracer):
    """Records ops in an explicit graph, where reading and assigning a variable are nodes too.

    Attributes:
        variables: the variables of the graph, in the order of their creation.
        initial: the node that gives each of them its first value.
        assignments: the nodes that assign, in program order.
    """

    __slots__ = ("_first_read", "_named", "_names", "_read", "assignments", "initial", "open", "variables")

    keys_feeds = True

    def __init__(self) -> None:
        super().__init__("graph")
        self.open = OpenBuilder("graph")
        self.builder = self.open
        self.outer = None
        self.variables: list[Any] = []
        self.initial: list[Node] = []
        self.assignments: list[Node] = []
        self._first_read: dict[int, Symbol] = {}
        self._read: dict[int, Symbol] = {}
        self._names: dict[Node, str] = {}
        self._named: dict[str, int] = {}

    # what ops ask of an engine

    def read(self, variable: AbstractVariable) -> Symbol:
        key = id(variable)
        if key not in self._first_read:
            return super().read(variable)
        found = self._read.get(key)
        if found is None:
            found = self._read[key] = self._add(READ, (), variable)
        return found

    def assign(self, variable: AbstractVariable, value: Any) -> Symbol:
        """The variable's value after the assignment, which happens in the runs that depend on it."""
        if id(variable) not in self._first_read:
            raise InaccessibleTensorError(
                f"{variable!r} was created outside of this graph, which can read it but not assign it. "
                "Create it in the graph's block."
            )
        return self._assign(variable, value)

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
        node = self.assign(variable, value)._value.node
        assert node is not None, "an assignment is a node"
        after = self.open.after
        for maker in dict.fromkeys(x._value.node for x in outputs):
            after[maker] = (*after.get(maker, ()), node)

    def create_variable(self, variable: AbstractVariable, initial: Any) -> None:
        before = self.order_after(())  # a variable begins on its own, whatever block creates it
        node = self._assign(variable, initial)._value.node
        assert node is not None, "an assignment is a node"
        self.variables.append(variable)
        self.initial.append(node)
        self._first_read[id(variable)] = self._add(READ, (), variable)
        self.order_after(before)

    def _out_of_scope(self, tensor: AbstractTensor) -> str:
        return (
            f"{tensor!r} is not an element of this graph: another graph or a traced function made it. "
            "Fetch its value with session.run and feed that."
        )

    # what a graph asks

    def value_of(self, variable: AbstractVariable) -> Value | None:
        """What stands for the variable's value as a run begins; None if it is not the graph's."""
        found = self._first_read.get(id(variable))
        return None if found is None else found._value

    def reads(self, variable: AbstractVariable) -> list[Value]:
        """Every node's reading of the variable."""
        return [n.output for n in self.builder.nodes if n.op is READ and n.attrs["variable"] is variable]

    def order_after(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Let the nodes that follow run after ``nodes``; answers what was asked for before."""
        before, self.open.first = self.open.first, tuple(nodes)
        self._read.clear()  # what is read under another order is another value
        return before

    def name_of(self, node: Node) -> str:
        """The op's name, with a number from the second on."""
        for new in self.builder.nodes[len(self._names) :]:
            base = new.op.name
            count = self._named.get(base, 0)
            self._named[base] = count + 1
            self._names[new] = f"{base}_{count}" if count else base
        return self._names[node]

    def tensor_name(self, value: Value) -> str:
        """The placeholder's name, or the node's with which of its results ``value`` is: unique."""
        if value.node is None:
            return f"{value.spec.name or 'input'}:0"
        return f"{self.name_of(value.node)}:{value.index}"

    def _assign(self, variable: AbstractVariable, value: Any) -> Symbol:
        symbol = self._add(ASSIGN, (self.adopt(value)._value,), variable)
        node = symbol._value.node
        assert node is not None, "an assignment is a node"
        self.assignments.append(node)
        self._read.pop(id(variable), None)
        return symbol

    def _add(self, op: Op, inputs: tuple[Value, ...], variable: AbstractVariable) -> Symbol:
        return self.symbol(self.builder.add(op, inputs, {"variable": variable}, caller()).output)
