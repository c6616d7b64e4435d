"""ONNX's elementwise ops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import dualflow as df
from dualflow.backends.onnx.element_types import dtype_of_element_type
from dualflow.onnx.calls import NodeCall, Rule, Rules, dtype_of


def _of_inputs(function: Callable[..., Any]) -> Rule:
    return lambda call: function(*call.inputs)


def _folded(function: Callable[[Any, Any], Any]) -> Rule:
    return lambda call: functools.reduce(function, call.inputs)


def _by_kind(of_bools: Callable[..., Any], of_integers: Callable[..., Any]) -> Rule:
    return lambda call: (of_bools if dtype_of(call.inputs[0]).is_bool else of_integers)(*call.inputs)


def _cast(call: NodeCall) -> Any:
    dtype = dtype_of_element_type(call.attrs["to"])
    if dtype is None:
        raise call.refuse(f"dualflow has no element type {call.attrs['to']}")
    return df.cast(call.inputs[0], dtype)


def _bitcast(call: NodeCall) -> Any:
    dtype = dtype_of_element_type(call.attrs["to"])
    if dtype is None:
        raise call.refuse(f"dualflow has no element type {call.attrs['to']}")
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
    alpha, gamma = (
        attrs.get("alpha", 1.67326319217681884765625),
        attrs.get("gamma", 1.05070102214813232421875),
    )
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
        raise call.refuse("it draws random numbers")
    return (x, df.ones_like(x, df.bool))[: call.outputs] if call.outputs > 1 else x


RULES: Final[Rules] = {
    "Abs": _of_inputs(df.abs),
    "Acos": _of_inputs(df.acos),
    "Acosh": _of_inputs(df.acosh),
    "Add": _of_inputs(df.add),
    "And": _of_inputs(df.logical_and),
    "Asin": _of_inputs(df.asin),
    "Asinh": _of_inputs(df.asinh),
    "Atan": _of_inputs(df.atan),
    "Atanh": _of_inputs(df.atanh),
    "BitCast": _bitcast,
    "BitShift": _shift,
    "BitwiseAnd": _of_inputs(df.bitwise.bitwise_and),
    "BitwiseNot": _of_inputs(df.bitwise.invert),
    "BitwiseOr": _of_inputs(df.bitwise.bitwise_or),
    "BitwiseXor": _of_inputs(df.bitwise.bitwise_xor),
    "Cast": _cast,
    "CastLike": lambda call: df.cast(call.inputs[0], dtype_of(call.inputs[1])),
    "Ceil": _of_inputs(df.math.ceil),
    "Clip": _clip,
    "Cos": _of_inputs(df.cos),
    "Cosh": _of_inputs(df.cosh),
    "Div": _divide,
    "Dropout": _dropout,
    "Elu": _elu,
    "Equal": _of_inputs(df.equal),
    "Erf": _of_inputs(df.math.erf),
    "Exp": _of_inputs(df.exp),
    "Floor": _of_inputs(df.floor),
    "Gelu": _gelu,
    "Greater": _of_inputs(df.greater),
    "GreaterOrEqual": _of_inputs(df.greater_equal),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Identity": _of_inputs(df.identity),
    "IsInf": _is_inf,
    "IsNaN": _of_inputs(df.math.is_nan),
    "LeakyRelu": _leaky_relu,
    "Less": _of_inputs(df.less),
    "LessOrEqual": _of_inputs(df.less_equal),
    "Log": _of_inputs(df.math.log),
    "Max": _folded(df.maximum),
    "Mean": _mean,
    "Min": _folded(df.minimum),
    "Mish": _of_inputs(_mish),
    "Mod": _mod,
    "Mul": _of_inputs(df.multiply),
    "Neg": _of_inputs(df.negative),
    "Not": _of_inputs(df.logical_not),
    "Or": _of_inputs(df.logical_or),
    "PRelu": _prelu,
    "Pow": _pow,
    "Reciprocal": _of_inputs(df.math.reciprocal),
    "Relu": _of_inputs(df.nn.relu),
    "Round": _of_inputs(df.round),
    "Selu": _selu,
    "Sigmoid": _of_inputs(df.sigmoid),
    "Sign": _of_inputs(df.sign),
    "Sin": _of_inputs(df.sin),
    "Sinh": _of_inputs(df.sinh),
    "Softplus": _of_inputs(_softplus),
    "Softsign": _of_inputs(df.nn.softsign),
    "Sqrt": _of_inputs(df.sqrt),
    "StringConcat": _of_inputs(df.add),
    "Sub": _of_inputs(df.subtract),
    "Sum": _folded(df.add),
    "Tan": _of_inputs(df.tan),
    "Tanh": _of_inputs(df.tanh),
    "Where": _of_inputs(df.where),
    "Xor": _of_inputs(df.math.logical_xor),
}
