"""Calls of functions that need the rank of a tensor: where only a run has it, the run traces them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError

F = TypeVar("F", bound=Callable[..., Any])
RANK_ERRORS: Final = (InvalidArgumentError, DTypeError)
"""The errors of a call that reads a rank or sizes which only a run has."""


def postponable(function: F) -> F:
    """Decorate a function of Python functions: a failed call is one of the run, if a rank is unknown."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RANK_ERRORS:
            results = dispatch.current().postponed(function, args, kwargs)
            if results is None:
                raise
            return results

    return call  # type: ignore[return-value]  # of the same signature
