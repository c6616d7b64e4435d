"""Calibration: the ranges of the floats that quantized products read, observed on data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import entry
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.traced_function import Function
from dualflow.graph.extract import extract
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.contraction import MATMUL
from dualflow.ops.creation import CONSTANT
from dualflow.ops.op_kinds import View
from dualflow.ops.repetition import PAD
from dualflow.rewrites.batch_norm import fold_batch_norm
from dualflow.rewrites.freeze import as_function, frozen_graph

REWRITES_BEFORE: Final = (fold_batch_norm,)
"""The rewrites that are applied before products are counted."""
_MIN_INNER: Final = 32
"""The smallest inner size that is quantized: for a smaller one, quantizing x takes longer than it saves."""
_MAX_INNER: Final = (1 << 31) // (255 * 128)
"""The largest inner size for which sums of 32 bits can't overflow."""


_Range = tuple[float, float]


class QuantizableProduct(NamedTuple):
    """A product of a frozen graph that can be quantized.

    Attributes:
        node: the matrix product; its second input is constant.
        source: the value that is quantized: what the product reads, before views and padding.
    """

    node: Node
    source: Value


@dataclass(frozen=True, slots=True)
class Calibration:
    """The ranges that :func:`calibrate` has observed; print it.

    Args:
        function: the function that was calibrated.
        ranges: the lowest and the highest value that each product reads, in the order of the products.
        weights: the shape of the weights of each product.
        lines: the line that calls each product, empty if there is none.

    >>> import dualflow as df
    >>> w = df.ones([64, 3])
    >>> df.quantization.calibrate(lambda x: x @ w, [df.ones([5, 64])]).ranges
    ((0.0, 1.0),)
    """

    function: Function[..., Any]
    ranges: tuple[_Range, ...]
    weights: tuple[tuple[int, ...], ...]
    lines: tuple[str, ...]

    def __str__(self) -> str:
        rows = zip(self.weights, self.ranges, self.lines, strict=True)
        return "\n".join(
            f"product with weights {list(shape)} reads {low:.4g} to {high:.4g}{line and f' ({line})'}"
            for shape, (low, high), line in rows
        )


@entry
def calibrate(f: Callable[..., Any], data: Iterable[Any]) -> Calibration:
    """Observe the values that the dense and convolution layers of ``f`` read.

    Args:
        f: a ``df.function``, a Module with ``__call__``, a Keras model, or a plain function: for inference,
            so that it assigns no variable.
        data: the arguments of some calls, such as a :class:`df.data.Dataset` of batches: a tuple has the
            arguments, anything else is the only one. A few hundred typical examples suffice.

    Returns:
        The ranges, for :func:`int8`.

    Raises:
        InvalidArgumentError: there are no data, a product reads a nan or an infinity, or calls differ in
            their products.
        DTypeError: ``f`` is not callable.
        FailedPreconditionError: ``f`` assigns variables.

    >>> import dualflow as df
    >>> w = df.ones([64, 2])
    >>> print(df.quantization.calibrate(lambda x: x @ w, [df.linspace([-0.5], [2.0], 64, axis=-1)]))
    product with weights [64, 2] reads -0.5 to 2 (...)
    """
    function = as_function(f)
    ranges: list[_Range] = []
    calibrated: list[QuantizableProduct] | None = None
    graphs: dict[int, tuple[Graph, list[QuantizableProduct]]] = {}
    for element in data:
        arguments = element if isinstance(element, tuple) else (element,)
        trace, inputs = function.trace_for(arguments, {})
        if id(trace) not in graphs:
            graph = frozen_graph(trace.graph, REWRITES_BEFORE)
            graphs[id(trace)] = graph, products(graph)
        graph, current = graphs[id(trace)]
        if calibrated is None:
            calibrated, ranges = current, [(0.0, 0.0)] * len(current)
        require_same([_shape(p) for p in calibrated], current, function.name)
        sources = extract(graph, graph.arguments, [p.source for p in current])
        arrays = evaluate(sources, [array_of(x) for x in inputs])
        ranges = [_extended(r, a, p) for r, a, p in zip(ranges, arrays, current, strict=True)]
    if calibrated is None:
        raise InvalidArgumentError(f"There are no data to calibrate {function.name!r} with.")
    lines = tuple([str(p.node.origin or "") for p in calibrated])
    return Calibration(function, tuple(ranges), tuple([_shape(p) for p in calibrated]), lines)


def _extended(before: _Range, array: np.ndarray[Any, Any], product: QuantizableProduct) -> _Range:
    """The range with the elements of ``array``; it always contains 0."""
    low, high = float(array.min(initial=0.0)), float(array.max(initial=0.0))
    if not np.isfinite(low + high):
        raise InvalidArgumentError(
            f"A product reads {low if not np.isfinite(low) else high} with these data, for which there is no "
            f"range.\n  {product.node.origin or ''}"
        )
    return min(before[0], low), max(before[1], high)


def require_same(shapes: Sequence[tuple[int, ...]], current: Sequence[QuantizableProduct], name: str) -> None:
    """Raise if a trace has other products than the calibrated one."""
    if [_shape(p) for p in current] != list(shapes):
        raise InvalidArgumentError(
            f"{name!r} has products with weights {[list(_shape(p)) for p in current]} in this call, and "
            f"{list(map(list, shapes))} in the first call of its calibration: calibrate it for such calls."
        )


def products(graph: Graph) -> list[QuantizableProduct]:
    """The products of a frozen graph that can be quantized, in program order."""
    return [QuantizableProduct(n, source_of(n.inputs[0])) for n in graph.nodes if _is_quantizable(n)]


def _is_quantizable(node: Node) -> bool:
    """Whether ``node`` is a product of float32 with a constant matrix."""
    if node.op is not MATMUL or node.attrs.get("transpose_a") or node.output.spec.dtype is not float32:
        return False
    x, w = node.inputs
    if w.node is None or w.node.op is not CONSTANT or len(w.spec.shape) != 2 or x.spec.shape[-1] is None:
        return False
    return _MIN_INNER <= x.spec.shape[-1] <= _MAX_INNER and not (x.node is not None and x.node.op is CONSTANT)


def source_of(value: Value) -> Value:
    """The value before views and zero padding. It is quantized once for all its readers."""
    while value.node is not None and _moves_elements(value.node):
        value = value.node.inputs[0]
    return value


def _moves_elements(node: Node) -> bool:
    return isinstance(node.op.kind, View) or (node.op is PAD and not node.attrs["value"])


def _shape(product: QuantizableProduct) -> tuple[int, ...]:
    return tuple([n or 0 for n in product.node.inputs[1].spec.shape])
