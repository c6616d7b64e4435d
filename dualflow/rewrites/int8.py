"""Post-training quantization: dense and convolution layers as products of 8-bit integers.

An activation ``x`` is quantized to bytes, ``q = round(x / scale) + zero_point``, with one scale and one zero
point for the tensor; weights to signed bytes, ``round(w / scale[j])``, with a scale for each column. Then

    (x @ w)[i, j] = scale * scale[j] * (sum_k q[i, k] * wq[k, j]  -  zero_point * sum_k wq[k, j])

of which the first sum is an integer product, and the second a constant (Jacob et al., "Quantization and
Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", 2018).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import float32, uint8
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import entry
from dualflow.function.decorator import function
from dualflow.function.traced_function import Function
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.ops.arrangement import reshape
from dualflow.ops.clipping import clip_by_value
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.integer_product import GROUP, integer_product
from dualflow.ops.repetition import PAD, pad
from dualflow.ops.rounding import round as round_to_even
from dualflow.rewrites.calibration import (
    REWRITES_BEFORE,
    Calibration,
    QuantizableProduct,
    products,
    require_same,
)
from dualflow.rewrites.freeze import constant_of, fold_all, frozen_graph
from dualflow.rewrites.tracing import inlined, trace

Array = np.ndarray[Any, Any]
_MAX_BYTE: Final = 255
_MAX_WEIGHT: Final = 127
_NAME: Final = "int8"


@entry
def int8(f: Callable[..., Any], calibration: Calibration) -> Function[..., Any]:
    """``f`` for inference, with dense and convolution layers as products of 8-bit integers.

    Batch normalisation after a layer is folded into its weights first. Weights become signed bytes with a
    scale for each column, a quarter of the size of float32. The input of a layer becomes bytes with one scale
    and one zero point, from the range of the calibration; values outside of the range are clipped to it. Sums
    have 32 bits. Everything else stays float32, and so do two kinds of layers: those that compute an output
    from fewer than 32 values, for which integers are no faster, and those whose weights are not constant.

    Args:
        f: what was calibrated.
        calibration: the result of :func:`calibrate`.

    Returns:
        A ``df.function`` with the parameters of ``f``, whose weights are the current values of its variables.
        It can be saved and exported; its results have no gradients.

    Raises:
        InvalidArgumentError: in a call whose trace has other products than the calibration.
        FailedPreconditionError: in a call, if ``f`` assigns variables.

    >>> import dualflow as df
    >>> w = df.Variable(df.reshape(df.linspace(-1.0, 2.0, 128), [64, 2]))
    >>> f, x = lambda x: x @ w, df.linspace([-0.5], [2.0], 64, axis=-1)
    >>> quantized = df.quantization.int8(f, df.quantization.calibrate(f, [x]))
    >>> f(x).numpy(), quantized(x).numpy()
    (array([[64.37..., 65.51...]], dtype=float32), array([[64.42..., 65.53...]], dtype=float32))
    """
    traced, weights = calibration.function, dict[int, _QuantizedWeights]()

    @functools.wraps(traced.python_function)
    def quantized(*args: Any, **kwargs: Any) -> Any:
        current, inputs = traced.trace_for(args, kwargs)
        graph = quantized_graph(frozen_graph(current.graph, REWRITES_BEFORE), calibration, weights)
        return current.packed([stop_gradient(x) for x in replay(graph, inputs)])

    return function(quantized, input_signature=traced.input_signature, name=traced.name)


def quantized_graph(graph: Graph, calibration: Calibration, weights: dict[int, _QuantizedWeights]) -> Graph:
    """A frozen graph with integer products; ``weights``, by number of the product, is a cache for all traces.

    Raises:
        InvalidArgumentError: it has other products than the calibration.
    """
    current = products(graph)
    require_same(calibration.weights, current, graph.name)
    numbers = {p.node: i for i, p in enumerate(current)}
    replaced: dict[Value, Value] = {}
    quantizer = _Quantizer(replaced)

    def rule(node: Node, _: Node) -> Expansion | None:
        i = numbers.get(node)
        if i is None:
            return None
        params = _QuantParams.of(*calibration.ranges[i])
        if i not in weights:
            weights[i] = _QuantizedWeights.of(node, params)
        return quantizer.expansion(current[i], params, weights[i])

    return eliminate_dead_code(fold_all(rebuild(graph, rule, replaced)))


class _QuantParams(NamedTuple):
    """Quantization parameters of a tensor: a byte represents the float ``scale * (byte - zero_point)``."""

    scale: float
    zero_point: int

    @classmethod
    def of(cls, low: float, high: float) -> _QuantParams:
        """The parameters for floats from ``low`` to ``high``, a range that contains 0."""
        scale = float(np.float32((high - low) / _MAX_BYTE)) or 1.0
        return cls(scale, int(np.clip(np.rint(-low / scale), 0, _MAX_BYTE)))


class _QuantizedWeights(NamedTuple):
    """The weights of a product as signed bytes.

    Attributes:
        inner: the inner size of the product.
        integers: the weights in groups of rows, the last one padded with zeros.
        offsets: for each column, the zero point times the sum of its weights, which is subtracted.
        factors: for each column, the scale of its sums: the product of both scales.
    """

    inner: int
    integers: Array
    offsets: Array
    factors: Array

    @classmethod
    def of(cls, product: Node, params: _QuantParams) -> _QuantizedWeights:
        """The weights of a float product, for a left operand quantized with ``params``."""
        node = product.inputs[1].node
        assert node is not None, "weights are a constant"
        weights = constant_of(node).T if product.attrs.get("transpose_b") else constant_of(node)
        inner, columns = weights.shape
        largest = np.abs(weights).max(0)
        scales = np.where(largest > 0, largest / _MAX_WEIGHT, 1.0).astype(np.float32)
        integers = np.rint(weights / scales).clip(-_MAX_WEIGHT, _MAX_WEIGHT).astype(np.int8)
        padded = np.concatenate([integers, np.zeros((-inner % GROUP, columns), np.int8)])
        grouped = np.ascontiguousarray(padded.reshape(-1, GROUP, columns).swapaxes(1, 2))
        offsets = (params.zero_point * integers.sum(0, dtype=np.int64)).astype(np.int32)
        return cls(inner, grouped, offsets, (scales * np.float32(params.scale)).astype(np.float32))


class _Quantizer:
    """Builds integer products; a value that several products read with equal parameters is quantized once."""

    def __init__(self, replaced: dict[Value, Value]) -> None:
        self._replaced = replaced
        self._bytes: dict[tuple[Value, _QuantParams], Value] = {}
        self._nodes: list[Node] = []

    def expansion(
        self, product: QuantizableProduct, params: _QuantParams, weights: _QuantizedWeights
    ) -> Expansion:
        """The replacement of a float product."""
        node = product.node
        x = self._as_bytes(node.inputs[0], product.source, params, node)
        result = self._add(_dequantized_product(weights), [x], node)
        nodes, self._nodes = self._nodes, []
        return Expansion(nodes, [result])

    def _as_bytes(self, value: Value, source: Value, params: _QuantParams, product: Node) -> Value:
        """``value`` quantized: ``source`` is quantized, and views and padding after it then move bytes."""
        chain: list[Node] = []
        at = value
        while (at, params) not in self._bytes and at is not source:
            assert at.node is not None, "the source comes before"
            chain.append(at.node)
            at = at.node.inputs[0]
        key = at, params
        if key not in self._bytes:
            self._bytes[key] = self._add(_quantize(params), [self._replaced.get(at, at)], product)
        current = self._bytes[key]
        for node in reversed(chain):
            attrs = {**node.attrs, "value": params.zero_point} if node.op is PAD else node.attrs
            moved = Node(node.op, [current], attrs, node.op.specs([current.spec], dict(attrs)), node.origin)
            self._nodes.append(moved)
            current = self._bytes[node.output, params] = moved.output
        return current

    def _add(self, compute: Callable[..., Any], operands: list[Value], node: Node) -> Value:
        graph, _ = trace(compute, [v.spec for v in operands], _NAME)
        nodes, values = inlined(graph, operands, node, (), None)
        self._nodes += nodes
        return values[0]


def _quantize(params: _QuantParams) -> Callable[..., Any]:
    inverse, zero = float(np.float32(1.0 / params.scale)), float(params.zero_point)

    def compute(x: Any) -> Any:
        """Quantize floats to bytes."""
        quotients = round_to_even(x * inverse)
        return cast(clip_by_value(quotients + zero if zero else quotients, 0.0, _MAX_BYTE), uint8)

    return compute


def _dequantized_product(weights: _QuantizedWeights) -> Callable[..., Any]:
    inner, columns = weights.inner, len(weights.factors)
    padding = -inner % GROUP

    def compute(x: Any) -> Any:
        shape = [-1 if n is None else n for n in x.shape[:-1]]
        merges = len(shape) > 1 and shape.count(-1) <= 1
        matrix = reshape(x, [-1, inner]) if merges else x
        around = [[0, 0]] * (len(matrix.shape) - 1)
        matrix = pad(matrix, [*around, [0, padding]]) if padding else matrix
        sums = integer_product(matrix, weights.integers)
        sums = sums - weights.offsets if np.any(weights.offsets) else sums
        y = cast(sums, float32) * weights.factors
        return reshape(y, [*shape, columns]) if merges else y

    return compute
