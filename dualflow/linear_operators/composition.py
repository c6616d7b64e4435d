"""Products of operators, which are applied one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, mul
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.tracebacks import entry
from dualflow.function.debugging.assertions import all_checks
from dualflow.linear_operators.adjoint_and_inverse import LinearOperatorAdjoint
from dualflow.linear_operators.dense import LinearOperatorLowerTriangular
from dualflow.linear_operators.operator_sequence import OperatorSequence
from dualflow.linear_operators.parameters import common_batch, common_batch_tensor, shape_vector
from dualflow.linear_operators.property_hints import Hints, all_have, documented_hints
from dualflow.ops.arithmetic import sign
from dualflow.ops.arrangement import expand_dims


@documented_hints
@entry
class LinearOperatorComposition(OperatorSequence):
    """The product of operators: the last of them is applied first.

    Args:
        operators: the factors, a list of operators of one dtype.

    Raises:
        InvalidArgumentError: there is no operator, or their sizes don't fit; or a hint contradicts what
            follows from theirs.
        DTypeError: the dtypes differ, or a factor is no operator.

    >>> import dualflow as df
    >>> a = df.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    >>> b = df.linalg.LinearOperatorDiag([1.0, 10.0])
    >>> df.linalg.LinearOperatorComposition([a, b]).matvec([1.0, 1.0]).numpy().tolist()
    [21.0, 43.0]
    """

    _described = "a composition"
    _separator = "_o_"

    def _implied_hints(self, stated: Hints) -> Hints:
        hints, operators = stated, self._operators
        if all_have(operators, "is_non_singular"):
            reason = "The composition of non-singular operators is always non-singular."
            hints = hints.implying("is_non_singular", True, reason)
        if len(operators) == 1 and operators[0].is_self_adjoint:
            hints = hints.implying("is_self_adjoint", True, "The only factor is self-adjoint.")
        if not is_gram_product(operators):
            return hints
        reason = "The composition has the form A @ A.H, which is always square and self-adjoint."
        hints = hints.implying("is_self_adjoint", True, reason).implying("is_square", True, reason)
        if hints.is_non_singular:
            reason = "The composition is non-singular and of the form A @ A.H, hence positive definite."
            hints = hints.implying("is_positive_definite", True, reason)
        return hints

    def _shape(self) -> Shape:
        for left, right in zip(self._operators, self._operators[1:], strict=False):
            columns, rows = left.domain_dimension, right.range_dimension
            if columns is not None and rows is not None and columns != rows:
                raise InvalidArgumentError(
                    f"Operators are incompatible: {left.name} has {columns} columns, but {right.name} has "
                    f"{rows} rows."
                )
        sizes = self._operators[0].range_dimension, self._operators[-1].domain_dimension
        return Shape((*common_batch(self._operators), *sizes))

    def _shape_tensor(self) -> Any:
        rows = self._operators[0].range_dimension_tensor()
        columns = self._operators[-1].domain_dimension_tensor()
        return shape_vector(common_batch_tensor(self._operators), rows, columns)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        first, *others = self._operators if adjoint else reversed(self._operators)
        result = first.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for operator in others:
            result = operator.matmul(result, adjoint=adjoint)
        return result

    def _has_square_factors(self) -> bool:
        """Whether all factors are square, or may be: a product of rectangular ones can be square too."""
        return all(operator.is_square is not False for operator in self._operators)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        if not self._has_square_factors():
            return super()._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        first, *others = reversed(self._operators) if adjoint else self._operators
        result = first.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for operator in others:
            result = operator.solve(result, adjoint=adjoint)
        return result

    def _determinant(self) -> Any:
        if not self._has_square_factors():
            return super()._determinant()
        return reduce(mul, [operator.determinant() for operator in self._operators])

    def _log_abs_determinant(self) -> Any:
        if not self._has_square_factors():
            return super()._log_abs_determinant()
        return reduce(add, [operator.log_abs_determinant() for operator in self._operators])

    def _assert_non_singular(self) -> Any:
        if not self._has_square_factors():
            return super()._assert_non_singular()
        return all_checks([operator.assert_non_singular() for operator in self._operators])

    def _linop_cholesky(self) -> Any:
        factor = self._operators[0]
        if len(self._operators) != 2 or not is_gram_product(self._operators):
            return super()._linop_cholesky()
        if not isinstance(factor, LinearOperatorLowerTriangular):
            return super()._linop_cholesky()
        if factor.is_positive_definite and not factor.dtype.is_complex:  # else the diagonal may be complex
            return factor
        # D = diag(1 / signs) is unitary: L D has a positive diagonal, and (L D) (L D)^H = L L^H.
        signs = expand_dims(sign(factor.diag_part()), -2)
        return LinearOperatorLowerTriangular(
            factor.tril / signs,
            is_non_singular=factor.is_non_singular,
            is_self_adjoint=factor.is_self_adjoint,
            is_square=True,
        )


def is_gram_product(operators: Sequence[Any]) -> bool:
    """Whether a product is of the form ``A @ B @ B.H @ A.H``, by the identity of its operators."""
    pairs = zip(operators[: len(operators) // 2], reversed(operators), strict=False)
    return len(operators) % 2 == 0 and all(_are_adjoint(left, right) for left, right in pairs)


def _are_adjoint(a: Any, b: Any) -> bool:
    if a is b:
        return bool(a.is_self_adjoint)
    return any(isinstance(x, LinearOperatorAdjoint) and x.operator is y for x, y in ((a, b), (b, a)))
