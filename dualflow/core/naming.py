"""Name scopes: the prefix of new variables' names, for each thread or task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_prefix: Final[ContextVar[str]] = ContextVar("dualflow_name_scope", default="")


def prefix() -> str:
    """The open scopes, each followed by ``/``."""
    return _prefix.get()


@contextmanager
def scoped(name: str) -> Iterator[str]:
    """A context in the name scope ``name``, nested in the open scopes unless it ends in ``/``.

    ``""`` leaves all scopes.
    """
    token = _prefix.set(name if not name or name.endswith("/") else f"{_prefix.get()}{name}/")
    try:
        yield _prefix.get()
    finally:
        _prefix.reset(token)
