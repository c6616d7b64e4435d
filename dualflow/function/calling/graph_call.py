"""A call of a compiled graph by the interpreter: arrays out of tensors and variables, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.spans import span
from dualflow.eager.tensor import wrap
from dualflow.eager.updates import UpdateStep, WriteLock, commit
from dualflow.function.calling.array_ownership import array_of, gather
from dualflow.graph.trail import Trail

if TYPE_CHECKING:
    from dualflow.function.calling.failed_calls import AssignmentHistory
    from dualflow.graph.compiled import Compiled

Array = np.ndarray[Any, Any]


class GraphCall:
    """A graph that runs, with what is behind its captures.

    Args:
        compiled: what runs.
        history: what the trace has assigned before a call fails; None where somebody else sees to it.

    Attributes:
        captured: the variables and tensors behind the inputs that follow the arguments.
        written: the inputs that are variables with updates.
    """

    __slots__ = ("_compiled", "_history", "captured", "written")

    def __init__(self, compiled: Compiled, history: AssignmentHistory | None) -> None:
        graph = compiled.graph
        place = {v: i for i, v in enumerate(graph.inputs)}
        self._compiled = compiled
        self._history = history
        self.captured = tuple([c.source for c in graph.captures])
        self.written = tuple([place[u.input] for u in graph.updates])

    def __call__(self, *arguments: Any) -> Sequence[Any]:
        """The outputs as tensors, for a tensor or variable behind each argument; variables are updated."""
        sources = (*arguments, *self.captured)
        history = self._history
        trail = None if history is None else history.trail()
        step = UpdateStep([sources[i] for i in self.written], compiled=True)
        try:
            if not self.written:
                return self._update(gather(sources), (), trail)
            with step.running, step as locks:
                return self._update(gather(sources, self.written, locks), locks, trail)
        except BaseException as error:
            if history is None or trail is None:
                raise
            told = history.leave(error, trail, arguments)
        raise told

    def _update(self, arrays: list[Array], locks: Sequence[WriteLock], trail: Trail | None) -> Sequence[Any]:
        """The outputs; the locks on the variables get their new tensors, all of them or none."""
        with span("kernels", self._compiled.graph.name):
            results = tuple([wrap(a) for a in self._compiled.run(arrays, trail)])
        commit(locks, [wrap(arrays[i]) for i in self.written])
        if trail is not None:
            trail.end()
        return results

    def run(self, arguments: list[Array], trail: Trail | None = None) -> list[Array]:
        """The outputs for one array per argument, of which those of updated variables are written to."""
        return self._compiled.run(arguments + [array_of(x) for x in self.captured], trail)
