"""The Cholesky factor of positive definite matrices, and solutions and inverses by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.complex_numbers import conj, real
from dualflow.ops.contraction import matmul
from dualflow.ops.linear_algebra.diagonals import diag_part, lower_half
from dualflow.ops.linear_algebra.factors import lapack_cholesky
from dualflow.ops.linear_algebra.matrices import (
    not_positive_definite,
    require_square_shapes,
    require_squares,
    same_squares,
)
from dualflow.ops.linear_algebra.small_matrices import lower_cholesky
from dualflow.ops.linear_algebra.triangular import triangular_solve
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.powers import log
from dualflow.ops.record import Op, promote_together, register
from dualflow.ops.samples import Domain, Sample

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _kernel(x: Any) -> Any:
    require_squares(x)
    try:
        return lapack_cholesky(x)
    except np.linalg.LinAlgError:
        raise not_positive(x) from None


def not_positive(x: Any) -> InvalidArgumentError:
    """The error for matrices that are not all positive definite; it names the first of a batch."""
    if x.ndim <= 2:
        return not_positive_definite([])
    smallest = np.linalg.eigvalsh(np.where(np.isfinite(x), x, -1)).min(-1)
    first = np.unravel_index(np.argmax(smallest <= max(smallest.min(), 0)), smallest.shape)
    return not_positive_definite([int(i) for i in first])


def _vjp(g: Any, out: Any, x: Any) -> Any:
    """The vjp, a symmetric matrix; Murray, "Differentiation of the Cholesky decomposition" (2016)."""
    inner = lower_half(matmul(out, conj(g), adjoint_a=True))
    left = triangular_solve(out, inner, adjoint=True)
    both = triangular_solve(out, matrix_transpose(left, conjugate=True), adjoint=True)
    return conj(both + matrix_transpose(both, conjugate=True)) * 0.5


_MATRIX = [[4.0, 1.0, 0.5], [1.0, 3.0, 0.7], [0.5, 0.7, 2.0]]

CHOLESKY = register(
    Op(
        name="cholesky",
        doc="""The lower triangular ``l`` with ``l @ adjoint(l) = x``, of positive definite matrices.""",
        infer=same_squares,
        kernel=_kernel,
        kind=Opaque("LAPACK factors matrices", lowering=lower_cholesky),
        required_shapes=require_square_shapes,
        batching_rule=LEADING,
        vjp=(_vjp,),
        samples=(
            Sample((Domain(shape=(3, 3), values=_MATRIX, symmetric=True),)),
            Sample(
                (
                    Domain(
                        shape=(2, 2, 2), values=[[[2, 0.5], [0.5, 1]], [[1, 0.1], [0.1, 3]]], symmetric=True
                    ),
                )
            ),
            Sample((Domain(shape=(2, 0, 0)),)),
        ),
    )
)


def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """The lower triangular matrices ``l`` with ``l @ adjoint(l) = input``.

    Args:
        input: symmetric (or Hermitian) positive definite matrices, of shape ``(..., n, n)``, in float32,
            float64, complex64 or complex128; only their lower triangles are read.

    Returns:
        A tensor with the shape and dtype of ``input``. Gradients are symmetric: those along symmetric
        changes.

    Raises:
        InvalidArgumentError: a matrix is not positive definite, or not square.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.cholesky([[4.0, 2.0], [2.0, 10.0]]).numpy().tolist()
    [[2.0, 0.0], [1.0, 3.0]]
    """
    return dispatch.current().apply(CHOLESKY, (input,), {})


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """The ``x`` with ``a @ x = rhs``, where ``chol`` is the Cholesky factor of ``a``.

    Args:
        chol: as :func:`cholesky` returns it, of shape ``(..., n, n)``; its upper triangle is not read.
        rhs: of shape ``(..., n, k)``; the leading axes broadcast.

    Returns:
        A tensor of shape ``(..., n, k)`` with the common dtype.

    Raises:
        InvalidArgumentError: shapes that do not fit.
        DTypeError: another dtype than float32, float64, complex64 and complex128.

    >>> import dualflow as df
    >>> df.linalg.cholesky_solve([[2.0, 0.0], [0.0, 4.0]], [[4.0], [16.0]]).numpy().tolist()
    [[1.0], [1.0]]
    """
    factor, side = promote_together(chol, rhs)
    return triangular_solve(factor, triangular_solve(factor, side), adjoint=True)


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of positive definite matrices, which does not overflow.

    Args:
        matrix: as :func:`cholesky` takes it.

    Returns:
        A tensor of shape ``(...)`` with the dtype of ``matrix``; that of the parts for complex matrices.

    Raises:
        InvalidArgumentError: a matrix is not positive definite, or not square.
        DTypeError: another dtype than float32, float64, complex64 and complex128.

    >>> import dualflow as df
    >>> float(df.linalg.logdet([[1.0, 0.0], [0.0, 1.0]]))
    0.0
    """
    factor = dispatch.current().apply(CHOLESKY, (matrix,), {})
    return reduce_sum(log(real(diag_part(factor))), -1) * 2
