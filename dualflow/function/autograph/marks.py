"""Functions that are to stay as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

_MARK: Final = "_dualflow_as_written"


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Decorator: ``func``, and what it calls, are not converted when a traced function calls it.

    Args:
        func: a Python function; without it, a decorator is answered.

    >>> import dualflow as df
    >>> @df.autograph.do_not_convert
    ... def double(x):
    ...     return x + x
    >>> double(2)
    4
    """
    if func is None:
        return do_not_convert
    setattr(func, _MARK, True)
    return func


def is_as_written(function: Any) -> bool:
    """Whether :func:`do_not_convert` marked it."""
    return getattr(function, _MARK, False) is True
