"""The graph and the session that are meant where none is named: those of each thread's innermost blocks."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.errors import InvalidArgumentError

if TYPE_CHECKING:
    from dualflow.graph_mode.graph import Graph
    from dualflow.graph_mode.session import Session

innermost_graph: Final[ContextVar[Graph | None]] = ContextVar("dualflow_graph", default=None)
innermost_session: Final[ContextVar[Session | None]] = ContextVar("dualflow_session", default=None)


def get_default_session() -> Session | None:
    """The session of the innermost block ``with session:`` or ``with session.as_default():``; None without.

    >>> from dualflow.compat import v1
    >>> with v1.Session() as session:
    ...     v1.get_default_session() is session
    True
    """
    return innermost_session.get()


def session_for(given: Any, graph: Graph, what: str) -> Session:
    """``given``, or the default session.

    Raises:
        InvalidArgumentError: there is none, or it runs another graph.
    """
    found: Session | None = innermost_session.get() if given is None else given
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
