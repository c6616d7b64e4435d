"""The check that a callable can be traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dualflow.core.errors import DTypeError


def reject_suspended(python_function: Callable[..., Any]) -> None:
    """Raise an error for generator and async functions: a call of one runs nothing of its body.

    Raises:
        DTypeError: a generator function, or an async one.
    """
    called = getattr(python_function, "__func__", python_function)
    for f in (called, inspect.getattr_static(type(called), "__call__")):
        name = getattr(f, "__qualname__", f)
        if inspect.iscoroutinefunction(f):
            raise DTypeError(
                f"{name} is an async function, which can't be traced: calling it runs nothing of it. Trace a "
                "plain function that computes with tensors, and call that from the async one."
            )
        if inspect.isgeneratorfunction(f) or inspect.isasyncgenfunction(f):
            raise DTypeError(
                f"{name} is a generator function, which can't be traced: calling it runs nothing of it. "
                "Return a list or a stacked tensor, or trace the function that computes one item."
            )
