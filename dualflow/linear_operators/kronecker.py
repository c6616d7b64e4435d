"""Kronecker products of operators."""

from __future__ import annotations

from functools import reduce
from math import prod
from operator import mul
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.tracebacks import entry
from dualflow.function.debugging.assertions import all_checks
from dualflow.linear_operators.operator_sequence import OperatorSequence
from dualflow.linear_operators.parameters import (
    common_batch,
    common_batch_tensor,
    dimension,
    shape_vector,
)
from dualflow.linear_operators.property_hints import Hints, all_have, documented_hints, hints_of
from dualflow.ops.arrangement import matrix_transpose, reshape
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import cast
from dualflow.ops.tensor_sizes import axis_sizes


@documented_hints
@entry
class LinearOperatorKronecker(OperatorSequence):
    """The Kronecker product of operators: each element of the first times the matrix of the others.

    Args:
        operators: the factors, a list of operators of one dtype.

    Raises:
        InvalidArgumentError: there is no operator; or a hint contradicts what follows from theirs.
        DTypeError: the dtypes differ, or a factor is no operator.

    >>> import dualflow as df
    >>> a = df.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    >>> b = df.linalg.LinearOperatorDiag([1.0, 10.0])
    >>> df.linalg.LinearOperatorKronecker([a, b]).to_dense().numpy()[0].tolist()
    [1.0, 0.0, 2.0, 0.0]
    """

    _described = "a Kronecker product"
    _separator = "_x_"

    def _implied_hints(self, stated: Hints) -> Hints:
        hints = stated
        for hint in ("is_non_singular", "is_self_adjoint", "is_positive_definite"):
            if all_have(self._operators, hint):
                hints = hints.implying(
                    hint, True, f"All factors of the Kronecker product have {hint}, hence it has."
                )
        return hints

    def _shape(self) -> Shape:
        rows = [operator.range_dimension for operator in self._operators]
        columns = [operator.domain_dimension for operator in self._operators]
        sizes = [None if None in side else prod(side) for side in (rows, columns)]
        return Shape((*common_batch(self._operators), *sizes))

    def _shape_tensor(self) -> Any:
        rows = reduce(mul, [operator.range_dimension_tensor() for operator in self._operators])
        columns = reduce(mul, [operator.domain_dimension_tensor() for operator in self._operators])
        return shape_vector(common_batch_tensor(self._operators), rows, columns)

    def _linop_adjoint(self) -> Any:
        return LinearOperatorKronecker([x.adjoint() for x in self._operators], **hints_of(self)._asdict())

    def _linop_inverse(self) -> Any:
        return LinearOperatorKronecker([x.inverse() for x in self._operators], **hints_of(self)._asdict())

    def _linop_cholesky(self) -> Any:
        factors = [operator.cholesky() for operator in self._operators]
        return LinearOperatorKronecker(factors, is_non_singular=True, is_square=True)

    def _applied(self, x: Any, method: str, adjoint: bool, adjoint_arg: bool) -> Any:
        """``matmul`` or ``solve`` of each factor along its own axis: ``(A x B) vec(X) = vec(A X B^T)``.

        The rows of ``x`` are axes, one for each factor, and its columns are the first axis. For two factors:
        ``[n, a, b]`` is reshaped to ``[n * a, b]``, B makes it ``[b', n * a]``; that is reshaped to
        ``[b' * n, a]``, and A makes it ``[a', b' * n]``: the rows of the result, then its columns.
        """
        result = conj(x) if adjoint_arg else matrix_transpose(x)
        width = axis_sizes(result)[-2]
        for operator in reversed(self._operators):
            *batch, rows, elements = axis_sizes(result)
            size = dimension(operator, -2 if adjoint else -1)
            result = reshape(result, [*batch, _rows_for_reshape(rows * elements, size), size])
            result = getattr(operator, method)(conj(result), adjoint=adjoint, adjoint_arg=True)
        *batch, rows, elements = axis_sizes(result)
        return reshape(result, [*batch, _rows_for_reshape(rows * elements, width), width])

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._applied(x, "matmul", adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._applied(rhs, "solve", adjoint, adjoint_arg)

    def _exponents(self) -> list[Any]:
        """For each factor the number of rows of the others: ``det(A x B) = det(A) ** b * det(B) ** a``."""
        sizes = [dimension(operator, -1) for operator in self._operators]
        return [cast(prod([*sizes[:i], *sizes[i + 1 :]]), self.dtype) for i in range(len(sizes))]

    def _determinant(self) -> Any:
        pairs = zip(self._operators, self._exponents(), strict=True)
        return reduce(mul, [operator.determinant() ** exponent for operator, exponent in pairs])

    def _log_abs_determinant(self) -> Any:
        pairs = zip(self._operators, self._exponents(), strict=True)
        logarithms = [(operator.log_abs_determinant(), exponent) for operator, exponent in pairs]
        return sum(logarithm * cast(exponent, logarithm.dtype) for logarithm, exponent in logarithms)

    def _trace(self) -> Any:
        if not all_have(self._operators, "is_square"):
            return super()._trace()
        return reduce(mul, [operator.trace() for operator in self._operators])

    def _diag_part(self) -> Any:
        if not all_have(self._operators, "is_square"):
            return super()._diag_part()
        return reduce(_outer_vector, [operator.diag_part() for operator in self._operators])

    def _to_dense(self) -> Any:
        return reduce(_outer_matrix, [operator.to_dense() for operator in self._operators])

    def _eigvals(self) -> Any:
        if not all_have(self._operators, "is_self_adjoint"):
            return super()._eigvals()
        return reduce(_outer_vector, [operator.eigvals() for operator in self._operators])

    def _assert_of_factors(self, check: str) -> Any:
        if not all_have(self._operators, "is_square"):
            raise InvalidArgumentError(
                f"{check}() of a Kronecker product needs square factors; give them the hint is_square=True."
            )
        return all_checks([getattr(operator, check)() for operator in self._operators])

    def _assert_non_singular(self) -> Any:
        return self._assert_of_factors("assert_non_singular")

    def _assert_self_adjoint(self) -> Any:
        return self._assert_of_factors("assert_self_adjoint")


def _outer_vector(a: Any, b: Any) -> Any:
    """The Kronecker products of vectors."""
    product = a[..., :, None] * b[..., None, :]
    *batch, rows, columns = axis_sizes(product)
    return reshape(product, [*batch, rows * columns])


def _outer_matrix(a: Any, b: Any) -> Any:
    """The Kronecker products of matrices."""
    product = a[..., :, None, :, None] * b[..., None, :, None, :]
    *batch, rows, inner_rows, columns, inner_columns = axis_sizes(product)
    return reshape(product, [*batch, rows * inner_rows, columns * inner_columns])


def _rows_for_reshape(elements: Any, size: Any) -> Any:
    """The number of rows of ``size`` elements; -1, which reshape computes, if a number is dynamic."""
    if isinstance(elements, int) and isinstance(size, int):
        return elements // size if size else 0
    return -1
