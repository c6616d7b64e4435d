"""Run plans: the part of an explicit graph that the fetches need, compiled for the shapes of the feeds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.device_names import CPU, GPU
from dualflow.core.errors import DualflowError, InvalidArgumentError
from dualflow.core.records import replace
from dualflow.core.spec import TensorSpec
from dualflow.core.traced_device import traced_on
from dualflow.eager.device_engine import ON_GPU
from dualflow.eager.engine import EAGER
from dualflow.eager.variable import Variable
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.failed_calls import AssignmentHistory
from dualflow.function.options import DEVICE_CODE, compile_options
from dualflow.graph.fused import computed_nodes
from dualflow.graph.interpret import run_node
from dualflow.graph.ir import Capture, GraphBuilder, Node, Update, Value
from dualflow.graph.passes.assignments import ASSIGNMENT
from dualflow.graph.passes.lower_placement import is_placed_on_host
from dualflow.graph.respecialise_bodies import attrs_for
from dualflow.graph_mode.graph_engine import GraphEngine
from dualflow.graph_mode.replaced_ops import ASSIGN, DEFAULT, READ, variable_spec
from dualflow.graph_mode.running_session import SessionVariable
from dualflow.graph_mode.string_tail import StringTail, string_tail
from dualflow.graph_mode.unknown_rank import POSTPONED_OPS, expand
from dualflow.ops.creation import CONSTANT, zeros
from dualflow.ops.record import Effect
from dualflow.ops.tensor_sizes import SHAPE

_MAX_INTEGERS: Final = 64
"""The number of integers from which a run plan computes others."""


def session_variable(variable: Any, on_device: bool) -> SessionVariable:
    """An uninitialised session variable for a graph's variable, on the GPU if ``on_device``."""
    spec = variable_spec(variable)
    with dispatch.using(ON_GPU if on_device else EAGER):
        return SessionVariable(Variable(zeros(spec.shape, spec.dtype), name=variable.name.partition(":")[0]))


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A compiled part of a graph, for one session.

    Attributes:
        compiled: the compiled graph, whose arguments are the feeds.
        reads: the graph's variables that it reads, with their session variables.
        writes: the session variables that it writes.
        calls_python: whether it calls Python code, which may keep references to its arguments.
        tail: what runs after it; None if it computes the fetches.
    """

    compiled: CompiledGraph
    reads: tuple[tuple[Any, SessionVariable], ...]
    writes: tuple[SessionVariable, ...]
    calls_python: bool
    tail: StringTail | None = None


def plan(
    engine: GraphEngine,
    fetches: Sequence[Value],
    nodes: Sequence[Node],
    feeds: Mapping[Value, TensorSpec],
    variables: Callable[[Any], SessionVariable],
    *,
    soft_placement: bool,
) -> RunPlan:
    """The plan that computes ``fetches`` and runs ``nodes`` for feeds of these specs.

    ``variables`` returns the session variable of a graph's variable. Without ``soft_placement``, compiling
    the plan fails for an op in a block of the GPU that has no code for it.

    Raises:
        InvalidArgumentError: a placeholder is needed and not fed.
    """
    return _Replay(engine, feeds, variables).plan(fetches, nodes, soft_placement)


def log_placement(compiled: CompiledGraph, on_device: bool) -> None:
    """Print the ops of a run plan to stderr, each with the device that runs it, in TensorFlow's form."""
    parts = compiled.executable.parts if on_device else ()
    nodes = [inner for part in parts if part.node is not None for inner in computed_nodes(part.node)]
    without_code = {node.op for node in nodes if not is_placed_on_host(node)}
    for node in compiled.graph.nodes:
        if node.op is not ASSIGNMENT:
            on_host = not on_device or node.device == CPU or node.op in without_code
            device = CPU if on_host else GPU
            print(f"{node.op.name}: ({node.op.name}): {device}", file=sys.stderr)


def needed(
    after: Mapping[Node, Sequence[Node]],
    fetches: Sequence[Value],
    nodes: Sequence[Node],
    fed: Mapping[Value, Any],
) -> set[Node]:
    """The nodes that ``fetches`` and ``nodes`` depend on, by data or by control dependencies (``after``)."""
    ancestors: set[Node] = set()
    pending = [*nodes, *(v.node for v in fetches if v not in fed and v.node is not None)]
    while pending:
        node = pending.pop()
        if node not in ancestors:
            ancestors.add(node)
            pending += [v.node for v in node.inputs if v not in fed and v.node is not None]
            pending += after.get(node, ())
    return ancestors


class _Replay:
    """Copies nodes of an explicit graph in program order, with the shapes of the feeds.

    Each variable becomes an input. Its reads and assignments are replaced by its current value.
    """

    def __init__(
        self,
        engine: GraphEngine,
        feeds: Mapping[Value, TensorSpec],
        variables: Callable[[Any], SessionVariable],
    ) -> None:
        self._engine = engine
        self._variables = variables
        self._builder = GraphBuilder(engine.name)
        self._fed = feeds
        self._values = {value: self._builder.argument(spec) for value, spec in feeds.items()}
        self._captures: dict[Value, Capture] = dict(engine.builder.captures)
        self._initial_values: dict[int, tuple[Any, Value]] = {}
        self._current_values: dict[int, Value] = {}
        self._read: set[int] = set()
        self._expands = False

    def plan(self, fetches: Sequence[Value], nodes: Sequence[Node], soft_placement: bool) -> RunPlan:
        after = self._engine.open.after
        ancestors = needed(after, fetches, nodes, self._fed)
        ordered = [node for node in self._engine.builder.nodes if node in ancestors]
        tail = string_tail(ordered, fetches, self._fed, after)
        late = set(tail.nodes if tail else ())
        self._expands = any(node.op in POSTPONED_OPS for node in ordered)
        for node in ordered:
            if node not in late:
                self._replay_node(node)
        outputs = [self._new_value(v) for v in (tail.inputs if tail else fetches)]
        updates = [
            self._update(variable, start)
            for key, (variable, start) in self._initial_values.items()
            if self._current_values[key] is not start
        ]
        written = {u.input for u in updates}
        states = [(self._variables(v), key, v, start) for key, (v, start) in self._initial_values.items()]
        reads = [(v, state) for state, key, v, _ in states if key in self._read]
        writes = [state for state, _, _, start in states if start in written]
        calls_python = any(n.effect is Effect.PYTHON for n in self._builder.nodes)
        graph = self._builder.finish(outputs, updates)
        options = replace(
            compile_options(DEVICE_CODE if self._engine.on_device else None), soft_placement=soft_placement
        )
        compiled = CompiledGraph(
            graph, options, history=AssignmentHistory(graph, self._holder_of, self._mark_initialised)
        )
        return RunPlan(compiled, tuple(reads), tuple(writes), calls_python, tail)

    def _holder_of(self, variable: Any, arguments: Sequence[Any]) -> Variable:
        """The eager variable that holds the value of a graph's variable in the session."""
        return self._variables(variable).holder

    def _mark_initialised(self, variable: Any) -> None:
        """Record that a graph's variable has been initialised."""
        self._variables(variable).initialised = True

    def _replay_node(self, node: Node) -> None:
        if node.op is READ:
            self._values.setdefault(node.output, self._current_value(node.attrs["variable"]))
            return
        inputs = [self._new_value(v) for v in node.inputs]
        if node.op is ASSIGN:
            variable = node.attrs["variable"]
            self._initial_value(variable)
            self._current_values[id(variable)] = inputs[0]
            self._builder.add(ASSIGNMENT, inputs, {"variable": variable}, node.origin)
            self._values.setdefault(node.output, inputs[0])
            return
        if node.op is DEFAULT:
            self._values.setdefault(node.output, inputs[0])
            return
        if node.op is SHAPE and inputs[0].spec.shape.is_static:  # from the shapes of the feeds
            sizes = np.array(inputs[0].spec.shape, node.attrs["dtype"].dtype)
            new = self._builder.add(CONSTANT, (), {"value": sizes}, node.origin)
            self._values.setdefault(node.output, new.output)
            return
        if node.op in POSTPONED_OPS:
            with traced_on(node.device):
                values = expand(self._builder, node, inputs)
            for old, value in zip(node.outputs, values, strict=True):
                self._values.setdefault(old, value)
            return
        arrays = _integers(node, inputs) if self._expands else None
        if arrays is not None:
            for old, array in zip(node.outputs, arrays, strict=True):
                new = self._builder.add(CONSTANT, (), {"value": array}, node.origin)
                self._values.setdefault(old, new.output)
            return
        with traced_on(node.device):
            new = self._builder.add(node.op, inputs, attrs_for(node, [v.spec for v in inputs]), node.origin)
        for old, value in zip(node.outputs, new.outputs, strict=True):
            self._values.setdefault(old, value)

    def _new_value(self, value: Value) -> Value:
        new_value = self._values.get(value)
        if new_value is None:
            capture = self._captures.get(value)
            if capture is None:
                raise self._unfed(value)
            new_value = self._builder.capture(value.spec, capture.source, variable=capture.variable)
            self._values[value] = new_value
        return new_value

    def _unfed(self, value: Value) -> InvalidArgumentError:
        name, line = self._engine.tensor_name(value), self._engine.origin(value)
        return InvalidArgumentError(
            f"You must feed a value for placeholder tensor '{name}' with dtype {value.spec.dtype.name} and "
            f"shape {value.spec.shape}, which the fetches depend on: "
            f"run(fetches, feed_dict={{{name.rpartition(':')[0]}: value}})." + (f"\n  {line}" if line else "")
        )

    def _initial_value(self, variable: Any) -> Value:
        """The input of the plan for the value that the variable has at the start of a run."""
        state = self._initial_values.get(id(variable))
        if state is None:
            holder = self._variables(variable).holder
            start = self._builder.capture(variable_spec(variable), holder, variable=True)
            state = self._initial_values[id(variable)] = variable, start
            self._current_values[id(variable)] = start
        return state[1]

    def _current_value(self, variable: Any) -> Value:
        start = self._initial_value(variable)
        current = self._current_values[id(variable)]
        if current is not start:
            return current
        first = self._engine.value_of(variable)
        if first is not None and first in self._fed:  # a value fed for the variable holds in all of the run
            return self._values[first]
        self._read.add(id(variable))
        return start

    def _update(self, variable: Any, start: Value) -> Update:
        value = self._current_values[id(variable)]
        if value.spec != start.spec:
            raise InvalidArgumentError(
                f"{variable.name} has shape {variable.shape} and can't hold a value of shape "
                f"{value.spec.shape}; the shapes must be equal."
            )
        return Update(start, value)


def _integers(node: Node, inputs: Sequence[Value]) -> Sequence[np.ndarray[Any, Any]] | None:
    """The results of a node on a few constant integers, such as sizes; None if they aren't computed.

    Expanded calls may need them as numbers: the axes of a transposition, for example.
    """
    specs = [*node.specs, *[v.spec for v in inputs]]
    if node.effect not in (None, Effect.CHECK) or not all(
        s.dtype.is_integer or s.dtype.is_bool for s in specs
    ):
        return None
    arrays = [v.node.attrs["value"] for v in inputs if v.node is not None and v.node.op is CONSTANT]
    if not arrays or len(arrays) < len(inputs) or sum(array.size for array in arrays) > _MAX_INTEGERS:
        return None
    try:
        return run_node(node, arrays)
    except DualflowError:  # raised again in the run
        return None
