"""The default session of a thread: the one whose ``with`` block, or ``as_default`` block, is innermost."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final, Protocol

from dualflow.core.errors import InvalidArgumentError


class SessionLike(Protocol):
    """The interface of a session that tensors, operations and variables use."""

    @property
    def graph(self) -> object:
        """The graph that the session runs."""

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """The values of ``fetches``."""


innermost_session: Final[ContextVar[SessionLike | None]] = ContextVar("dualflow_session", default=None)


def session_for(session: Any, graph: object, what: str) -> SessionLike:
    """``session``, or the default session if that is None; errors name the use, ``what``.

    Raises:
        InvalidArgumentError: there is none, or it runs another graph.
    """
    chosen: SessionLike | None = innermost_session.get() if session is None else session
    if chosen is None:
        raise InvalidArgumentError(
            f"Cannot {what}: No default session is registered. Use `with sess.as_default()` or pass an "
            "explicit session: session=sess."
        )
    if chosen.graph is not graph:
        raise InvalidArgumentError(
            f"Cannot use the {'default' if session is None else 'given'} session to {what}: it runs another "
            "graph. Pass a session of the graph: Session(graph=g)."
        )
    return chosen
