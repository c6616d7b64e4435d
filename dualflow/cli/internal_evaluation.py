"""TensorFlow 1's evaluation of a checkpoint, which libraries import from ``tensorflow.python.training``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dualflow.compat import v1
from dualflow.compat.v1.monitored_session import MonitoredSession
from dualflow.compat.v1.session_creation import ChiefSessionCreator, Scaffold
from dualflow.compat.v1.session_hooks import (
    FinalOpsHook,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from dualflow.core.dtypes import int64
from dualflow.graph_mode import VariableV1, assign_add, get_default_graph, group


class StopAfterNEvalsHook(SessionRunHook):
    """Ends an evaluation after a number of runs.

    Args:
        num_evals: the number; None for no end.
        log_progress: ignored.
    """

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals = num_evals
        self._count: Any = None

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._count = updated_eval_step

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs({"evals_completed": self._count})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        results: Any = run_values.results
        if self._num_evals is not None and results["evals_completed"] >= self._num_evals:
            run_context.request_stop()


def _get_or_create_eval_step() -> Any:
    """The variable that counts the runs of an evaluation; a local variable of the graph."""
    existing = get_default_graph().get_collection(v1.GraphKeys.EVAL_STEP)
    if existing:
        return existing[0]
    kinds = [v1.GraphKeys.LOCAL_VARIABLES, v1.GraphKeys.EVAL_STEP]
    return VariableV1(0, dtype=int64, trainable=False, collections=kinds, name="eval_step")


def _evaluate_once(
    checkpoint_path: str | None,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Any = None,
    feed_dict: Mapping[Any, Any] | None = None,
    final_ops: Any = None,
    final_ops_feed_dict: Mapping[Any, Any] | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    config: object = None,
) -> Any:
    """The values of ``final_ops`` after runs of ``eval_ops``, with the variables of a checkpoint."""
    count = assign_add(_get_or_create_eval_step(), 1)
    for hook in hooks or ():
        if isinstance(hook, StopAfterNEvalsHook):
            hook._set_evals_completed_tensor(count)
    if isinstance(eval_ops, dict):
        eval_ops["update_eval_step"] = count
    elif isinstance(eval_ops, list | tuple):
        eval_ops = [*eval_ops, count]
    elif eval_ops is not None:
        eval_ops = group(eval_ops, count)
    final_ops_hook = FinalOpsHook(final_ops, final_ops_feed_dict)
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_filename_with_path=checkpoint_path)
    with MonitoredSession(creator, [*(hooks or ()), final_ops_hook]) as session:
        while eval_ops is not None and not session.should_stop():
            session.run(eval_ops, feed_dict)
    return final_ops_hook.final_ops_values


EVALUATION_OBJECTS: Final[dict[str, dict[str, Any]]] = {
    "training.evaluation": {
        "_StopAfterNEvalsHook": StopAfterNEvalsHook,
        "_evaluate_once": _evaluate_once,
        "_get_or_create_eval_step": _get_or_create_eval_step,
    }
}
"""The objects of the module ``tensorflow.python.training.evaluation``."""
