"""From an open graph to what a run executes: the part that the fetches need, for the feeds' shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.eager.engine import EAGER
from dualflow.eager.variable import Variable
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.failed_calls import AssignmentHistory
from dualflow.graph.ir import Capture, GraphBuilder, Node, Update, Value
from dualflow.graph.passes.assignments import ASSIGNMENT
from dualflow.graph.respecialise_bodies import attrs_for
from dualflow.graph_mode.graph_engine import GraphEngine
from dualflow.graph_mode.unknown_rank import POSTPONED, make
from dualflow.graph_mode.variable_ops import ASSIGN, DEFAULT, READ, variable_spec
from dualflow.ops.creation import CONSTANT, zeros
from dualflow.ops.measuring import SHAPE
from dualflow.ops.record import Effect


@dataclass(slots=True)
class Cell:
    """A variable's value in one session.

    Attributes:
        holder: a variable of its own, which compiled code reads and writes.
        started: whether it has a value yet.
    """

    holder: Variable
    started: bool = False

    @classmethod
    def of(cls, variable: Any) -> Cell:
        """A cell without a value, which a graph's variable will have in a session."""
        spec = variable_spec(variable)
        with dispatch.using(EAGER):
            return cls(Variable(zeros(spec.shape, spec.dtype), name=variable.name.partition(":")[0]))


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A compiled part of a graph, for one session.

    Attributes:
        compiled: takes the feeds.
        reads: the variables whose values it needs, with their cells.
        writes: the cells that it gives values.
        calls_python: whether Python code runs on the way, which may keep what it is given.
    """

    compiled: CompiledGraph
    reads: tuple[tuple[Any, Cell], ...]
    writes: tuple[Cell, ...]
    calls_python: bool


def plan(
    engine: GraphEngine,
    fetches: Sequence[Value],
    nodes: Sequence[Node],
    feeds: Mapping[Value, TensorSpec],
    cells: Callable[[Any], Cell],
) -> RunPlan:
    """How to compute ``fetches`` and run ``nodes``, given what ``feeds`` specifies and where variables live.

    Raises:
        InvalidArgumentError: a placeholder is needed and not fed.
    """
    return _Replay(engine, feeds, cells).plan(fetches, nodes)


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

    def __init__(
        self, engine: GraphEngine, feeds: Mapping[Value, TensorSpec], cells: Callable[[Any], Cell]
    ) -> None:
        self._engine = engine
        self._cells = cells
        self._builder = GraphBuilder(engine.name)
        self._fed = feeds
        self._known = {value: self._builder.argument(spec) for value, spec in feeds.items()}
        self._captures: dict[Value, Capture] = dict(engine.builder.captures)
        self._states: dict[int, tuple[Any, Value]] = {}
        self._current: dict[int, Value] = {}
        self._read: set[int] = set()

    def plan(self, fetches: Sequence[Value], nodes: Sequence[Node]) -> RunPlan:
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
        states = [(self._cells(v), key, v, start) for key, (v, start) in self._states.items()]
        reads = [(v, cell) for cell, key, v, _ in states if key in self._read]
        writes = [cell for cell, _, _, start in states if start in written]
        calls_python = any(n.effect is Effect.PYTHON for n in self._builder.nodes)
        graph = self._builder.finish(outputs, updates)
        compiled = CompiledGraph(graph, history=AssignmentHistory(graph, self._holder_of, self._mark_started))
        return RunPlan(compiled, tuple(reads), tuple(writes), calls_python)

    def _holder_of(self, variable: Any, arguments: Sequence[Any]) -> Variable:
        """The variable that holds the value of a graph's variable in the session."""
        return self._cells(variable).holder

    def _mark_started(self, variable: Any) -> None:
        """Note that a graph's variable has a value."""
        self._cells(variable).started = True

    def _step(self, node: Node) -> None:
        if node.op is READ:
            self._known.setdefault(node.output, self._reading(node.attrs["variable"]))
            return
        inputs = [self._value(v) for v in node.inputs]
        if node.op is ASSIGN:
            variable = node.attrs["variable"]
            self._start(variable)
            self._current[id(variable)] = inputs[0]
            self._builder.add(ASSIGNMENT, inputs, {"variable": variable}, node.origin)
            self._known.setdefault(node.output, inputs[0])
            return
        if node.op is DEFAULT:
            self._known.setdefault(node.output, inputs[0])
            return
        if node.op is SHAPE and inputs[0].spec.shape.is_static:  # the feeds have told it
            sizes = np.array(inputs[0].spec.shape, node.attrs["dtype"].dtype)
            new = self._builder.add(CONSTANT, (), {"value": sizes}, node.origin)
            self._known.setdefault(node.output, new.output)
            return
        if node.op is POSTPONED:
            for old, value in zip(node.outputs, make(self._builder, node, inputs), strict=True):
                self._known.setdefault(old, value)
            return
        new = self._builder.add(node.op, inputs, attrs_for(node, [v.spec for v in inputs]), node.origin)
        for old, value in zip(node.outputs, new.outputs, strict=True):
            self._known.setdefault(old, value)

    def _value(self, value: Value) -> Value:
        found = self._known.get(value)
        if found is None:
            capture = self._captures.get(value)
            if capture is None:
                raise self._unfed(value)
            found = self._builder.capture(value.spec, capture.source, variable=capture.variable)
            self._known[value] = found
        return found

    def _unfed(self, value: Value) -> InvalidArgumentError:
        name, line = self._engine.tensor_name(value), self._engine.origin(value)
        return InvalidArgumentError(
            f"You must feed a value for placeholder tensor '{name}' with dtype {value.spec.dtype.name} and "
            f"shape {value.spec.shape}, which the fetches depend on: run(fetches, "
            f"feed_dict={{{name.rpartition(':')[0]}: "
            "value})." + (f"\n  {line}" if line else "")
        )

    def _start(self, variable: Any) -> Value:
        """The input that holds the variable's value as the run begins."""
        found = self._states.get(id(variable))
        if found is None:
            holder = self._cells(variable).holder
            start = self._builder.capture(variable_spec(variable), holder, variable=True)
            found = self._states[id(variable)] = variable, start
            self._current[id(variable)] = start
        return found[1]

    def _reading(self, variable: Any) -> Value:
        start = self._start(variable)
        current = self._current[id(variable)]
        if current is not start:
            return current
        first = self._engine.value_of(variable)
        if (
            first is not None and first in self._fed
        ):  # what is fed for the variable stands for its value in all of the run
            return self._known[first]
        self._read.add(id(variable))
        return start

    def _update(self, variable: Any, start: Value) -> Update:
        value = self._current[id(variable)]
        if value.spec != start.spec:
            raise InvalidArgumentError(
                f"{variable.name} has shape {variable.shape} and can't hold a value of shape "
                f"{value.spec.shape}; the shapes must be equal."
            )
        return Update(start, value)
