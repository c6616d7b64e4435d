"""``stop_gradient``, ``custom_gradient`` and ``remat``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dualflow as df


def stop_gradient(variable: Any) -> Any:
    """The value, treated as a constant by gradients."""
    return df.stop_gradient(variable)


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun``, which returns its result and the function that computes its gradient."""
    wrapped: Callable[..., Any] = df.custom_gradient(fun)
    return wrapped


def remat(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, whose intermediate values are recomputed for its gradient."""
    wrapped: Callable[..., Any] = df.recompute_grad(f)
    return wrapped
