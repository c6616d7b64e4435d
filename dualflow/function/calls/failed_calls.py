"""After a failed call, variables hold what the lines before the failing one have assigned, as in eager code.

Compiled code writes to variables last, when nothing can fail any more, so a call that fails has changed none.
If assignments stand before the failing line, the trace is run again by the interpreter, from the variables'
values before the call, up to that line. Calls that succeed pay nothing for this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from dualflow.core.errors import InternalError
from dualflow.core.locks import cached_attribute
from dualflow.eager.tensor import wrap
from dualflow.eager.updates import UpdateStep
from dualflow.function.calls.array_ownership import array_of
from dualflow.graph.effect_log import Assigned, EffectLog, Halted, is_told, note_assigned, take_assigned
from dualflow.graph.interpret import evaluate, observed, run_node
from dualflow.graph.ir import Graph, Node, Origin
from dualflow.graph.passes.assignments import ASSIGNMENT, assigned_by, assigns_before_failure
from dualflow.ops.op_kinds import Loop
from dualflow.ops.record import Effect

Array = np.ndarray[Any, Any]


class AssignmentHistory:
    """Assigns to variables what a failed call of a trace had assigned by then.

    Args:
        graph: the trace, with its assignments.
        behind: the variable that is meant where the trace assigns one, given that and the call's arguments.
        begun: is told of each variable that the trace assigns and that holds a value now.
    """

    def __init__(
        self,
        graph: Graph,
        behind: Callable[[Any, Sequence[Any]], Any],
        begun: Callable[[Any], None] = lambda variable: None,
    ) -> None:
        self._graph = graph
        self._behind = behind
        self._begun = begun

    @cached_attribute
    def matters(self) -> bool:
        """Whether an assignment may stand before a line that fails."""
        return assigns_before_failure(self._graph)

    @cached_attribute
    def _generators(self) -> tuple[Any, ...]:
        drawing = (n for n in _all_nodes(self._graph) if n.effect is Effect.RANDOM and not n.bodies)
        found = {id(g): g for n in drawing if (g := n.attrs.get("generator")) is not None}
        return tuple(found.values())

    @cached_attribute
    def _assigned(self) -> tuple[Any, ...]:
        """The variables that are assigned in the trace."""
        named = (v for n in _all_nodes(self._graph) for v in assigned_by(n))
        return tuple({id(v): v for v in named}.values())

    def effect_log(self) -> EffectLog | None:
        """The record that a call which begins now fills; None if nothing has to be recorded."""
        return EffectLog(self._generators) if self.matters else None

    def leave(self, error: BaseException, effect_log: EffectLog, arguments: Sequence[Any]) -> BaseException:
        """Assign to variables what a call had assigned before it failed with ``error``; return what to raise.

        That is another error where eager code fails at an earlier line.

        Args:
            error: what has ended the compiled call.
            effect_log: what it has left.
            arguments: the tensors and variables that it was given.
        """
        again = _Again(error, effect_log)
        variables = {id(v): self._behind(v, arguments) for v in self._assigned}
        held = {id(v): v for v in variables.values()}
        step = UpdateStep(list(held.values()))
        with step.running, step as locks:
            try:
                self._run(again, arguments)
            finally:
                lock_of = dict(zip(held, locks, strict=True))
                for key, (variable, array) in again.left.items():
                    lock_of[id(variables[key])].tensor = wrap(np.array(array, order="C"))
                    self._begun(variable)
        return again.make()

    def _run(self, again: _Again, arguments: Sequence[Any]) -> None:
        sources = (*arguments, *(c.source for c in self._graph.captures))
        again.run(self._graph, [array_of(x) for x in sources])


class LoopHistory(AssignmentHistory):
    """Of one iteration of a loop in Python: what a failed iteration had assigned is said with its error."""

    def leave(self, error: BaseException, effect_log: EffectLog, arguments: Sequence[Any]) -> BaseException:
        again = _Again(error, effect_log)
        self._run(again, arguments)
        told = again.make()
        note_assigned(told, again.left)
        return told


class _Ended(BaseException):
    """The line has been reached at which the call ended."""


class _Again:
    """A trace that is run again after its call has failed.

    Attributes:
        left: the assigned variables by id, each with what it holds.
        make: gives what eager code would have raised.
    """

    def __init__(self, error: BaseException, effect_log: EffectLog) -> None:
        self.left: Assigned = {}
        self.make: Callable[[], BaseException] = effect_log.make or (lambda: error)
        self._error = error
        self._effect_log = effect_log
        self._done = iter(effect_log.done)
        self._told = bool(effect_log.done) and effect_log.done[-1] is error
        self._ends = not self._told and not _is_of_values(error, effect_log)
        self._lines: set[Origin | None] = set()
        if effect_log.node is not None:
            self._lines = {effect_log.node.origin, *effect_log.node.also} - {None}
        self._at_line: Assigned | None = None
        self._failed: Node | None = None

    def run(self, graph: Graph, arrays: Sequence[Array]) -> None:
        """Run ``graph`` up to where it fails, or to where the call failed."""
        if self._effect_log.node is None and not self._told:  # it had not begun, or was done
            return
        self._effect_log.rewind()
        try:
            with observed(self._step):
                evaluate(graph, arrays)
        except _Ended:
            pass
        except Exception as error:
            if self._failed is None or self._failed.origin not in self._lines:
                found = error
                self.make = lambda: found
        else:  # what failed in machine code does not by NumPy: it was rounded otherwise
            self.left = self._at_line or {}

    def _step(self, node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
        if node.op is ASSIGNMENT:
            self.left[id(node.attrs["variable"])] = node.attrs["variable"], arrays[0]
            return ()
        if node.origin in self._lines and self._is_alike(node):
            if self._ends:
                raise _Ended
            if self._at_line is None:
                self._at_line = dict(self.left)
        if is_told(node):
            return self._tell(node, arrays)
        if node.effect is Effect.CHECK and not node.bodies and not node.outputs:
            if arrays[0]:
                return ()
            if node.origin not in self._lines:
                self.make = partial(_error_of, node, arrays)
            raise _Ended
        try:
            return run_node(node, arrays)
        except Exception:
            self._failed = self._failed or node
            raise

    def _is_alike(self, node: Node) -> bool:
        """Whether ``node`` may be what ran when the call ended: a loop for a loop."""
        ran = self._effect_log.node
        assert ran is not None, "there are lines to look for"
        if not self._ends or self._effect_log.of_memory:
            return True
        return isinstance(node.op.kind, Loop) or node.op.name == ran.op.name

    def _tell(self, node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
        """The recorded results of a Python call or a print; one that the failed call had not reached runs."""
        found = next(self._done, None)
        if found is None:
            if self._ends or self._at_line is not None:
                raise _Ended
            return run_node(node, arrays)
        if isinstance(found, BaseException):
            self.left.update(take_assigned(found))
            self._failed = node
            raise found if found is not self._error else _Ended
        return found


def _is_of_values(error: BaseException, effect_log: EffectLog) -> bool:
    """Whether values made the call fail, so that NumPy fails too, and not a want of memory or a signal."""
    if isinstance(error, Halted):
        return (
            not effect_log.of_memory
            and effect_log.node is not None
            and not isinstance(effect_log.node.op.kind, Loop)
        )
    return isinstance(error, Exception) and not isinstance(error, MemoryError)


def _error_of(node: Node, arrays: Sequence[Array]) -> BaseException:
    """The error that a failing check raises."""
    try:
        node.op.kernel(*arrays, **node.attrs)
    except Exception as error:
        return error
    raise InternalError(f"{node} was to fail")


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for _, body in node.bodies:
            yield from _all_nodes(body)
