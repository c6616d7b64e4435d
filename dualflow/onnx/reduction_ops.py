"""ONNX's reductions, running sums and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import dualflow as df
from dualflow.onnx.calls import NodeCall, Rule, Rules


def _reduction(function: Callable[..., Any]) -> Rule:
    """A reduction over axes, which are an input, or an attribute in earlier versions."""

    def rule(call: NodeCall) -> Any:
        x, axes = call.inputs[0], call.ints(1, "axes")
        if not axes:
            if call.attrs.get("noop_with_empty_axes", 0):
                return x
            axes = None
        return function(x, axes, bool(call.attrs.get("keepdims", 1)))

    return rule


def _reduce_min(x: Any, axes: Any, keepdims: bool) -> Any:
    return (df.reduce_all if df.as_dtype(x.dtype).is_bool else df.reduce_min)(x, axes, keepdims)


def _reduce_max(x: Any, axes: Any, keepdims: bool) -> Any:
    return (df.reduce_any if df.as_dtype(x.dtype).is_bool else df.reduce_max)(x, axes, keepdims)


def _mean(x: Any, axes: Any, keepdims: bool) -> Any:
    return df.reduce_mean(x, axes, keepdims)


def _position(function: Callable[..., Any]) -> Rule:
    def rule(call: NodeCall) -> Any:
        if call.attrs.get("select_last_index", 0):
            raise call.unsupported("it selects the last position of equal elements")
        axis = call.attrs.get("axis", 0)
        indices = function(call.inputs[0], axis, output_type=df.int64)
        return df.expand_dims(indices, axis) if call.attrs.get("keepdims", 1) else indices

    return rule


def _cumsum(call: NodeCall) -> Any:
    (axis,) = call.ints(1) or [0]
    flags: dict[str, Any] = {name: bool(call.attrs.get(name, 0)) for name in ("exclusive", "reverse")}
    return df.cumsum(call.inputs[0], axis, **flags)


def _softmax(call: NodeCall) -> Any:
    return df.nn.softmax(call.inputs[0], call.attrs.get("axis", -1))


def _log_softmax(call: NodeCall) -> Any:
    return df.nn.log_softmax(call.inputs[0], call.attrs.get("axis", -1))


RULES: Final[Rules] = {
    "ArgMax": _position(df.argmax),
    "ArgMin": _position(df.argmin),
    "CumSum": _cumsum,
    "LogSoftmax": _log_softmax,
    "ReduceL1": _reduction(lambda x, axes, keepdims: df.reduce_sum(df.abs(x), axes, keepdims)),
    "ReduceL2": _reduction(lambda x, axes, keepdims: df.sqrt(df.reduce_sum(df.square(x), axes, keepdims))),
    "ReduceLogSum": _reduction(lambda x, axes, keepdims: df.math.log(df.reduce_sum(x, axes, keepdims))),
    "ReduceLogSumExp": _reduction(df.reduce_logsumexp),
    "ReduceMax": _reduction(_reduce_max),
    "ReduceMean": _reduction(_mean),
    "ReduceMin": _reduction(_reduce_min),
    "ReduceProd": _reduction(df.reduce_prod),
    "ReduceSum": _reduction(df.reduce_sum),
    "ReduceSumSquare": _reduction(lambda x, axes, keepdims: df.reduce_sum(df.square(x), axes, keepdims)),
    "Softmax": _softmax,
}
