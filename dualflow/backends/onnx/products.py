"""Matrix products, and the composites that ONNX has ops for: convolutions, pooling and softmax."""

from __future__ import annotations

import math
from typing import Any, Final

from dualflow.backends.onnx.composites import (
    CONVOLUTION,
    MAX_POOL,
    MEAN_POOL,
    SOFTMAX,
    SUM_POOL,
    TRANSPOSED_CONVOLUTION,
)
from dualflow.backends.onnx.scope import Operand
from dualflow.backends.onnx.unsupported import unsupported_error
from dualflow.backends.onnx.writer import GraphWriter, Rules, sizes_of
from dualflow.core.dtypes import float32, int32, uint8
from dualflow.graph.ir import Node
from dualflow.ops.arrangement import swapped_matrix_axes
from dualflow.ops.contraction import PRODUCT_ADD
from dualflow.ops.integer_product import INTEGER_PRODUCT
from dualflow.ops.linear_algebra.inverse import DETERMINANT
from dualflow.ops.neural.windows import Geometry
from dualflow.ops.op_kinds import MatMul


def _product(w: GraphWriter, node: Node) -> Operand:
    a, b, *_ = w.operands(node)
    ranks = [len(v.spec.shape) for v in node.inputs]
    if node.attrs.get("transpose_a"):
        a = w.transposed(a, swapped_matrix_axes(ranks[0]))
    if node.attrs.get("transpose_b"):
        b = w.transposed(b, swapped_matrix_axes(ranks[1]))
    return w.scope.add_with_casts("MatMul", a, b)


def _product_add(w: GraphWriter, node: Node) -> Operand:
    product = _product(w, node)
    scale = node.attrs.get("scale", 1.0)
    if scale != 1.0:
        product = w.scope.add("Mul", product, w.scope.constant(scale, product.dtype))
    return w.scope.add("Add", product, w.operands(node)[2])


def _integer_product(w: GraphWriter, node: Node) -> Operand:
    """An 8-bit integer matrix product; weights in groups along K are first reshaped to a matrix.

    They become unsigned, with the zero point 128: for signed weights, ONNX Runtime adds in 16 bits and
    saturates on processors without instructions for such products.
    """
    (x, weights), shape = w.operands(node), sizes_of(node.inputs[1])
    *batch, groups, columns, size = shape
    if type(groups) is int and not groups:  # ONNX Runtime would leave the result uninitialised
        return w.filled(sizes_of(node.output), 0, int32)
    transposed = w.transposed(weights, swapped_matrix_axes(len(shape)))
    matrix = w.reshaped(transposed, (*batch, groups, size, columns), (*batch, groups * size, columns))
    zero = w.scope.constant(128, uint8)
    shifted = w.scope.add("Add", w.scope.cast(matrix, int32), w.scope.constant(128, int32))
    operands = (x, w.scope.cast(shifted, uint8), w.scope.constant(0, uint8), zero)
    return w.scope.add("MatMulInteger", *operands, dtype=int32)


def _determinant(w: GraphWriter, node: Node) -> Operand:
    if node.attrs["log"] or node.output.spec.dtype is not float32:
        raise unsupported_error(node, "ONNX Runtime has determinants of float32, and no logarithm of them")
    return w.scope.add("Det", *w.operands(node))


def _channels_first(w: GraphWriter, x: Operand, axes: int) -> Operand:
    return w.transposed(x, (0, axes + 1, *range(1, axes + 1)))


def _channels_last(w: GraphWriter, x: Operand, axes: int) -> Operand:
    return w.transposed(x, (0, *range(2, axes + 2), 1))


def _window_attrs(geometry: Geometry) -> dict[str, Any]:
    """The attributes of windows in ONNX, without those that have the default value."""
    attrs: dict[str, Any] = {"kernel_shape": list(geometry.size)}
    if set(geometry.strides) != {1}:
        attrs["strides"] = list(geometry.strides)
    if set(geometry.dilations) != {1}:
        attrs["dilations"] = list(geometry.dilations)
    pads = [*[before for before, _ in geometry.pairs], *[after for _, after in geometry.pairs]]
    if any(pads):
        attrs["pads"] = pads
    return attrs


def _convolution(w: GraphWriter, node: Node) -> Operand:
    (x, kernel), geometry = w.operands(node), node.attrs["geometry"]
    axes, attrs = len(geometry.size), _window_attrs(geometry)
    groups = node.attrs["groups"]
    if groups > 1:
        attrs["group"] = groups
    kernel = w.transposed(kernel, (axes + 1, axes, *range(axes)))
    result = w.scope.add("Conv", _channels_first(w, x, axes), kernel, **attrs)
    return _channels_last(w, result, axes)


def _transposed_convolution(w: GraphWriter, node: Node) -> Operand:
    (y, kernel), geometry = w.operands(node), node.attrs["geometry"]
    axes, attrs = len(geometry.size), _window_attrs(geometry)
    if any(node.attrs["output_padding"]):
        attrs["output_padding"] = list(node.attrs["output_padding"])
    kernel = w.transposed(kernel, (axes + 1, axes, *range(axes)))
    result = w.scope.add("ConvTranspose", _channels_first(w, y, axes), kernel, **attrs)
    return _channels_last(w, result, axes)


def _max_pool(w: GraphWriter, node: Node) -> Operand:
    return _write_pooling(w, node, "MaxPool", {})


def _mean_pool(w: GraphWriter, node: Node) -> Operand:
    return _write_pooling(w, node, "AveragePool", {})


def _sum_pool(w: GraphWriter, node: Node) -> Operand:
    mean = _write_pooling(w, node, "AveragePool", {"count_include_pad": 1})
    count = math.prod(node.attrs["layout"].size)
    return w.scope.add("Mul", mean, w.scope.constant(count, mean.dtype))


def _softmax(w: GraphWriter, node: Node) -> Operand:
    return w.scope.add("Softmax", *w.operands(node), axis=node.attrs["axis"])


def _write_pooling(w: GraphWriter, node: Node, op_type: str, attrs: dict[str, Any]) -> Operand:
    layout = node.attrs["layout"]
    axes = len(layout.size)
    x = _channels_first(w, w.operand(node.inputs[0]), axes)
    return _channels_last(w, w.scope.add(op_type, x, **_window_attrs(layout), **attrs), axes)


RULES: Final[Rules] = {
    MatMul: _product,
    PRODUCT_ADD: _product_add,
    INTEGER_PRODUCT: _integer_product,
    DETERMINANT: _determinant,
    CONVOLUTION: _convolution,
    TRANSPOSED_CONVOLUTION: _transposed_convolution,
    MAX_POOL: _max_pool,
    MEAN_POOL: _mean_pool,
    SUM_POOL: _sum_pool,
    SOFTMAX: _softmax,
}
