"""Names of exception classes in files: Python's own exceptions, and those of dualflow."""

from __future__ import annotations

import builtins

from dualflow.core import errors, status_errors
from dualflow.core.errors import InvalidArgumentError


def portable_name(kind: type[BaseException]) -> str:
    """The name of an exception class, or of its nearest base class that is built in or dualflow's.

    >>> class Unusual(KeyError): ...
    >>> portable_name(Unusual)
    'KeyError'
    """
    return next((c.__name__ for c in kind.__mro__ if _named(c.__name__) is c), "RuntimeError")


def exception_named(name: str) -> type[Exception]:
    """The exception class of a name that :func:`portable_name` returned.

    Raises:
        InvalidArgumentError: there is none, or it takes more than a message.
    """
    kind = _named(name)
    if kind is None:
        raise InvalidArgumentError(f"{name!r} is no class of exceptions")
    return kind


def _named(name: str) -> type[Exception] | None:
    """The exception class of Python or dualflow with this name, if its only argument is a message."""
    for module in (builtins, errors, status_errors):
        kind = vars(module).get(name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                kind("")
            except TypeError:
                return None
            return kind
    return None
