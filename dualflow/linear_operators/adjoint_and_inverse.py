"""Adjoints and inverses of operators that have none of their own kind."""

from __future__ import annotations

from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.tracebacks import entry
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import shape_vector
from dualflow.linear_operators.property_hints import Hints, documented_hints
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.complex_numbers import conj


class _DerivedOperator(LinearOperator):
    """The base of the adjoint and the inverse of another operator, whose hints they share."""

    _operator: Any

    def _set_up(self, operator: Any, stated: Hints, kind: str, name: str) -> None:
        """Store the operator, and combine the hints with its own."""
        self._operator = operator
        hints = stated.shared_with(operator, kind)
        parameters = {"operator": operator, **stated._asdict(), "name": name}
        super().__init__(operator.dtype, **hints._asdict(), name=name, parameters=parameters)

    @property
    def operator(self) -> LinearOperator:
        """The other operator."""
        operator: LinearOperator = self._operator
        return operator

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return ("operator",)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"operator": 0}

    def _cond(self) -> Any:
        return self._operator.cond()

    def _assert_non_singular(self) -> Any:
        return self._operator.assert_non_singular()

    def _assert_positive_definite(self) -> Any:
        return self._operator.assert_positive_definite()

    def _assert_self_adjoint(self) -> Any:
        return self._operator.assert_self_adjoint()


@documented_hints
@entry
class LinearOperatorAdjoint(_DerivedOperator):
    """The conjugate transposes of the matrices of another operator.

    Args:
        operator: the other operator, whose hints this one shares.

    Raises:
        InvalidArgumentError: a hint contradicts those of ``operator``.

    >>> import dualflow as df
    >>> a = df.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    >>> df.linalg.LinearOperatorAdjoint(a).to_dense().numpy().tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """

    @entry
    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._set_up(operator, stated, "adjoint", name or f"{operator.name}_adjoint")

    def _linop_adjoint(self) -> Any:
        return self._operator

    def _shape(self) -> Shape:
        *batch, rows, columns = self._operator.shape
        return Shape((*batch, columns, rows))

    def _shape_tensor(self) -> Any:
        shape = self._operator.shape_tensor()
        return shape_vector(shape[:-2], shape[-1], shape[-2])

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return self._operator.matvec(x, adjoint=not adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return self._operator.solvevec(rhs, adjoint=not adjoint)

    def _determinant(self) -> Any:
        return conj(self._operator.determinant())

    def _log_abs_determinant(self) -> Any:
        return self._operator.log_abs_determinant()

    def _trace(self) -> Any:
        return conj(self._operator.trace())

    def _diag_part(self) -> Any:
        return conj(self._operator.diag_part())

    def _to_dense(self) -> Any:
        return matrix_transpose(self._operator.to_dense(), conjugate=True)

    def _eigvals(self) -> Any:
        return conj(self._operator.eigvals())


@documented_hints
@entry
class LinearOperatorInversion(_DerivedOperator):
    """The inverses of the matrices of another operator: ``matmul`` solves with it, and ``solve`` multiplies.

    Args:
        operator: the other operator, whose hints this one shares.

    Raises:
        InvalidArgumentError: ``operator`` is not invertible, or not square, by its hints or these; or a hint
            contradicts its.

    >>> import dualflow as df
    >>> a = df.linalg.LinearOperatorFullMatrix([[2.0, 0.0], [0.0, 4.0]], is_non_singular=True)
    >>> df.linalg.LinearOperatorInversion(a).matvec([2.0, 4.0]).numpy().tolist()
    [1.0, 1.0]
    """

    @entry
    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        for hint in ("is_non_singular", "is_square"):
            if False in (getattr(operator, hint), getattr(stated, hint)):
                raise InvalidArgumentError(
                    f"The inverse of {operator.name} needs {hint}=True or None, but the hint is False; use "
                    "df.linalg.pinv of its to_dense()."
                )
        self._set_up(operator, stated, "inverse", name or f"{operator.name}_inv")

    def _linop_inverse(self) -> Any:
        return self._operator

    def _linop_solve(self, left_operator: Any, right_operator: Any) -> Any:
        return left_operator.operator.matmul(right_operator)

    def _shape(self) -> Shape:
        shape: Shape = self._operator.shape
        return shape

    def _shape_tensor(self) -> Any:
        return self._operator.shape_tensor()

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return 1 / self._operator.determinant()

    def _log_abs_determinant(self) -> Any:
        return -self._operator.log_abs_determinant()

    def _eigvals(self) -> Any:
        return 1 / self._operator.eigvals()
