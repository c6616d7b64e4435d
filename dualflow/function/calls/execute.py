"""Runs an executable on tensors and variables: arrays out of them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.records import NamedTuple
from dualflow.core.spans import span
from dualflow.eager.tensor import wrap
from dualflow.eager.updates import UpdateStep, WriteLock, commit
from dualflow.function.calls.array_ownership import gather
from dualflow.graph.effect_log import EffectLog

if TYPE_CHECKING:
    from dualflow.function.calls.failed_calls import AssignmentHistory
    from dualflow.graph.compiled import Compiled
    from dualflow.graph.ir import Graph

Array = np.ndarray[Any, Any]


class Sources(NamedTuple):
    """What a graph reads and writes beside its arguments.

    Attributes:
        captured: the variables and tensors behind the inputs that follow the arguments.
        written: the inputs that are variables with updates, by number.
    """

    captured: tuple[Any, ...]
    written: tuple[int, ...]

    @classmethod
    def of(cls, graph: Graph) -> Sources:
        """Those of ``graph``."""
        if not graph.updates:
            return cls(tuple([c.source for c in graph.captures]), ())
        number = {v: i for i, v in enumerate(graph.inputs)}
        return cls(tuple([c.source for c in graph.captures]), tuple([number[u.input] for u in graph.updates]))


def execute(
    compiled: Compiled, beside: Sources, history: AssignmentHistory | None, arguments: Sequence[Any]
) -> tuple[Any, ...]:
    """The outputs as tensors, for a tensor or variable behind each argument; variables are updated.

    Args:
        compiled: what runs.
        beside: what its graph reads and writes beside the arguments.
        history: what the trace has assigned before a call fails; None if the caller handles failures.
        arguments: of the call.
    """
    sources = (*arguments, *beside.captured)
    effect_log = None if history is None else history.effect_log()
    step = UpdateStep([sources[i] for i in beside.written], compiled=True)
    try:
        if not beside.written:
            return _update(compiled, gather(sources), (), (), effect_log)
        with step.running, step as locks:
            return _update(
                compiled, gather(sources, beside.written, locks), beside.written, locks, effect_log
            )
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
    """The outputs; the locks on the variables get their new tensors, all of them or none."""
    with span("kernels", compiled.graph.name):
        results = tuple([wrap(a) for a in compiled.run(arrays, effect_log)])
    commit(locks, [wrap(arrays[i]) for i in written])
    if effect_log is not None:
        effect_log.end()
    return results
