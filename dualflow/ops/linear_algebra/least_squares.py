"""Least squares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.linear_algebra.cholesky import cholesky, cholesky_solve
from dualflow.ops.linear_algebra.singular_values import above, svd
from dualflow.ops.positions import eye
from dualflow.ops.record import promote_together

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def lstsq(
    matrix: TensorLike,
    rhs: TensorLike,
    l2_regularizer: TensorLike = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """The ``x`` that minimises the sum of squares of ``matrix @ x - rhs``.

    Args:
        matrix: of shape ``(..., m, n)``, in float32, float64, complex64 or complex128.
        rhs: of shape ``(..., m, k)``; the leading axes broadcast.
        l2_regularizer: the weight of the sum of squares of ``x``, which is added.
        fast: whether to solve the normal equations by their Cholesky factor, which squares the condition
            number of ``matrix``; else by singular values, where ``l2_regularizer`` is ignored.

    Returns:
        A tensor of shape ``(..., n, k)`` with the common dtype; of several solutions, the smallest.

    Raises:
        InvalidArgumentError: shapes don't fit, or with ``fast`` the matrix doesn't have full rank.
        DTypeError: an argument has another dtype.

    >>> import dualflow as df
    >>> x, y = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [[1.0], [3.0], [5.0]]
    >>> df.linalg.lstsq(x, y).numpy().round(4).tolist()
    [[1.0], [2.0]]
    """
    a, b = promote_together(matrix, rhs)
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise InvalidArgumentError(
            f"lstsq takes matrices, but the shapes are {a.shape} and {b.shape}; give them two axes or more."
        )
    rows, columns = a.shape[-2:]
    if not fast or rows is None or columns is None:
        return _solve_by_svd(a, b, l2_regularizer if fast else 0.0)
    if rows >= columns:
        return cholesky_solve(_gram_factor(a, True, l2_regularizer), matmul(a, b, adjoint_a=True))
    return matmul(a, cholesky_solve(_gram_factor(a, False, l2_regularizer), b), adjoint_a=True)


def _gram_factor(a: Any, of_columns: bool, weight: Any) -> Any:
    """The Cholesky factor of the Gram matrix of the columns of ``a``, or of its rows."""
    gram = matmul(a, a, adjoint_a=of_columns, adjoint_b=not of_columns)
    if not (isinstance(weight, int | float) and weight == 0):
        gram = gram + cast(weight, a.dtype) * eye(gram.shape[-1], dtype=a.dtype)
    return cholesky(gram)


def _solve_by_svd(a: Any, b: Any, weight: Any) -> Any:
    s, u, v = svd(a)
    plain = isinstance(weight, int | float) and weight == 0
    inverse = 1.0 / above(s, a) if plain else s / (s * s + cast(weight, s.dtype))
    return matmul(v, cast(expand_dims(inverse, -1), a.dtype) * matmul(u, b, adjoint_a=True))
