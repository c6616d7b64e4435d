"""Computes inverses, solutions, determinants and Cholesky factors of small matrices in kernels.

LAPACK takes longer for a few rows than their arithmetic, and runs on the host: a loop with such a call would
run in NumPy as a whole. Single precision is computed in double precision, as by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dualflow.core.dtypes import float64
from dualflow.core.shape import Shape
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import Make, Replacement, rewrite
from dualflow.ops.conversion import CAST
from dualflow.ops.indexing import GETITEM
from dualflow.ops.linear_algebra.cholesky import CHOLESKY
from dualflow.ops.linear_algebra.inverse import DETERMINANT, INV
from dualflow.ops.linear_algebra.small_matrices import (
    MAX_SIZE,
    SMALL_CHOLESKY,
    SMALL_DETERMINANT,
    SMALL_INVERSE,
    SMALL_SOLUTION,
)
from dualflow.ops.linear_algebra.solving import SOLVE
from dualflow.ops.positions import IOTA
from dualflow.ops.record import Op

Index = int | tuple[int, int | None, int]


def compute_small_matrices(graph: Graph) -> Graph:
    """``graph`` without LAPACK's ops on real matrices of at most :data:`MAX_SIZE` rows."""
    if all(node.op not in _RULES for node in graph.nodes):
        return graph
    rewritten = rewrite(graph, _in_kernels)
    return graph if rewritten is graph else eliminate_dead_code(rewritten)


def _in_kernels(node: Node, make: Make) -> Replacement:
    rule = _RULES.get(node.op)
    if rule is None or not _is_small(node.inputs[0]) or node.attrs.get("log"):
        return None
    dtype = node.inputs[0].spec.dtype
    if dtype is float64:
        return (rule(make, *node.inputs),)
    result = rule(make, *[make(CAST, (x,), {"dtype": float64}) for x in node.inputs])
    return (make(CAST, (result,), {"dtype": dtype}),)


def _is_small(x: Value) -> bool:
    """Whether a value holds real matrices of 1 to :data:`MAX_SIZE` rows and columns."""
    sizes = x.spec.shape[-2:]
    return x.spec.dtype.char in "fd" and all(type(n) is int and 0 < n <= MAX_SIZE for n in sizes)


def _part(x: Value, make: Make, *indices: Index) -> Value:
    """``x[..., *indices]``, where the last two axes are indexed."""
    batch = [(0, 0, 1) if size == 0 else (0, size, 1) for size in x.spec.shape[:-2]]
    return make(GETITEM, (x,), {"key": (*batch, *indices)})


def _elements(x: Value, make: Make) -> list[Value]:
    """The elements of square matrices, row by row, with the last two axes of size 1."""
    slices = [(i, i + 1, 1) for i in range(x.spec.shape[-1])]
    return [_part(x, make, row, column) for row in slices for column in slices]


def _positions(size: int, make: Make) -> tuple[Value, Value]:
    """The positions of the rows and of the columns of square matrices."""
    shapes = Shape([size, 1]), Shape([size])
    rows, columns = (make(IOTA, (), {"shape": shape, "axis": 0, "dtype": float64}) for shape in shapes)
    return rows, columns


def _square(op: Op) -> Callable[[Make, Value], Value]:
    """The rule for ops whose results are square matrices, too."""

    def rule(make: Make, a: Value) -> Value:
        size = a.spec.shape[-1]
        return make(op, [*_elements(a, make), *_positions(size, make)], {"size": size})

    return rule


def _solution(make: Make, a: Value, b: Value) -> Value:
    size = a.spec.shape[-1]
    sides = [_part(b, make, (i, i + 1, 1), (0, b.spec.shape[-1], 1)) for i in range(size)]
    rows, _ = _positions(size, make)
    return make(SMALL_SOLUTION, [*_elements(a, make), *sides, rows], {"size": size})


def _determinant(make: Make, a: Value) -> Value:
    size = a.spec.shape[-1]
    elements = [_part(a, make, i, j) for i in range(size) for j in range(size)]
    return make(SMALL_DETERMINANT, elements, {"size": size})


_RULES: Final[dict[Op, Callable[..., Value]]] = {
    INV: _square(SMALL_INVERSE),
    SOLVE: _solution,
    DETERMINANT: _determinant,
    CHOLESKY: _square(SMALL_CHOLESKY),
}
