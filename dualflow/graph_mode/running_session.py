"""The state of a session, which ops read while the session runs them: values, random streams, iterators."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

    from dualflow.eager.variable import Variable


@dataclass(slots=True)
class SessionVariable:
    """The value of a graph's variable in one session.

    Attributes:
        holder: an eager variable, which compiled code reads and writes.
        initialised: whether it has been initialised.
    """

    holder: Variable
    initialised: bool = False


@dataclass(slots=True)
class SessionState:
    """The state of a session: values of variables, random generators, positions in datasets.

    Attributes:
        variables: the values of the graph's variables, by the identities of these.
        streams: the generators of random ops.
        iterators: the positions in datasets, by the graph's iterators.
    """

    variables: dict[int, SessionVariable] = field(default_factory=dict)
    streams: dict[Any, np.random.Generator] = field(default_factory=dict)
    iterators: dict[Any, Any] = field(default_factory=dict)


class running:
    """A context in which ops of this thread use ``state``, a session's."""

    __slots__ = ("_outer", "_state")

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def __enter__(self) -> None:
        self._outer: SessionState | None = _running.state
        _running.state = self._state

    def __exit__(self, *exc: object) -> None:
        _running.state = self._outer


def running_state() -> SessionState | None:
    """The state of the session that runs in this thread; None if there is none."""
    return _running.state


class _Running(threading.local):
    """The state of the session that runs in this thread."""

    state: SessionState | None = None


_running: Final = _Running()
