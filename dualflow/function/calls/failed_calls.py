"""Recovery after a failed call: variables get the values that eager code would have assigned by then.

Compiled code writes to variables last, when nothing can fail any more, so a call that fails has changed none.
If assignments precede the failing line, the interpreter runs the trace again, from the variables' values
before the call, up to that line. Successful calls do no extra work.

Collectives with other workers are not repeated. Machine code does not record their results, and may fail
after those of loops. Then the replay ends at the first collective: variables keep what was assigned
before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from dualflow.core.errors import InternalError
from dualflow.core.locks import cached_attribute
from dualflow.eager.device_tensor import placed_like
from dualflow.eager.tensor import wrap
from dualflow.eager.updates import VariableUpdate
from dualflow.function.calls.array_ownership import array_of
from dualflow.graph.effect_log import (
    Assigned,
    EffectLog,
    Halted,
    note_assigned,
    runs_once,
    take_assigned,
)
from dualflow.graph.interpret import evaluate, observed, run_node
from dualflow.graph.ir import Graph, Node, Origin
from dualflow.graph.passes.assignments import ASSIGNMENT, assigned_by, assigns_before_failure
from dualflow.ops.op_kinds import Loop
from dualflow.ops.record import Effect

Array = np.ndarray[Any, Any]


class AssignmentHistory:
    """The assignments of a trace, which are replayed after a call of it has failed.

    Args:
        graph: the trace, with its assignments.
        variable_of: called with a variable that the trace assigns and the call's arguments; returns the
            variable that the call assigns.
        on_assigned: called with each variable of the trace that was assigned.
    """

    def __init__(
        self,
        graph: Graph,
        variable_of: Callable[[Any, Sequence[Any]], Any],
        on_assigned: Callable[[Any], None] = lambda variable: None,
    ) -> None:
        self._graph = graph
        self._variable_of = variable_of
        self._on_assigned = on_assigned

    @cached_attribute
    def is_needed(self) -> bool:
        """Whether the log is needed: an assignment may precede a line that fails."""
        return assigns_before_failure(self._graph)

    @cached_attribute
    def _generators(self) -> tuple[Any, ...]:
        """The random generators that the trace draws from."""
        drawing = (n for n in _all_nodes(self._graph) if n.effect is Effect.RANDOM and not n.bodies)
        generators = {id(g): g for n in drawing if (g := n.attrs.get("generator")) is not None}
        return tuple(generators.values())

    @cached_attribute
    def _assigned(self) -> tuple[Any, ...]:
        """The variables that are assigned in the trace."""
        named = (v for n in _all_nodes(self._graph) for v in assigned_by(n))
        return tuple({id(v): v for v in named}.values())

    def effect_log(self) -> EffectLog | None:
        """A new log for a call; None if recovery needs none."""
        return EffectLog(self._generators) if self.is_needed else None

    def recover(self, error: BaseException, effect_log: EffectLog, arguments: Sequence[Any]) -> BaseException:
        """Assign the values to variables that eager code would have assigned before ``error``.

        Args:
            error: the exception that ended the compiled call.
            effect_log: the Python calls and prints of the call.
            arguments: the tensors and variables of the call.

        Returns:
            The error to raise: a different one if eager code fails at an earlier line.
        """
        recovery = _Recovery(error, effect_log)
        variables = {id(v): self._variable_of(v, arguments) for v in self._assigned}
        assigned = {id(v): v for v in variables.values()}
        update = VariableUpdate(list(assigned.values()))
        with update.running, update as locks:
            try:
                self._run(recovery, arguments)
            finally:
                lock_of = dict(zip(assigned, locks, strict=True))
                for key, (variable, array) in recovery.assigned.items():
                    lock = lock_of[id(variables[key])]
                    lock.tensor = placed_like(wrap(np.array(array, order="C")), lock.tensor)
                    self._on_assigned(variable)
        return recovery.make_error()

    def _run(self, recovery: _Recovery, arguments: Sequence[Any]) -> None:
        sources = (*arguments, *(c.source for c in self._graph.captures))
        recovery.run(self._graph, [array_of(x) for x in sources])


class LoopHistory(AssignmentHistory):
    """The assignments of one iteration of a Python loop; after a failure they are stored in the error."""

    def recover(self, error: BaseException, effect_log: EffectLog, arguments: Sequence[Any]) -> BaseException:
        recovery = _Recovery(error, effect_log)
        self._run(recovery, arguments)
        raised = recovery.make_error()
        note_assigned(raised, recovery.assigned)
        return raised


class _Ended(BaseException):
    """Raised when the replay has reached the line at which the call ended."""


class _Recovery:
    """One replay of a trace by the interpreter, after a call of it has failed.

    Attributes:
        assigned: the assigned variables by id, each with its value.
        make_error: returns the error that eager code would have raised.
    """

    def __init__(self, error: BaseException, effect_log: EffectLog) -> None:
        self.assigned: Assigned = {}
        self.make_error: Callable[[], BaseException] = effect_log.make or (lambda: error)
        self._error = error
        self._effect_log = effect_log
        self._recorded = iter(effect_log.done)
        self._ended_in_python = bool(effect_log.done) and effect_log.done[-1] is error
        self._stops_at_line = not self._ended_in_python and not _is_of_values(error, effect_log)
        self._lines: set[Origin | None] = set()
        if effect_log.node is not None:
            self._lines = {effect_log.node.origin, *effect_log.node.merged_origins} - {None}
        self._assigned_at_line: Assigned | None = None
        self._failing: Node | None = None

    def run(self, graph: Graph, arrays: Sequence[Array]) -> None:
        """Run ``graph`` until it fails, or reaches the line at which the call failed."""
        if self._effect_log.node is None and not self._ended_in_python:  # before the first node or after all
            return
        self._effect_log.rewind()
        try:
            with observed(self._step):
                evaluate(graph, arrays)
        except _Ended:
            pass
        except Exception as error:
            if self._failing is None or self._failing.origin not in self._lines:
                raised = error
                self.make_error = lambda: raised
        else:  # machine code failed and NumPy does not, since they round differently
            self.assigned = self._assigned_at_line or {}

    def _step(self, node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
        """Run one node of the replay; returns its results."""
        if node.op is ASSIGNMENT:
            self.assigned[id(node.attrs["variable"])] = node.attrs["variable"], arrays[0]
            return ()
        if not self._effect_log.records_collectives and node.effect is Effect.COLLECTIVE and not node.bodies:
            raise _Ended  # its result is lost, and other workers don't repeat it
        if node.origin in self._lines and self._may_be_failing(node):
            if self._stops_at_line:
                raise _Ended
            if self._assigned_at_line is None:
                self._assigned_at_line = dict(self.assigned)
        if runs_once(node):
            return self._python_call(node, arrays)
        if node.effect is Effect.CHECK and not node.bodies and not node.outputs:
            if arrays[0]:
                return ()
            if node.origin not in self._lines:
                self.make_error = partial(_error_of, node, arrays)
            raise _Ended
        try:
            return run_node(node, arrays)
        except Exception:
            self._failing = self._failing or node
            raise

    def _may_be_failing(self, node: Node) -> bool:
        """Whether the call may have failed while it ran ``node``, given that the line is the same."""
        ended = self._effect_log.node
        assert ended is not None, "_lines are its lines"
        if not self._stops_at_line or self._effect_log.of_memory:
            return True
        return isinstance(node.op.kind, Loop) or node.op.name == ended.op.name

    def _python_call(self, node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
        """The recorded results of a Python call or print; it runs if the failed call had not reached it."""
        recorded = next(self._recorded, None)
        if recorded is None:
            if self._stops_at_line or self._assigned_at_line is not None:
                raise _Ended
            return run_node(node, arrays)
        if isinstance(recorded, BaseException):
            self.assigned.update(take_assigned(recorded))
            self._failing = node
            raise recorded if recorded is not self._error else _Ended
        return recorded


def _is_of_values(error: BaseException, effect_log: EffectLog) -> bool:
    """Whether the failure depends on values alone, so that NumPy fails too: no signal, enough memory.

    Neither does that of a collective, which the replay must not repeat.
    """
    if isinstance(error, Halted):
        return (
            not effect_log.of_memory
            and effect_log.node is not None
            and effect_log.node.effect is not Effect.COLLECTIVE
            and not isinstance(effect_log.node.op.kind, Loop)
        )
    return isinstance(error, Exception) and not isinstance(error, MemoryError)


def _error_of(node: Node, arrays: Sequence[Array]) -> BaseException:
    """The error that a failing check raises."""
    try:
        node.op.kernel(*arrays, **node.attrs)
    except Exception as error:
        return error
    raise InternalError(f"{node} did not fail")


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for _, body in node.bodies:
            yield from _all_nodes(body)
