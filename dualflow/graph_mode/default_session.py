"""The session that runs a graph where none is given: that of each thread's innermost block."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final, Protocol

from dualflow.core.errors import InvalidArgumentError


class RunsGraph(Protocol):
    """What tensors, operations and variables ask of a session."""

    @property
    def graph(self) -> object:
        """The graph whose parts it runs."""

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """The values of ``fetches``."""


innermost_session: Final[ContextVar[RunsGraph | None]] = ContextVar("dualflow_session", default=None)


def session_for(given: Any, graph: object, what: str) -> RunsGraph:
    """``given``, or the default session.

    Raises:
        InvalidArgumentError: there is none, or it runs another graph.
    """
    found: RunsGraph | None = innermost_session.get() if given is None else given
    if found is None:
        raise InvalidArgumentError(
            f"Cannot {what}: No default session is registered. Use `with sess.as_default()` or pass an "
            "explicit session: session=sess."
        )
    if found.graph is not graph:
        raise InvalidArgumentError(
            f"Cannot use the {'default' if given is None else 'given'} session to {what}: it runs another "
            "graph. Pass a session of the graph: Session(graph=g)."
        )
    return found
