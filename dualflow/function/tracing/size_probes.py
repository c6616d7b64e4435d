"""Size probes: trial values for the dynamic sizes of a trace, and the shapes that result from them.

A deferred call is traced for several probes, to find which sizes of its results depend on dynamic sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.errors import DualflowError
from dualflow.core.shape import Dim, Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.interpret import run_node
from dualflow.graph.ir import Node, Value
from dualflow.ops.late_sizes import as_ints
from dualflow.ops.op_kinds import Literal
from dualflow.ops.tensor_sizes import SHAPE

Array = np.ndarray[Any, Any]

PAIRS: Final = ((48, 96), (840, 1680), (6, 12), (3, 4))
"""Pairs of trial values. They have many divisors, since some ops divide sizes."""
_SMALL: Final = (0, 1, 2, 3, 5, 8, 49)
"""Trial values that all dynamic sizes have at once: the smallest, and numbers without a common divisor."""
_MIXED: Final = ((7, 3, 5, 2), (3, 7, 2, 5), (98, 49, 28, 14), (14, 28, 49, 98))
"""Trial values that differ between dynamic sizes, in both orders: primes, and multiples of one another."""
_LARGEST: Final = 4096
"""The largest trial value: a trace may evaluate constants with that number of elements."""
_MAX_CONSTANTS: Final = 12


class SizeProbe:
    """Trial values for the dynamic sizes of a trace.

    Args:
        sizes: the values, in the order in which dynamic sizes are read; repeated if there are more of these.
        data: the number for integers that are computed from data.
    """

    def __init__(self, sizes: Sequence[int], data: int = 1) -> None:
        self._sizes = sizes
        self._data = data
        self._order: dict[tuple[Value, int], int] = {}

    def shape(self, value: Value, cotangents: Mapping[Value, Value]) -> Shape:
        """The shape of ``value``; each argument in ``cotangents`` has the shape of the value there."""
        return self._specs(value, cotangents)[value].shape

    def integers(self, value: Value, cotangents: Mapping[Value, Value]) -> Any:
        """The elements of an integer tensor, as Python integers; ``cotangents`` as in :meth:`shape`."""
        arrays: dict[Value, Array] = {}
        pending = [value]
        while pending:
            current = pending[-1]
            node = current.node
            if current in arrays:
                pending.pop()
            elif node is None or node.effect is not None or node.bodies:
                data = np.array(self._data, current.spec.dtype.dtype)
                shape = tuple([n or 0 for n in self.shape(current, cotangents)])
                arrays[pending.pop()] = np.broadcast_to(data, shape)
            elif node.op is SHAPE:
                arrays[pending.pop()] = np.array(
                    self.shape(node.inputs[0], cotangents), current.spec.dtype.dtype
                )
            elif isinstance(node.op.kind, Literal):
                arrays[pending.pop()] = node.attrs["value"]
            elif missing := [v for v in node.inputs if v not in arrays]:
                pending += missing
            else:
                results = run_node(node, [arrays[v] for v in node.inputs])
                arrays.update(zip(node.outputs, results, strict=True))
        return as_ints(arrays[value])

    def _specs(self, value: Value, cotangents: Mapping[Value, Value]) -> dict[Value, TensorSpec]:
        """The specs of ``value`` and of the values that it is computed from."""
        specs: dict[Value, TensorSpec] = {}
        pending = [value]
        while pending:
            current = pending[-1]
            node = current.node
            primal = cotangents.get(current)
            sources = node.inputs if node is not None else () if primal is None else (primal,)
            missing = [] if current in specs else [v for v in sources if v not in specs]
            if missing and not current.spec.shape.is_static:
                pending += missing
                continue
            pending.pop()
            if current in specs:
                continue
            if primal is not None and primal in specs:
                specs[current] = TensorSpec.of(specs[primal].shape, current.spec.dtype)
            else:
                inferred = None if node is None or current.spec.shape.is_static else _inferred(node, specs)
                outputs = [current] if node is None else node.outputs
                for v, spec in zip(outputs, inferred or [v.spec for v in outputs], strict=True):
                    shape = Shape([self._size(v, axis, n) for axis, n in enumerate(spec.shape)])
                    specs[v] = TensorSpec.of(shape, spec.dtype)
        return specs

    def _size(self, value: Value, axis: int, size: Dim) -> int:
        if size is not None:
            return size
        index = self._order.setdefault((value, axis), len(self._order))
        return self._sizes[index % len(self._sizes)]


def _inferred(node: Node, specs: Mapping[Value, TensorSpec]) -> Sequence[TensorSpec] | None:
    """The specs of a node's results for those of its inputs; None if its shape rule raises an error."""
    if node.bodies:
        return None
    try:
        return node.op.specs([specs[v] for v in node.inputs], dict(node.attrs))
    except DualflowError:
        return None


def varied_probes(constants: Iterable[int]) -> Iterator[SizeProbe]:
    """Trial values for dynamic sizes, under which a result's size that depends on them isn't constant.

    Sizes of results are sums, products, quotients, minima and maxima of dynamic sizes and ``constants``.
    Values below and above each constant, and different values for different dynamic sizes, distinguish these.
    """
    near = {n for c in sorted(set(constants))[:_MAX_CONSTANTS] for n in (c - 1, c, c + 1, 2 * c + 1)}
    for size in sorted(near.union(_SMALL)):
        if 0 <= size <= _LARGEST:
            yield SizeProbe((size,))
    for sizes in _MIXED:
        yield SizeProbe(sizes)


def upstream_constants(value: Value) -> Iterator[int]:
    """The elements of the integer constants that ``value`` is computed from."""
    pending, done = [value], {value}
    while pending:
        node = pending.pop().node
        if node is None or node.op is SHAPE:
            continue
        if isinstance(node.op.kind, Literal) and node.output.spec.dtype.is_integer:
            yield from node.attrs["value"].reshape(-1)[:_MAX_CONSTANTS].tolist()
        pending += [v for v in node.inputs if v not in done]
        done.update(node.inputs)


def depends_on_data(value: Value) -> bool:
    """Whether integers are computed from anything but sizes and constants."""
    pending, done = [value], {value}
    while pending:
        node = pending.pop().node
        if node is None or node.effect is not None or node.bodies:
            return True
        if node.op is not SHAPE:
            pending += [v for v in node.inputs if v not in done]
            done.update(node.inputs)
    return False
