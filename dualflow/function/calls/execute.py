"""Runs an executable on tensors and variables, and returns tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.records import NamedTuple
from dualflow.core.spans import span
from dualflow.eager.tensor import wrap
from dualflow.eager.updates import UpdateStep, WriteLock, commit
from dualflow.function.calls.array_ownership import call_arrays
from dualflow.graph.effect_log import EffectLog

if TYPE_CHECKING:
    from dualflow.function.calls.failed_calls import AssignmentHistory
    from dualflow.graph.compiled import Compiled
    from dualflow.graph.ir import Graph

Array = np.ndarray[Any, Any]


class Sources(NamedTuple):
    """The captures of a graph, and which of its inputs it updates.

    Attributes:
        captured: the variable or tensor of each capture: the inputs after the arguments.
        written: the numbers of the inputs that are variables with updates.
    """

    captured: tuple[Any, ...]
    written: tuple[int, ...]

    @classmethod
    def of(cls, graph: Graph) -> Sources:
        """The captures of ``graph``, and its inputs with updates."""
        if not graph.updates:
            return cls(tuple([c.source for c in graph.captures]), ())
        number = {v: i for i, v in enumerate(graph.inputs)}
        return cls(tuple([c.source for c in graph.captures]), tuple([number[u.input] for u in graph.updates]))


def execute(
    compiled: Compiled, sources: Sources, history: AssignmentHistory | None, arguments: Sequence[Any]
) -> tuple[Any, ...]:
    """The outputs of one call, as tensors; variables are updated.

    Args:
        compiled: the executable.
        sources: the captures of its graph, and which inputs it writes.
        history: replays the assignments before a failure; None if the caller handles failures.
        arguments: a tensor or variable for each argument of the graph.
    """
    inputs, written = (*arguments, *sources.captured), sources.written
    effect_log = None if history is None else history.effect_log()
    step = UpdateStep([inputs[i] for i in written], compiled=True)
    try:
        if not written:
            return _update(compiled, call_arrays(inputs), (), (), effect_log)
        with step.running, step as locks:
            return _update(compiled, call_arrays(inputs, written, locks), written, locks, effect_log)
    except BaseException as error:
        if history is None or effect_log is None:
            raise
        recovered = history.recover(error, effect_log, arguments)
    raise recovered


def _update(
    compiled: Compiled,
    arrays: list[Array],
    written: Sequence[int],
    locks: Sequence[WriteLock],
    effect_log: EffectLog | None,
) -> tuple[Any, ...]:
    """The outputs of one call; commits the new values of all variables at once, or of none after an error."""
    with span("kernels", compiled.graph.name):
        results = tuple([wrap(a) for a in compiled.run(arrays, effect_log)])
    commit(locks, [wrap(arrays[i]) for i in written])
    if effect_log is not None:
        effect_log.end()
    return results
