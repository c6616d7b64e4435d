"""Ops whose gradients are traced on the device of the op itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

from dualflow.core.records import replace
from dualflow.core.traced_device import traced_on
from dualflow.ops.record import Op

_MAX_OPS = 4096


@lru_cache(_MAX_OPS)
def colocated(op: Op, device: str | None) -> Op:
    """``op`` with gradient rules that place their ops on ``device``; ``op`` itself for None.

    A tape records it in place of ``op``, whose block of ``df.device`` has ended when the gradient is traced.
    """
    if device is None:
        return op
    vjp: Any = op.vjp
    if isinstance(vjp, tuple):
        vjp = tuple([rule and _placed(rule, device) for rule in vjp])
    elif vjp is not None:
        vjp = _placed(vjp, device)
    return replace(op, vjp=vjp, joint_vjp=op.joint_vjp and _placed(op.joint_vjp, device))


def _placed(rule: Callable[..., Any], device: str) -> Callable[..., Any]:
    @wraps(rule)
    def placed_rule(*args: Any, **attrs: Any) -> Any:
        with traced_on(device):
            return rule(*args, **attrs)

    return placed_rule
