"""What a call has done through Python before it failed, so that running it again does nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dualflow.graph.interpret import run_node
from dualflow.graph.ir import Node
from dualflow.ops.op_kinds import Loop
from dualflow.ops.record import Effect

Array = np.ndarray[Any, Any]


class Halted(BaseException):
    """Machine code has ended a call by a check; ``EffectLog.make`` gives the error."""


class EffectLog:
    """One call, as it goes on: an observer of what runs by NumPy and Python.

    Args:
        generators: what random numbers are drawn from.

    Attributes:
        done: what each call of Python and each print has given, in order; an error where it ended.
        node: what runs, of the compiled graph; the outermost loop where that is inside one.
        make: makes the error of a check that failed. Its expression reads variables, so these are settled
            before it runs.
        of_memory: whether machine code ended for want of memory, which NumPy might find.
        late: what a signal's handler raised when machine code had come to its end.
    """

    __slots__ = ("_in_loop", "_states", "done", "late", "make", "node", "of_memory")

    def __init__(self, generators: Iterable[Any] = ()) -> None:
        self.done: list[Sequence[Array] | BaseException] = []
        self.node: Node | None = None
        self.make: Callable[[], BaseException] | None = None
        self.late: BaseException | None = None
        self.of_memory = False
        self._in_loop = False
        bits = [g.philox.bit_generator for g in generators]
        self._states = [(b, b.state) for b in bits]

    def follow(self, node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
        """The outputs of ``node``, which is what runs, as :meth:`run` gives them; so are nodes inside it."""
        if self._in_loop:
            return self.run(node, arrays)
        self.node, self._in_loop = node, isinstance(node.op.kind, Loop)
        try:
            return self.run(node, arrays)
        finally:
            self._in_loop = False

    def run(self, node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
        """The outputs of ``node``, remembered if having them again would do something twice."""
        if not is_told(node):
            return run_node(node, arrays)
        try:
            found = run_node(node, arrays)
        except BaseException as error:
            self.done.append(error)
            raise
        self.done.append(found)
        return found

    def end(self) -> None:
        """Raise what came too late to end the call, when all is done."""
        if self.late is not None:
            raise self.late

    def rewind(self) -> None:
        """Let the generators draw again what they have drawn in the call."""
        for bits, state in self._states:
            bits.state = state


Assigned = dict[int, tuple[Any, Array]]
"""Variables by their ids, each with what it holds."""


def note_assigned(error: BaseException, assigned: Assigned) -> None:
    """Say with ``error`` what the node that it ended had assigned by then."""
    error._assigned = assigned  # type: ignore[attr-defined]  # errors take any attribute


def take_assigned(error: BaseException) -> Assigned:
    """What :func:`note_assigned` has said, which is said once."""
    found: Assigned = error.__dict__.pop("_assigned", {})
    return found


def is_told(node: Node) -> bool:
    """Whether ``node`` itself tells Python something: a call or a print, and no body with such."""
    return node.effect in (Effect.PYTHON, Effect.PRINT) and not node.bodies
