"""ONNX's products, convolutions, pooling and normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import dualflow as df
from dualflow.onnx.calls import NodeCall, Rules, normalized, rank_of
from dualflow.ops.neural.correlation import correlated, transposed
from dualflow.ops.neural.window_reductions import maxima, means, sums
from dualflow.ops.neural.windows import Geometry


def _gemm(call: NodeCall) -> Any:
    a, b, attrs = call.inputs[0], call.inputs[1], call.attrs
    product = df.matmul(
        a, b, transpose_a=bool(attrs.get("transA", 0)), transpose_b=bool(attrs.get("transB", 0))
    )
    alpha, beta, c = attrs.get("alpha", 1.0), attrs.get("beta", 1.0), call.optional(2)
    product = product if alpha == 1.0 else product * alpha
    return product if c is None else product + (c if beta == 1.0 else c * beta)


def _matmul(call: NodeCall) -> Any:
    a, b = call.inputs
    rows, columns = rank_of(a) == 1, rank_of(b) == 1
    product = df.matmul(df.expand_dims(a, 0) if rows else a, df.expand_dims(b, 1) if columns else b)
    product = df.squeeze(product, [-1]) if columns else product
    return df.squeeze(product, [-1 if columns else -2]) if rows else product


def _integer_product(call: NodeCall) -> Any:
    """MatMulInteger: zero points are subtracted, products are summed in int32."""
    operands = [df.cast(x, df.int32) for x in call.inputs[:2]]
    zeros = [df.cast(x, df.int32) for x in call.inputs[2:] if x is not None]
    if any(rank_of(zero) for zero in zeros):
        raise call.unsupported("it has a zero point for each row or column")
    x, y = [x - zero for x, zero in zip(operands, zeros, strict=False)] + operands[len(zeros) :]
    return df.matmul(x, y)


def _windows(call: NodeCall, size: Sequence[int], spatial: Sequence[Any]) -> Geometry:
    """The windows of a convolution or pooling."""
    attrs, axes = call.attrs, len(size)
    strides = tuple(attrs.get("strides", [1] * axes))
    dilations = tuple(attrs.get("dilations", [1] * axes))
    pads = attrs.get("pads", [0] * 2 * axes)
    pairs = tuple(zip(pads[:axes], pads[axes:], strict=True))
    automatic = attrs.get("auto_pad", b"NOTSET").decode()
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        if None in spatial:
            raise call.unsupported(f"auto_pad {automatic} needs spatial sizes that are known")
        pairs = tuple(
            [
                _same_padding(n, k, s, d, upper=automatic == "SAME_UPPER")
                for n, k, s, d in zip(spatial, size, strides, dilations, strict=True)
            ]
        )
    if attrs.get("ceil_mode", 0):
        raise call.unsupported("it has ceil_mode")
    return Geometry(tuple(size), strides, dilations, pairs)


def _same_padding(n: int, k: int, stride: int, dilation: int, *, upper: bool) -> tuple[int, int]:
    total = max((-(-n // stride) - 1) * stride + (k - 1) * dilation + 1 - n, 0)
    return (total // 2, total - total // 2) if upper else (total - total // 2, total // 2)


def _channels_last(x: Any) -> Any:
    rank = rank_of(x)
    return df.transpose(x, [0, *range(2, rank), 1])


def _channels_first(x: Any) -> Any:
    rank = rank_of(x)
    return df.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def _convolution(call: NodeCall) -> Any:
    x, w, bias = call.inputs[0], call.inputs[1], call.optional(2)
    layout = _windows(call, w.shape[2:], x.shape[2:])
    kernel = df.transpose(w, [*range(2, rank_of(w)), 1, 0])
    result = correlated(_channels_last(x), kernel, layout)
    return _channels_first(result if bias is None else result + bias)


def _transposed_convolution(call: NodeCall) -> Any:
    x, w, bias = call.inputs[0], call.inputs[1], call.optional(2)
    if "output_shape" in call.attrs or None in x.shape[2:]:
        raise call.unsupported("its spatial sizes are not known, or given as output_shape")
    layout = _windows(call, w.shape[2:], x.shape[2:])
    beyond = call.attrs.get("output_padding", [0] * len(layout.size))
    axes = zip(x.shape[2:], layout.strides, layout.dilated_size, layout.pairs, beyond, strict=True)
    spatial = [(n - 1) * s + reach - sum(pair) + extra for n, s, reach, pair, extra in axes]
    groups = call.attrs.get("group", 1)
    kernel = df.transpose(w, [*range(2, rank_of(w)), 1, 0])
    shape = df.TensorShape([x.shape[0], *spatial, w.shape[1] * groups])
    result = transposed(_channels_last(x), kernel, layout, shape)
    return _channels_first(result if bias is None else result + bias)


def _max_pool(call: NodeCall) -> Any:
    if call.outputs > 1:
        raise call.unsupported("it returns positions")
    return _pooled(call, maxima)


def _average_pool(call: NodeCall) -> Any:
    if not call.attrs.get("count_include_pad", 0):
        return _pooled(call, means)
    return _pooled(call, lambda x, layout: sums(x, layout) / math.prod(layout.size))


def _pooled(call: NodeCall, function: Any) -> Any:
    (x,) = call.inputs
    layout = _windows(call, call.attrs["kernel_shape"], x.shape[2:])
    return _channels_first(function(df.convert_to_tensor(_channels_last(x)), layout))


def _global(function: Any) -> Any:
    return lambda call: function(call.inputs[0], list(range(2, rank_of(call.inputs[0]))), True)


def _per_channel(value: Any, rank: int) -> Any:
    return df.reshape(value, [-1, *[1] * (rank - 2)])


def _batch_normalization(call: NodeCall) -> Any:
    if call.attrs.get("training_mode", 0):
        raise call.unsupported("it is in training mode")
    x = call.inputs[0]
    scale, bias, mean, variance = (_per_channel(v, rank_of(x)) for v in call.inputs[1:])
    return (x - mean) * (scale * df.math.rsqrt(variance + call.attrs.get("epsilon", 1e-5))) + bias


def _normalized(x: Any, axes: Sequence[int], epsilon: float) -> Any:
    centred = x - df.reduce_mean(x, axes, keepdims=True)
    return centred * df.math.rsqrt(df.reduce_mean(df.square(centred), axes, keepdims=True) + epsilon)


def _layer_normalization(call: NodeCall) -> Any:
    if call.outputs > 1:
        raise call.unsupported("it returns the mean")
    x, bias = call.inputs[0], call.optional(2)
    axis = normalized(call.attrs.get("axis", -1), rank_of(x))
    scaled = _normalized(x, list(range(axis, rank_of(x))), call.attrs.get("epsilon", 1e-5)) * call.inputs[1]
    return scaled if bias is None else scaled + bias


def _instance_normalization(call: NodeCall) -> Any:
    x, rank = call.inputs[0], rank_of(call.inputs[0])
    scale, bias = (_per_channel(v, rank) for v in call.inputs[1:])
    return _normalized(x, list(range(2, rank)), call.attrs.get("epsilon", 1e-5)) * scale + bias


RULES: Final[Rules] = {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "Det": lambda call: df.linalg.det(call.inputs[0]),
    "Einsum": lambda call: df.einsum(call.attrs["equation"].decode(), *call.inputs),
    "Gemm": _gemm,
    "GlobalAveragePool": _global(df.reduce_mean),
    "GlobalMaxPool": _global(df.reduce_max),
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "MatMul": _matmul,
    "MatMulInteger": _integer_product,
    "MaxPool": _max_pool,
}
