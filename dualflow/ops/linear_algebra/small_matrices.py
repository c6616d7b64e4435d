"""Inverses, solutions, determinants and Cholesky factors of small matrices, as elementwise ops.

Compiled graphs use them in place of calls of LAPACK, which take longer than the arithmetic of a few rows, and
keep loops from being compiled. Single precision is computed in double precision, as by NumPy.

The first inputs of the ops are the elements of the matrices. Each element of a result is computed on its own,
so that all are one loop; the positions of its row and its column are inputs, too.

The algorithms are Gaussian elimination with partial pivoting and Cholesky's by columns: Golub and Van Loan,
"Matrix Computations" (2013), 3.4.4 and 4.2.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from dualflow.core.dtypes import DType, float64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.ops import maths_reference
from dualflow.ops.conversion import CAST
from dualflow.ops.indexing import GETITEM
from dualflow.ops.linear_algebra.matrices import not_invertible, not_positive_definite
from dualflow.ops.op_kinds import AddNode, Elementwise
from dualflow.ops.positions import IOTA
from dualflow.ops.record import Op

MAX_SIZE: Final = 8
"""The largest number of rows: the code grows with its third power."""

_SINGULAR: Final = str(not_invertible([]))
_NOT_POSITIVE: Final = str(not_positive_definite([]))

Rows = list[list[Any]]


def _op(name: str, doc: str, code: Callable[..., Any], error: type[InvalidArgumentError] | None) -> Op:
    """An elementwise op on matrices of ``size`` rows."""

    def infer(*inputs: TensorSpec, **attrs: Any) -> TensorSpec:
        return TensorSpec.of(broadcast([x.shape for x in inputs]), inputs[0].dtype)

    return Op(
        name=name,
        doc=doc,
        infer=infer,
        kernel=lambda *arrays, **attrs: code(maths_reference, *arrays, **attrs),
        kind=Elementwise(code, cost=64, error=error),  # the work of four rows; a cost has no sizes
    )


def _rows(elements: Sequence[Any], size: int) -> Rows:
    """The rows of a square matrix."""
    return [list(elements[i * size : (i + 1) * size]) for i in range(size)]


def _eliminate(m: Any, rows: Rows) -> Any:
    """Make ``rows`` upper triangular in place; returns the sign of the permutation of rows.

    Elements beyond the square are those of right-hand sides. A column of zeros is left as it is.
    """
    sign = m.constant(1.0, m.dtype(rows[0][0]))
    for k, pivot in enumerate(rows):
        for row in rows[k + 1 :]:
            is_larger = abs(row[k]) > abs(pivot[k])
            sign = m.where(is_larger, -sign, sign)
            for j in range(k, len(row)):
                pivot[j], row[j] = m.where(is_larger, row[j], pivot[j]), m.where(is_larger, pivot[j], row[j])
        divisor = m.where(m.equal(pivot[k], 0.0), sign, pivot[k])
        for row in rows[k + 1 :]:
            factor = row[k] / divisor
            for j in range(k + 1, len(row)):
                row[j] = row[j] - factor * pivot[j]
    return sign


def _solve(m: Any, rows: Rows) -> list[Any]:
    """The solution of a system whose right-hand side is the last element of each of ``rows``.

    A check fails where the matrix is singular.
    """
    _eliminate(m, rows)
    solution: list[Any] = []
    for k in reversed(range(len(rows))):
        *coefficients, side = rows[k]
        m.check(m.not_equal(coefficients[k], 0.0), _SINGULAR)
        for coefficient, x in zip(coefficients[k + 1 :], solution, strict=True):
            side = side - coefficient * x
        solution.insert(0, side / coefficients[k])
    return solution


def _element(m: Any, elements: Sequence[Any], position: Any) -> Any:
    """The element at ``position``."""
    result = elements[0]
    for i, element in enumerate(elements[1:], 1):
        result = m.where(m.equal(position, float(i)), element, result)
    return result


def _solution(m: Any, *inputs: Any, size: int) -> Any:
    """``inputs`` are the elements of the matrix, the rows of the right-hand sides, and the row's position."""
    *elements, row = inputs
    sides = elements[size * size :]
    return _element(m, _solve(m, [[*x, y] for x, y in zip(_rows(elements, size), sides, strict=True)]), row)


def _inverse(m: Any, *inputs: Any, size: int) -> Any:
    """``inputs`` are the elements of the matrix, and the positions of the row and the column."""
    *elements, row, column = inputs
    identity = [m.cast(m.equal(column, float(i)), m.dtype(column)) for i in range(size)]
    return _solution(m, *elements, *identity, row, size=size)


def _cholesky(m: Any, *inputs: Any, size: int) -> Any:
    """``inputs`` are as for the inverse; elements above the diagonal are not read."""
    *elements, row, column = inputs
    rows = _rows(elements, size)
    for j in range(size):
        for i in range(j, size):
            for k in range(j):
                rows[i][j] = rows[i][j] - rows[i][k] * rows[j][k]
            if i == j:
                m.check((rows[j][j] > 0.0) | m.isnan(rows[j][j]), _NOT_POSITIVE)
                rows[j][j] = m.sqrt(rows[j][j])
            else:
                rows[i][j] = rows[i][j] / rows[j][j]
                rows[j][i] = m.constant(0.0, m.dtype(row))
    return _element(m, [_element(m, x, column) for x in rows], row)


def _determinant(m: Any, *elements: Any, size: int) -> Any:
    rows = _rows(elements, size)
    sign = _eliminate(m, rows)
    return prod([row[k] for k, row in enumerate(rows)], start=sign)


SMALL_SOLUTION: Final = _op("small_solution", "``x`` in ``a @ x = b``.", _solution, InvalidArgumentError)
SMALL_INVERSE: Final = _op("small_inverse", "The inverse.", _inverse, InvalidArgumentError)
SMALL_CHOLESKY: Final = _op("small_cholesky", "Cholesky's factor.", _cholesky, InvalidArgumentError)
SMALL_DETERMINANT: Final = _op("small_determinant", "The determinant.", _determinant, None)


# Lowerings of LAPACK's ops: attributes of their kinds


def lower_inverse(add: AddNode, a: Any) -> Any:
    """The inverse of a small matrix; None for others."""
    return _lower_square(SMALL_INVERSE, add, a)


def lower_cholesky(add: AddNode, a: Any) -> Any:
    """The Cholesky factor of a small matrix; None for others."""
    return _lower_square(SMALL_CHOLESKY, add, a)


def lower_solve(add: AddNode, a: Any, b: Any) -> Any:
    """The solution for a small matrix; None for others."""
    if not _are_small(a, b):
        return None
    size, dtype = a.spec.shape[0], a.spec.dtype
    rows, _ = _positions(add, size)
    a, b = _in_double(add, a), _in_double(add, b)
    sides = [add(GETITEM, (b,), {"key": ((i, i + 1, 1),)}) for i in range(size)]
    return _cast(add, add(SMALL_SOLUTION, [*_elements(add, a), *sides, rows], {"size": size}), dtype)


def lower_determinant(add: AddNode, a: Any, log: bool) -> Any:
    """The determinant of a small matrix; None for others, and for its logarithm."""
    if log or not _are_small(a):
        return None
    x, positions = _in_double(add, a), range(a.spec.shape[0])
    elements = [add(GETITEM, (x,), {"key": (i, j)}) for i in positions for j in positions]
    return _cast(add, add(SMALL_DETERMINANT, elements, {"size": len(positions)}), a.spec.dtype)


def _lower_square(op: Op, add: AddNode, a: Any) -> Any:
    if not _are_small(a):
        return None
    size = a.spec.shape[0]
    inputs = [*_elements(add, _in_double(add, a)), *_positions(add, size)]
    return _cast(add, add(op, inputs, {"size": size}), a.spec.dtype)


def _are_small(a: Any, *sides: Any) -> bool:
    """Whether the operands are single real matrices, and the first has 1 to :data:`MAX_SIZE` rows.

    Of a batch, LAPACK's error names the matrix that does not fit.
    """
    return all(len(x.spec.shape) == 2 and x.spec.dtype.char in "fd" for x in (a, *sides)) and all(
        type(n) is int and 0 < n <= MAX_SIZE for n in a.spec.shape
    )


def _elements(add: AddNode, x: Any) -> list[Any]:
    """The elements of a square matrix, row by row, as matrices of one row and column."""
    slices = [(i, i + 1, 1) for i in range(x.spec.shape[0])]
    return [add(GETITEM, (x,), {"key": (row, column)}) for row in slices for column in slices]


def _positions(add: AddNode, size: int) -> list[Any]:
    """The positions of the rows and of the columns of a square matrix."""
    shapes = Shape([size, 1]), Shape([size])
    return [add(IOTA, (), {"shape": shape, "axis": 0, "dtype": float64}) for shape in shapes]


def _in_double(add: AddNode, x: Any) -> Any:
    return _cast(add, x, float64)


def _cast(add: AddNode, x: Any, dtype: DType) -> Any:
    return x if x.spec.dtype is dtype else add(CAST, (x,), {"dtype": dtype})
