"""ONNX's elementwise ops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import dualflow as df
from dualflow.backends.onnx.element_types import dtype_of_element_type
from dualflow.onnx.calls import NodeCall, Rule, Rules, dtype_of


def _call(function: Callable[..., Any]) -> Rule:
    return lambda call: function(*call.inputs)


def _reduce_inputs(function: Callable[[Any, Any], Any]) -> Rule:
    return lambda call: functools.reduce(function, call.inputs)


def _cast(call: NodeCall) -> Any:
    dtype = dtype_of_element_type(call.attrs["to"])
    if dtype is None:
        raise call.unsupported(f"dualflow has no element type {call.attrs['to']}")
    return df.cast(call.inputs[0], dtype)


def _bitcast(call: NodeCall) -> Any:
    dtype = dtype_of_element_type(call.attrs["to"])
    if dtype is None:
        raise call.unsupported(f"dualflow has no element type {call.attrs['to']}")
    return df.bitcast(call.inputs[0], dtype)


def _divide(call: NodeCall) -> Any:
    """The quotient, of integers rounded towards zero."""
    x, y = call.inputs
    if dtype_of(x).is_integer:
        return df.math.floordiv(df.subtract(x, df.truncatemod(x, y)), y)
    return df.divide(x, y)


def _mod(call: NodeCall) -> Any:
    return (df.truncatemod if call.attrs.get("fmod", 0) else df.math.floormod)(*call.inputs)


def _pow(call: NodeCall) -> Any:
    x, y = call.inputs
    return df.pow(x, df.cast(y, dtype_of(x)))


def _shift(call: NodeCall) -> Any:
    is_left = call.attrs["direction"] in (b"LEFT", "LEFT")
    return (df.bitwise.left_shift if is_left else df.bitwise.right_shift)(*call.inputs)


def _mean(call: NodeCall) -> Any:
    return functools.reduce(df.add, call.inputs) / len(call.inputs)


def _clip(call: NodeCall) -> Any:
    x = call.inputs[0]
    low, high = call.optional(1), call.optional(2)
    x = x if low is None else df.maximum(x, low)
    return x if high is None else df.minimum(x, high)


def _elu(call: NodeCall) -> Any:
    (x,), alpha = call.inputs, call.attrs.get("alpha", 1.0)
    return df.where(df.greater(x, 0), x, alpha * df.math.expm1(x))


def _selu(call: NodeCall) -> Any:
    (x,), attrs = call.inputs, call.attrs
    alpha = attrs.get("alpha", 1.67326319217681884765625)
    gamma = attrs.get("gamma", 1.05070102214813232421875)
    return gamma * df.where(df.greater(x, 0), x, alpha * df.math.expm1(x))


def _leaky_relu(call: NodeCall) -> Any:
    (x,) = call.inputs
    return df.where(df.less(x, 0), call.attrs.get("alpha", 0.01) * x, x)


def _prelu(call: NodeCall) -> Any:
    x, slope = call.inputs
    return df.where(df.less(x, 0), slope * x, x)


def _hard_sigmoid(call: NodeCall) -> Any:
    (x,), alpha, beta = call.inputs, call.attrs.get("alpha", 0.2), call.attrs.get("beta", 0.5)
    return df.clip_by_value(alpha * x + beta, 0.0, 1.0)


def _hard_swish(call: NodeCall) -> Any:
    (x,) = call.inputs
    return x * df.clip_by_value(x / 6.0 + 0.5, 0.0, 1.0)


def _gelu(call: NodeCall) -> Any:
    (x,) = call.inputs
    return df.nn.gelu(x, approximate=call.attrs.get("approximate", b"none") in (b"tanh", "tanh"))


def _softplus(x: Any) -> Any:
    return df.nn.softplus(x)


def _mish(x: Any) -> Any:
    return x * df.tanh(df.nn.softplus(x))


def _is_inf(call: NodeCall) -> Any:
    (x,) = call.inputs
    result = df.math.is_inf(x)
    if not call.attrs.get("detect_negative", 1):
        result = df.logical_and(result, df.greater(x, 0))
    if not call.attrs.get("detect_positive", 1):
        result = df.logical_and(result, df.less(x, 0))
    return result


def _dropout(call: NodeCall) -> Any:
    """Its input, as in inference; the mask keeps all elements."""
    x, training = call.inputs[0], call.optional(2)
    if training is not None and bool(training):
        raise call.unsupported("it draws random numbers")
    return (x, df.ones_like(x, df.bool))[: call.outputs] if call.outputs > 1 else x


RULES: Final[Rules] = {
    "Abs": _call(df.abs),
    "Acos": _call(df.acos),
    "Acosh": _call(df.acosh),
    "Add": _call(df.add),
    "And": _call(df.logical_and),
    "Asin": _call(df.asin),
    "Asinh": _call(df.asinh),
    "Atan": _call(df.atan),
    "Atanh": _call(df.atanh),
    "BitCast": _bitcast,
    "BitShift": _shift,
    "BitwiseAnd": _call(df.bitwise.bitwise_and),
    "BitwiseNot": _call(df.bitwise.invert),
    "BitwiseOr": _call(df.bitwise.bitwise_or),
    "BitwiseXor": _call(df.bitwise.bitwise_xor),
    "Cast": _cast,
    "CastLike": lambda call: df.cast(call.inputs[0], dtype_of(call.inputs[1])),
    "Ceil": _call(df.math.ceil),
    "Clip": _clip,
    "Cos": _call(df.cos),
    "Cosh": _call(df.cosh),
    "Div": _divide,
    "Dropout": _dropout,
    "Elu": _elu,
    "Equal": _call(df.equal),
    "Erf": _call(df.math.erf),
    "Exp": _call(df.exp),
    "Floor": _call(df.floor),
    "Gelu": _gelu,
    "Greater": _call(df.greater),
    "GreaterOrEqual": _call(df.greater_equal),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Identity": _call(df.identity),
    "IsInf": _is_inf,
    "IsNaN": _call(df.math.is_nan),
    "LeakyRelu": _leaky_relu,
    "Less": _call(df.less),
    "LessOrEqual": _call(df.less_equal),
    "Log": _call(df.math.log),
    "Max": _reduce_inputs(df.maximum),
    "Mean": _mean,
    "Min": _reduce_inputs(df.minimum),
    "Mish": _call(_mish),
    "Mod": _mod,
    "Mul": _call(df.multiply),
    "Neg": _call(df.negative),
    "Not": _call(df.logical_not),
    "Or": _call(df.logical_or),
    "PRelu": _prelu,
    "Pow": _pow,
    "Reciprocal": _call(df.math.reciprocal),
    "Relu": _call(df.nn.relu),
    "Round": _call(df.round),
    "Selu": _selu,
    "Sigmoid": _call(df.sigmoid),
    "Sign": _call(df.sign),
    "Sin": _call(df.sin),
    "Sinh": _call(df.sinh),
    "Softplus": _call(_softplus),
    "Softsign": _call(df.nn.softsign),
    "Sqrt": _call(df.sqrt),
    "StringConcat": _call(df.add),
    "Sub": _call(df.subtract),
    "Sum": _reduce_inputs(df.add),
    "Tan": _call(df.tan),
    "Tanh": _call(df.tanh),
    "Where": _call(df.where),
    "Xor": _call(df.math.logical_xor),
}
