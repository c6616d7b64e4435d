"""The creation of monitored sessions: their variables are initialised, or restored from a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dualflow.compat.v1.collection import local_variables_initializer
from dualflow.core.errors import FailedPreconditionError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import (
    Operation,
    Session,
    get_default_graph,
    global_variables,
    global_variables_initializer,
)
from dualflow.graph_mode.session_ops import report_uninitialized_variables
from dualflow.train.saver import Saver
from dualflow.train.state_file import latest_checkpoint

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


@dataclass(frozen=True, kw_only=True)
class Scaffold:
    """The operations that prepare a session of the default graph; None stands for the usual one.

    Attributes:
        init_op, init_feed_dict: run first, if no checkpoint is restored; initializes the global variables.
        init_fn: called then, with the scaffold and the session.
        ready_op: returns the names of variables without a value, by default among all; at the end none may
            be left.
        ready_for_local_init_op: the same before ``local_init_op`` runs, by default among the global ones.
        local_init_op, local_init_feed_dict: always run; the initializer of the local variables.
        summary_op: the summaries that are saved.
        saver: restores a checkpoint.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     w = v1.Variable(1.0)
    ...     scaffold = v1.train.Scaffold(init_fn=lambda scaffold, session: w.load(2.0, session))
    ...     with v1.train.MonitoredTrainingSession(scaffold=scaffold) as session:
    ...         print(session.run(w))
    2.0
    """

    init_op: TensorLike | Operation | None = None
    init_feed_dict: Mapping[Any, Any] | None = None
    init_fn: Callable[[Scaffold, Session], object] | None = None
    ready_op: TensorLike | Operation | None = None
    ready_for_local_init_op: TensorLike | Operation | None = None
    local_init_op: TensorLike | Operation | None = None
    local_init_feed_dict: Mapping[Any, Any] | None = None
    summary_op: TensorLike | None = None
    saver: Saver | None = None

    def finalize(self) -> Scaffold:
        """The scaffold with an operation of the default graph in each place that has none."""
        return replace(
            self,
            init_op=global_variables_initializer() if self.init_op is None else self.init_op,
            ready_op=report_uninitialized_variables() if self.ready_op is None else self.ready_op,
            ready_for_local_init_op=report_uninitialized_variables(global_variables())
            if self.ready_for_local_init_op is None
            else self.ready_for_local_init_op,
            local_init_op=local_variables_initializer() if self.local_init_op is None else self.local_init_op,
        )


class ChiefSessionCreator:
    """Creates a session of the default graph whose variables have values.

    Args:
        scaffold: prepares the session.
        master: TensorFlow's, and ignored.
        config: as of a session.
        checkpoint_dir: the folder whose last checkpoint is restored.
        checkpoint_filename_with_path: the checkpoint that is restored instead.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: object = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_filename_with_path: str | os.PathLike[str] | None = None,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._config = config
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_path = checkpoint_filename_with_path

    @entry
    def create_session(self) -> Session:
        """The session.

        Raises:
            FailedPreconditionError: an operation of the scaffold finds variables without a value.
        """
        scaffold = self._scaffold.finalize()
        session = Session(graph=get_default_graph(), config=self._config)
        path = self._checkpoint_path
        if path is None and self._checkpoint_dir is not None:
            path = latest_checkpoint(self._checkpoint_dir)
        if path is not None:
            (scaffold.saver or Saver()).restore(session, os.fspath(path))
        else:
            if scaffold.init_op is not None:
                session.run(scaffold.init_op, scaffold.init_feed_dict)
            if scaffold.init_fn is not None:
                scaffold.init_fn(scaffold, session)
        _require_values(session, scaffold.ready_for_local_init_op)
        if scaffold.local_init_op is not None:
            session.run(scaffold.local_init_op, scaffold.local_init_feed_dict)
        _require_values(session, scaffold.ready_op)
        return session


def _require_values(session: Session, ready_op: Any) -> None:
    """Raise unless an operation that returns the names of variables without a value returns none."""
    names = [] if ready_op is None else session.run(ready_op)
    if names is not None and len(names):
        missing = ", ".join(name.decode() if isinstance(name, bytes) else str(name) for name in names)
        raise FailedPreconditionError(
            f"Variables not initialized: {missing}. Initialize them by the Scaffold's init_op or init_fn, "
            "which run if no checkpoint is restored; or restore a checkpoint that has them."
        )
