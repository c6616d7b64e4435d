"""Effect logs: Python calls, prints and collectives of a failed call, which a replay doesn't repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from dualflow.graph.interpret import observed, run_node
from dualflow.graph.ir import Node
from dualflow.graph.symbolic_evaluation import evaluated_with
from dualflow.ops.op_kinds import Loop
from dualflow.ops.record import Effect
from dualflow.sizes.symbolic_sizes import SizeVariable

Array = np.ndarray[Any, Any]


class Halted(BaseException):
    """A check in machine code has ended a call; ``EffectLog.make`` creates the error."""


class EffectLog:
    """The effect log of one call, which records the nodes that run through NumPy and Python.

    Args:
        generators: the random generators of the call.

    Attributes:
        done: the results of each Python call, print and collective, in order; the error of one that raised.
        node: the node of the compiled graph that is running; inside a loop, the outermost loop.
        make: creates the error of a check that failed. Its message reads variables, so they are committed
            before it is called.
        of_memory: whether machine code ran out of memory. A replay through NumPy may need less.
        late: the error that a signal handler raised after machine code had finished.
        records_collectives: whether ``done`` has each collective that a node which may fail follows; machine
            code records none.
    """

    __slots__ = ("_in_loop", "_states", "done", "late", "make", "node", "of_memory", "records_collectives")

    def __init__(self, generators: Iterable[Any] = ()) -> None:
        self.done: list[Sequence[Array] | BaseException] = []
        self.node: Node | None = None
        self.make: Callable[[], BaseException] | None = None
        self.late: BaseException | None = None
        self.of_memory = False
        self.records_collectives = True
        self._in_loop = False
        bits = [g.philox.bit_generator for g in generators]
        self._states = [(b, b.state) for b in bits]

    def follow(self, node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
        """Run ``node`` as the current node; nodes inside it are recorded too. Returns its outputs."""
        if self._in_loop:
            return self.run(node, arrays)
        self.node, self._in_loop = node, isinstance(node.op.kind, Loop)
        try:
            return self.run(node, arrays)
        finally:
            self._in_loop = False

    @contextmanager
    def in_loop(self, node: Node) -> Iterator[None]:
        """While the context is entered, ``node`` is a running loop, and host calls are inside of it.

        If the loop fails, it stays the current node.
        """
        if self._in_loop:
            yield
            return
        self.node, self._in_loop = node, True
        try:
            yield
        finally:
            self._in_loop = False
        self.node = None

    def run(self, node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
        """Run ``node``, and record its outputs if running it again would repeat an effect."""
        if not runs_once(node):
            return run_node(node, arrays)
        try:
            outputs = run_node(node, arrays)
        except BaseException as error:
            self.done.append(error)
            raise
        self.done.append(outputs)
        return outputs

    def end(self) -> None:
        """Raise the error of a signal that came too late to end the call."""
        if self.late is not None:
            raise self.late

    def rewind(self) -> None:
        """Reset the generators to their states at the start of the call."""
        for bits, state in self._states:
            bits.state = state


def run_host_kernel(
    node: Node,
    inputs: Sequence[Array],
    effect_log: EffectLog | None,
    sizes: Mapping[SizeVariable, int] | None,
) -> Sequence[Array]:
    """The results of the NumPy kernel of ``node``, which a compiled graph calls.

    ``effect_log`` records side effects, which must not run twice. ``sizes`` are the numbers of the size
    variables in graphs inside the node.
    """
    with evaluated_with(sizes) if sizes is not None and node.bodies else nullcontext():
        if effect_log is None:
            return run_node(node, inputs)
        with observed(effect_log.follow):
            return effect_log.follow(node, inputs)


Assigned = dict[int, tuple[Any, Array]]
"""Variables by their ids, each with its value."""


def note_assigned(error: BaseException, assigned: Assigned) -> None:
    """Attach to ``error`` the assignments that its node made before it failed."""
    error._assigned = assigned  # type: ignore[attr-defined]  # errors take any attribute


def take_assigned(error: BaseException) -> Assigned:
    """Remove and return the assignments that :func:`note_assigned` attached to ``error``."""
    assigned: Assigned = error.__dict__.pop("_assigned", {})
    return assigned


def runs_once(node: Node) -> bool:
    """Whether a replay must not repeat ``node``: a Python call, a print or a collective with other workers.

    A branch or loop that contains one is no such node.
    """
    return node.effect in (Effect.PYTHON, Effect.PRINT, Effect.COLLECTIVE) and not node.bodies
