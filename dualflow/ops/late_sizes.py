"""What is computed once sizes are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualflow.core import dispatch
from dualflow.core.spec import TensorSpec
from dualflow.ops.creation import convert_to_tensor


def once_sized(compute: Callable[..., Any], result: Callable[..., TensorSpec], *inputs: Any) -> Any:
    """``compute(*inputs)``: now where all sizes are known, and else when the trace is recorded for a call.

    Args:
        compute: a pure function of tensors, made of ops, that returns one tensor.
        result: the spec of what it returns, for those of the inputs; sizes may be left open.
        inputs: what it takes.
    """
    engine = dispatch.current()
    tensors = tuple([convert_to_tensor(x) for x in inputs])
    if engine.sizing is None or all(x.shape.is_static for x in tensors):
        return compute(*tensors)
    return engine.apply(engine.sizing, tensors, {"compute": compute, "result": result})
