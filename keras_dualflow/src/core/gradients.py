"""Where gradients stop, are given by hand, or have their values computed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dualflow as df


def stop_gradient(variable: Any) -> Any:
    """The value, through which no gradient flows."""
    return df.stop_gradient(variable)


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun``, which returns its result and the function that computes its gradient."""
    wrapped: Callable[..., Any] = df.custom_gradient(fun)
    return wrapped


def remat(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, whose inner values are computed again for its gradient rather than kept."""
    wrapped: Callable[..., Any] = df.recompute_grad(f)
    return wrapped
