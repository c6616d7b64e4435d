"""The sparsity pattern of a function's jacobian, derived from its graph.

Each value has a sparse matrix of bools: a row for each of its elements, a column for each of the argument's.
The kind of an op determines the matrix of its result. An elementwise op or a reduction takes the union of
rows; a view, a concatenation or a gather permutes them; a matrix product combines rows and columns. Each
element of the result of any other op depends on all elements of its inputs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.eager.tensor import EagerTensor
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.views import sizes
from dualflow.ops.op_kinds import CopyPieces, Elementwise, Gather, Literal, MatMul, Reduce, View

Array = np.ndarray[Any, Any]
Pattern = Any
"""A SciPy sparse array (CSR) of 0 and 1."""


def pattern_of(graph: Graph) -> Pattern:
    """The pattern of the output of ``graph`` with respect to its first input.

    Raises:
        InvalidArgumentError: a size depends on data.
    """
    dependence = _Dependence(graph)
    for node in graph.nodes:
        for value in node.outputs:
            if value.spec.dtype.is_inexact:
                if not value.spec.shape.is_static:
                    raise InvalidArgumentError(
                        f"The size of the result of {node.op.name} depends on data, and so does the pattern "
                        f"of the jacobian; pass a pattern to sparse_jacobian.\n  {node.origin}"
                    )
                pattern = dependence.through(node, value)
                if pattern is not None:
                    dependence.patterns[value] = pattern
    (result,) = graph.outputs
    pattern = dependence.patterns.get(result)
    return dependence.empty(_count(result)) if pattern is None else pattern


class _Dependence:
    """The patterns of those values of a graph that depend on the argument."""

    def __init__(self, graph: Graph) -> None:
        self.sparse = imported("scipy.sparse")
        (argument, *_) = graph.inputs
        self.width = _count(argument)
        self.patterns: dict[Value, Pattern] = {argument: self.sparse.eye_array(self.width, format="csr")}
        self.constants = {
            v: c.source.numpy()
            for v, c in zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True)
            if not c.variable and isinstance(c.source, EagerTensor)
        }

    def empty(self, rows: int) -> Pattern:
        """The pattern of a value of ``rows`` elements, none of which depends on the argument."""
        return self.sparse.csr_array((rows, self.width))

    def through(self, node: Node, value: Value) -> Pattern | None:
        """The pattern of ``value``, a result of ``node``; None if it doesn't depend on the argument."""
        dependent = [v for v in node.inputs if v in self.patterns]
        if not dependent:
            return None
        kind = node.op.kind
        if isinstance(kind, Elementwise):
            rows = [np.broadcast_to(_element_indices(v), sizes(value)).reshape(-1) for v in dependent]
            return _union([self.patterns[v][r] for v, r in zip(dependent, rows, strict=True)])
        if isinstance(kind, Reduce):
            return self._reduced(dependent[0], tuple(node.attrs["axis"]))
        if isinstance(kind, View | CopyPieces):
            return self._moved(node, value, range(len(node.inputs)))
        if isinstance(kind, Gather) and node.inputs[1] not in self.patterns:
            indices = self._constant(node.inputs[1])
            if indices is not None:
                return self._moved(node, value, (0,))
        if isinstance(kind, MatMul) and len(node.inputs) == 2:
            return self._product(node, value)
        row = _union([self._reduced(v, tuple(range(v.spec.rank))) for v in dependent])
        return row[np.zeros(_count(value), np.int64)]

    def _constant(self, value: Value) -> Array | None:
        """The elements of a constant or a captured tensor; None for other values."""
        if value.node is not None and isinstance(value.node.op.kind, Literal):
            return np.asarray(value.node.attrs["value"])
        return self.constants.get(value)

    def _reduced(self, value: Value, axes: tuple[int, ...]) -> Pattern:
        """The pattern of a reduction of ``value`` along ``axes``."""
        shape = sizes(value)
        reduced = tuple([1 if i in axes else n for i, n in enumerate(shape)])
        rows = np.broadcast_to(np.arange(math.prod(reduced)).reshape(reduced), shape).reshape(-1)
        ones, count = np.ones(rows.size, bool), math.prod(reduced)
        coordinates = rows, np.arange(rows.size)
        return _as_ones(self.sparse.csr_array((ones, coordinates), (count, rows.size)) @ self.patterns[value])

    def _moved(self, node: Node, value: Value, copied: Any) -> Pattern:
        """The pattern of a result that copies elements of the inputs at ``copied``.

        The op's kernel runs on row indices in place of elements; row 0 depends on nothing.
        """
        parts, operands, first = [self.empty(1)], [], 1
        for index, source in enumerate(node.inputs):
            if index not in copied:
                operands.append(self._constant(source))
            elif source in self.patterns:
                operands.append(_element_indices(source) + first)
                parts.append(self.patterns[source])
                first += _count(source)
            else:
                operands.append(np.zeros(sizes(source), np.int64))
        attrs = {**node.attrs, "value": 0} if "value" in node.attrs else node.attrs
        moved = node.op.kernel(*operands, **attrs)
        moved = moved[value.index] if isinstance(moved, tuple | list) else moved
        return self.sparse.vstack(parts, format="csr")[np.asarray(moved, np.int64).reshape(-1)]

    def _product(self, node: Node, value: Value) -> Pattern:
        """The pattern of a matrix product, by rows of the first factor and columns of the second."""
        patterns = []
        for index, source in enumerate(node.inputs):
            if source not in self.patterns:
                continue
            other = self._constant(node.inputs[1 - index])
            if other is not None and other.ndim == source.spec.rank == 2 and not any(_transposed(node)):
                nonzero = self.sparse.csr_array(other != 0)
                identity = self.sparse.eye_array(sizes(value)[index], dtype=bool)
                pair = (identity, nonzero.T) if index == 0 else (nonzero, identity)
                patterns.append(_as_ones(self.sparse.kron(*pair, format="csr") @ self.patterns[source]))
                continue
            last = (index == 0) != _transposed(node)[index]  # the axis that is summed over
            contracted = source.spec.rank - (1 if last else 2)
            reduced = self._reduced(source, (contracted,))
            shape = [1 if i == contracted else n for i, n in enumerate(sizes(source))]
            rows = np.arange(math.prod(shape)).reshape(shape)
            rows = np.swapaxes(rows, -1, -2) if _transposed(node)[index] else rows
            patterns.append(reduced[np.broadcast_to(rows, sizes(value)).reshape(-1)])
        return _union(patterns)


def _transposed(node: Node) -> tuple[bool, bool]:
    """Whether a matrix product transposes its first and its second factor."""
    return bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))


def _union(patterns: list[Pattern]) -> Pattern:
    """The union of patterns of the same shape."""
    total = patterns[0]
    for other in patterns[1:]:
        total = total + other
    return _as_ones(total)


def _as_ones(pattern: Pattern) -> Pattern:
    """The pattern with 1 for each number that is not 0, so that sums of patterns don't overflow int8."""
    pattern.data = (pattern.data != 0).astype(np.int8)
    return pattern


def _element_indices(value: Value) -> Array:
    """The row-major indices of the elements, in an array of the shape of ``value``."""
    return np.arange(_count(value)).reshape(sizes(value))


def _count(value: Value) -> int:
    return math.prod(sizes(value))
