"""What functions of ``df.linalg`` compute of linear operators: a rule for each.

Names of ops are ignored, and so are ``a_is_sparse`` and ``b_is_sparse``, which change no result.
"""

from __future__ import annotations

from typing import Any

from dualflow.core.composite_rules import rule_for
from dualflow.core.errors import InvalidArgumentError
from dualflow.linear_operators.linear_operator_base import LinearOperatorBase
from dualflow.ops import contraction
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.linear_algebra import cholesky, diagonals, inverse, solving, vectors


@rule_for(LinearOperatorBase, vectors.adjoint)
def _adjoint(matrix: Any, name: str | None = None) -> Any:
    return matrix.adjoint()


@rule_for(LinearOperatorBase, cholesky.cholesky)
def _cholesky(input: Any, name: str | None = None) -> Any:
    return input.cholesky()


@rule_for(LinearOperatorBase, cholesky.logdet)
def _logdet(matrix: Any, name: str | None = None) -> Any:
    if not (matrix.is_positive_definite and matrix.is_self_adjoint):
        raise InvalidArgumentError(
            f"logdet takes operators that are self-adjoint and positive definite, which {matrix.name} is "
            "not by its hints; use its log_abs_determinant()."
        )
    return matrix.log_abs_determinant()


@rule_for(LinearOperatorBase, diagonals.diag_part)
def _diag_part(
    input: Any, name: str | None = None, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Any:
    if k != 0:
        raise InvalidArgumentError(
            f"diag_part takes the main diagonal of an operator only, not k={k}; use its to_dense()."
        )
    return input.diag_part()


@rule_for(LinearOperatorBase, diagonals.trace)
def _trace(x: Any, name: str | None = None) -> Any:
    return x.trace()


@rule_for(LinearOperatorBase, inverse.det)
def _det(input: Any, name: str | None = None) -> Any:
    return input.determinant()


@rule_for(LinearOperatorBase, inverse.inv)
def _inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Any:
    result = input.inverse()
    return result.adjoint() if adjoint else result


@rule_for(LinearOperatorBase, solving.solve)
def _solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Any:
    if not isinstance(matrix, LinearOperatorBase):
        raise InvalidArgumentError(
            "solve takes an operator as right-hand side only for a matrix that is an operator; make it one "
            "with df.linalg.LinearOperatorFullMatrix."
        )
    return matrix.solve(rhs, adjoint=adjoint)  # type: ignore[attr-defined]  # of its only subclass


@rule_for(LinearOperatorBase, contraction.matmul)
def _matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    name: str | None = None,
) -> Any:
    if transpose_a or transpose_b or output_type is not None:
        raise InvalidArgumentError(
            "matmul of operators takes adjoint_a and adjoint_b, not transposes or output_type; leave these "
            "out."
        )
    if isinstance(a, LinearOperatorBase):
        return a.matmul(b, adjoint=adjoint_a, adjoint_arg=adjoint_b)  # type: ignore[attr-defined]  # as above
    product = b.matmul(a, adjoint=not adjoint_b, adjoint_arg=not adjoint_a)  # (b^H a^H)^H = a b
    return matrix_transpose(product, conjugate=True)
