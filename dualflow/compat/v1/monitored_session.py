"""``v1.train.MonitoredTrainingSession``: a session that initialises or restores its variables, with hooks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from dualflow.compat.v1.coordinator import Coordinator
from dualflow.compat.v1.session_creation import ChiefSessionCreator, Scaffold
from dualflow.compat.v1.session_hooks import (
    CheckpointSaverHook,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    SummarySaverHook,
)
from dualflow.core.errors import FailedPreconditionError, OutOfRangeError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import Session, get_default_graph


@entry
def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = None,
    save_summaries_steps: int | None = 100,
    save_summaries_secs: None = None,
    config: object = None,
    save_checkpoint_steps: int | None = None,
    summary_dir: str | None = None,
    **ignored: Any,
) -> MonitoredSession:
    """A session for training: variables are restored from the last checkpoint, or initialised.

    Args:
        checkpoint_dir: the folder of checkpoints; without it nothing is saved.
        scaffold: prepares the session.
        hooks, chief_only_hooks: act before and after each run.
        save_checkpoint_secs, save_checkpoint_steps: the interval of checkpoints, by default 600 seconds.
        save_summaries_steps: the interval of summaries in steps; None for no summaries.
        summary_dir: the folder of summaries, by default that of checkpoints.

    The other arguments are TensorFlow's, and ignored.

    Raises:
        FailedPreconditionError: a hook needs a global step, and the graph has none.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     step = v1.train.get_or_create_global_step()
    ...     count = v1.assign_add(step, 1)
    ...     with v1.train.MonitoredTrainingSession(hooks=[v1.train.StopAtStepHook(3)]) as session:
    ...         while not session.should_stop():
    ...             print(session.run(count))
    1
    2
    3
    """
    chosen = [*(hooks or ()), *(chief_only_hooks or ())]
    if checkpoint_dir is not None:
        seconds = (
            600 if save_checkpoint_secs is None and save_checkpoint_steps is None else save_checkpoint_secs
        )
        saver = None if scaffold is None else scaffold.saver
        chosen.append(CheckpointSaverHook(checkpoint_dir, seconds, save_checkpoint_steps, saver))
    folder = summary_dir or checkpoint_dir
    if folder is not None and save_summaries_steps:
        summaries = None if scaffold is None else scaffold.summary_op
        chosen.append(SummarySaverHook(save_summaries_steps, os.fspath(folder), summary_op=summaries))
    return MonitoredSession(ChiefSessionCreator(scaffold, master, config, checkpoint_dir), chosen)


class MonitoredSession:
    """A session whose runs call hooks; its block ends silently at the end of a dataset.

    Args:
        session_creator: creates the session; by default one whose variables are initialised.
        hooks: act before and after each run.
        stop_grace_period_secs: ignored.
    """

    def __init__(
        self,
        session_creator: ChiefSessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._hooks = list(hooks or ())
        self._coordinator = Coordinator()
        for hook in self._hooks:
            hook.begin()
        self.graph = get_default_graph()
        self._session: Session | None = (session_creator or ChiefSessionCreator()).create_session()
        for hook in self._hooks:
            hook.after_create_session(self._session, self._coordinator)

    def run(self, fetches: object, feed_dict: Mapping[Any, Any] | None = None, **ignored: Any) -> Any:
        """The values of ``fetches``; see :meth:`Session.run`. Hooks may add to the run."""
        session = self.raw_session()
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), session)
        additions = [hook.before_run(context) for hook in self._hooks]
        feeds = dict(feed_dict or {})
        for addition in additions:
            feeds.update((addition.feed_dict if addition is not None else None) or {})
        extra = {i: a.fetches for i, a in enumerate(additions) if a is not None and a.fetches is not None}
        results, values = session.run([fetches, extra], feeds)
        for i, hook in enumerate(self._hooks):
            hook.after_run(context, SessionRunValues(values.get(i)))
        if context.stop_requested:
            self._coordinator.request_stop()
        return results

    def raw_session(self) -> Session:
        """The session, for runs without hooks.

        Raises:
            FailedPreconditionError: it is closed.
        """
        if self._session is None:
            raise FailedPreconditionError("Run called even after the session was closed: make a new one.")
        return self._session

    def should_stop(self) -> bool:
        """Whether a hook has requested the end, or the session is closed."""
        return self._session is None or self._coordinator.should_stop()

    def close(self) -> None:
        """Call ``end`` of the hooks, and close the session."""
        session, self._session = self._session, None
        if session is not None:
            try:
                for hook in self._hooks:
                    hook.end(session)
            finally:
                session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        is_end = error is None or isinstance(error, OutOfRangeError | StopIteration)
        if is_end:
            self.close()
        elif self._session is not None:
            self._session.close()
            self._session = None
        return is_end
