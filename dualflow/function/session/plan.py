"""From an open graph to what a run executes: the part that the fetches need, for the feeds' shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.function.runner import Runner
from dualflow.function.session.engine import GraphEngine
from dualflow.function.session.state import ASSIGN, READ, variable_spec
from dualflow.graph.ir import Capture, GraphBuilder, Node, Update, Value
from dualflow.graph.resize import attrs_for


@dataclass(frozen=True, slots=True)
class Slot:
    """A variable of a run: whether the run needs its value, and whether it gives it another."""

    variable: Any
    read: bool
    written: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled part of a graph. Its arguments are the feeds, then the slots' values."""

    runner: Runner
    slots: tuple[Slot, ...]


def plan(
    engine: GraphEngine, fetches: Sequence[Value], nodes: Sequence[Node], feeds: Mapping[Value, TensorSpec]
) -> Plan:
    """How to compute ``fetches`` and run ``nodes``, given what ``feeds`` specifies.

    Raises:
        InvalidArgumentError: a placeholder is needed and not fed.
    """
    return _Replay(engine, feeds).plan(fetches, nodes)


def needed(
    after: Mapping[Node, Sequence[Node]],
    wanted: Sequence[Value],
    nodes: Sequence[Node],
    fed: Mapping[Value, Any],
) -> set[Node]:
    """The nodes to run for ``wanted`` and ``nodes``, with those that must come before them."""
    found: set[Node] = set()
    pending = [*nodes, *(v.node for v in wanted if v not in fed and v.node is not None)]
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += [v.node for v in node.inputs if v not in fed and v.node is not None]
            pending += after.get(node, ())
    return found


class _Replay:
    """The nodes of an open graph once more, in program order, with the feeds' own shapes.

    Each variable is an input; its reads and assignments between become the values they stand for.
    """

    def __init__(self, engine: GraphEngine, feeds: Mapping[Value, TensorSpec]) -> None:
        self._engine = engine
        self._builder = GraphBuilder(engine.name)
        self._fed = feeds
        self._known = {value: self._builder.argument(spec) for value, spec in feeds.items()}
        self._captures: dict[Value, Capture] = dict(engine.builder.captures)
        self._states: dict[int, tuple[Any, Value]] = {}
        self._current: dict[int, Value] = {}
        self._read: set[int] = set()

    def plan(self, fetches: Sequence[Value], nodes: Sequence[Node]) -> Plan:
        wanted = needed(self._engine.open.after, fetches, nodes, self._fed)
        for node in self._engine.builder.nodes:
            if node in wanted:
                self._step(node)
        outputs = [self._value(v) for v in fetches]
        updates = [
            self._update(variable, start)
            for key, (variable, start) in self._states.items()
            if self._current[key] is not start
        ]
        written = {u.input for u in updates}
        slots = [Slot(v, key in self._read, x in written) for key, (v, x) in self._states.items()]
        return Plan(Runner(self._builder.finish(outputs, updates)), tuple(slots))

    def _step(self, node: Node) -> None:
        if node.op is READ:
            self._known.setdefault(node.output, self._reading(node.attrs["variable"]))
            return
        inputs = [self._value(v) for v in node.inputs]
        if node.op is ASSIGN:
            variable = node.attrs["variable"]
            self._start(variable)
            self._current[id(variable)] = inputs[0]
            self._known.setdefault(node.output, inputs[0])
            return
        new = self._builder.add(node.op, inputs, attrs_for(node, [v.spec for v in inputs]), node.origin)
        for old, value in zip(node.outputs, new.outputs, strict=True):
            self._known.setdefault(old, value)

    def _value(self, value: Value) -> Value:
        found = self._known.get(value)
        if found is None:
            capture = self._captures.get(value)
            if capture is None:
                raise InvalidArgumentError(
                    f"You must feed a value for placeholder tensor '{self._engine.tensor_name(value)}' with "
                    f"dtype {value.spec.dtype.name} and shape {value.spec.shape}: "
                    "run(..., feed_dict={x: ...})."
                )
            found = self._builder.capture(value.spec, capture.source, variable=capture.variable)
            self._known[value] = found
        return found

    def _start(self, variable: Any) -> Value:
        """The input that holds the variable's value as the run begins."""
        found = self._states.get(id(variable))
        if found is None:
            start = self._builder.argument(variable_spec(variable))
            found = self._states[id(variable)] = variable, start
            self._current[id(variable)] = start
        return found[1]

    def _reading(self, variable: Any) -> Value:
        start = self._start(variable)
        current = self._current[id(variable)]
        if current is start:
            self._read.add(id(variable))
        return current

    def _update(self, variable: Any, start: Value) -> Update:
        value = self._current[id(variable)]
        if value.spec != start.spec:
            raise InvalidArgumentError(
                f"{variable.name} has shape {variable.shape} and can't take a value of shape "
                f"{value.spec.shape}; the shapes must be equal."
            )
        return Update(start, value)
