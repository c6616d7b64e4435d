"""Which elements of a function's result depend on which of an argument's, read off its graph.

Each value has a sparse matrix of bools: a row for each of its elements, a column for each of the argument's.
Forms say how an op passes it on: elements and folds add rows up, views, assemblies and picks move them, a
product joins rows and columns; through any other op each element depends on all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.eager.tensor import EagerTensor
from dualflow.graph.axes import sizes
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.op_kinds import CopyPieces, Elementwise, Gather, Literal, MatMul, Reduce, View

Array = np.ndarray[Any, Any]
Pattern = Any
"""A SciPy sparse array of 0 and 1, in rows."""


def pattern_of(graph: Graph) -> Pattern:
    """For the one output of ``graph`` the elements of its first input on which each may depend.

    Raises:
        InvalidArgumentError: a size that is not known.
    """
    walk = _Dependence(graph)
    for node in graph.nodes:
        for value in node.outputs:
            if value.spec.dtype.is_inexact:
                if not value.spec.shape.is_static:
                    raise InvalidArgumentError(
                        f"The size of what {node.op.name} makes depends on data, so which elements depend on "
                        f"which does too; give sparse_jacobian the pattern.\n  {node.origin}"
                    )
                found = walk.through(node, value)
                if found is not None:
                    walk.known[value] = found
    (result,) = graph.outputs
    found = walk.known.get(result)
    return walk.nothing(_count(result)) if found is None else found


class _Dependence:
    """The patterns of the values of one graph, of those that depend on the argument."""

    def __init__(self, graph: Graph) -> None:
        self.sparse = imported("scipy.sparse")
        (argument, *_) = graph.inputs
        self.width = _count(argument)
        self.known: dict[Value, Pattern] = {argument: self.sparse.eye_array(self.width, format="csr")}
        self.constants = {
            v: c.source.numpy()
            for v, c in zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True)
            if not c.variable and isinstance(c.source, EagerTensor)
        }

    def nothing(self, rows: int) -> Pattern:
        """The pattern of ``rows`` elements that depend on nothing."""
        return self.sparse.csr_array((rows, self.width))

    def through(self, node: Node, value: Value) -> Pattern | None:
        """What ``value``, a result of ``node``, depends on; None for nothing."""
        given = [v for v in node.inputs if v in self.known]
        if not given:
            return None
        kind = node.op.kind
        if isinstance(kind, Elementwise):
            rows = [np.broadcast_to(_numbers(v), sizes(value)).reshape(-1) for v in given]
            return _joined([self.known[v][r] for v, r in zip(given, rows, strict=True)])
        if isinstance(kind, Reduce):
            return self._folded(given[0], tuple(node.attrs["axis"]))
        if isinstance(kind, View | CopyPieces):
            return self._moved(node, value, range(len(node.inputs)))
        if isinstance(kind, Gather) and node.inputs[1] not in self.known:
            indices = self._constant(node.inputs[1])
            if indices is not None:
                return self._moved(node, value, (0,))
        if isinstance(kind, MatMul) and len(node.inputs) == 2:
            return self._product(node, value)
        alike = _joined([self._folded(v, tuple(range(v.spec.rank))) for v in given])
        return alike[np.zeros(_count(value), np.int64)]

    def _constant(self, value: Value) -> Array | None:
        """The elements of a value that is known."""
        if value.node is not None and isinstance(value.node.op.kind, Literal):
            return np.asarray(value.node.attrs["value"])
        return self.constants.get(value)

    def _folded(self, value: Value, axes: tuple[int, ...]) -> Pattern:
        """What sums of ``value`` along ``axes`` depend on."""
        shape = sizes(value)
        kept = tuple([1 if i in axes else n for i, n in enumerate(shape)])
        rows = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape).reshape(-1)
        ones, count = np.ones(rows.size, bool), math.prod(kept)
        places = rows, np.arange(rows.size)
        return _ones(self.sparse.csr_array((ones, places), (count, rows.size)) @ self.known[value])

    def _moved(self, node: Node, value: Value, slots: Any) -> Pattern:
        """What moved elements depend on: the op moves their numbers, with 0 for what depends on nothing."""
        parts, given, first = [self.nothing(1)], [], 1
        for slot, source in enumerate(node.inputs):
            if slot not in slots:
                given.append(self._constant(source))
            elif source in self.known:
                given.append(_numbers(source) + first)
                parts.append(self.known[source])
                first += _count(source)
            else:
                given.append(np.zeros(sizes(source), np.int64))
        attrs = {**node.attrs, "value": 0} if "value" in node.attrs else node.attrs
        moved = node.op.kernel(*given, **attrs)
        moved = moved[value.index] if isinstance(moved, tuple | list) else moved
        return self.sparse.vstack(parts, format="csr")[np.asarray(moved, np.int64).reshape(-1)]

    def _product(self, node: Node, value: Value) -> Pattern:
        """What a matrix product depends on: rows of one factor and columns of the other."""
        found = []
        for slot, source in enumerate(node.inputs):
            if source not in self.known:
                continue
            other = self._constant(node.inputs[1 - slot])
            if other is not None and other.ndim == source.spec.rank == 2 and not any(_swapped(node)):
                zeros = self.sparse.csr_array(other != 0)
                rest = self.sparse.eye_array(sizes(value)[slot], dtype=bool)
                pair = (rest, zeros.T) if slot == 0 else (zeros, rest)
                found.append(_ones(self.sparse.kron(*pair, format="csr") @ self.known[source]))
                continue
            contracted = source.spec.rank - (1 if slot == (1 if _swapped(node)[slot] else 0) else 2)
            folded = self._folded(source, (contracted,))
            shape = [1 if i == contracted else n for i, n in enumerate(sizes(source))]
            rows = np.arange(math.prod(shape)).reshape(shape)
            rows = np.swapaxes(rows, -1, -2) if _swapped(node)[slot] else rows
            found.append(folded[np.broadcast_to(rows, sizes(value)).reshape(-1)])
        return _joined(found)


def _swapped(node: Node) -> tuple[bool, bool]:
    return bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))


def _joined(patterns: list[Pattern]) -> Pattern:
    found = patterns[0]
    for other in patterns[1:]:
        found = found + other
    return _ones(found)


def _ones(pattern: Pattern) -> Pattern:
    """The pattern with 1 wherever something is: sums of many stay in range."""
    pattern.data = (pattern.data != 0).astype(np.int8)
    return pattern


def _numbers(value: Value) -> Array:
    return np.arange(_count(value)).reshape(sizes(value))


def _count(value: Value) -> int:
    return math.prod(sizes(value))
