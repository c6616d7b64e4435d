"""The LU decomposition of square matrices, and solutions and inverses by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import expand_dims, matrix_transpose
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like
from dualflow.ops.linear_algebra.diagonals import (
    band_part,
    diag_part,
    places,
    set_diag,
    strictly_lower,
)
from dualflow.ops.linear_algebra.eliminations import lapack_lu
from dualflow.ops.linear_algebra.matrices import (
    not_invertible,
    require_square_shapes,
    require_squares,
    squares,
)
from dualflow.ops.linear_algebra.triangular import triangular_solve
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.positions import eye
from dualflow.ops.record import Op, promote_together, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.sorting import argsort
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _infer(x: TensorSpec) -> tuple[TensorSpec, ...]:
    batch, size = squares(x)
    return x, TensorSpec.of(Shape([*batch, size]), int32)


def _kernel(x: Any) -> tuple[Any, ...]:
    require_squares(x)
    factors, perm = np.empty(x.shape, x.dtype), np.empty(x.shape[:-1], np.int32)
    for at in np.ndindex(*x.shape[:-2]) if x.size else ():
        factors[at], exchanged, failed = lapack_lu(x[at])
        if failed > 0:
            raise not_invertible(at)
        order = list(range(len(exchanged)))
        for i, j in enumerate(exchanged.tolist()):
            order[i], order[j] = order[j], order[i]
        perm[at] = order
    return factors, perm


def _joint_vjp(needed: Any, g: Any, out: Any, x: Any) -> tuple[Any, ...]:
    """The vjp of the LU decomposition.

    De Hoog et al., "Differentiation of matrix functionals using triangular factorization" (2011).
    """
    (factors, perm), (g_factors, _) = out, g
    if g_factors is None:
        return (None,)
    lower, upper = _unit_lower(factors), band_part(factors, 0, -1)
    inner = strictly_lower(matmul(lower, strictly_lower(g_factors), transpose_a=True)) + band_part(
        matmul(band_part(g_factors, 0, -1), upper, transpose_b=True), 0, -1
    )
    left = triangular_solve(matrix_transpose(lower), inner, lower=False)
    both = matrix_transpose(triangular_solve(upper, matrix_transpose(left), lower=False))
    return (_rows(both, argsort(perm)),)


_MATRIX = [[0.5, 1.0, -0.5], [3.0, -2.0, 0.7], [1.2, 0.4, 2.0]]

LU = register(
    Op(
        name="lu",
        doc="""The triangular factors of square matrices with rows exchanged, and the order of the rows.""",
        infer=_infer,
        kernel=_kernel,
        kind=Opaque("LAPACK factors matrices"),
        required_shapes=require_square_shapes,
        batching_rule=LEADING,
        joint_vjp=_joint_vjp,
        outputs=2,
        samples=(
            Sample((Domain(shape=(3, 3), values=_MATRIX),)),
            Sample((Domain(shape=(2, 2, 2), values=[[[2.0, 0.5], [-0.3, 1.5]], [[0.2, 3.0], [-1.0, 0.4]]]),)),
        ),
    )
)


def _rows(x: Any, order: Any) -> Any:
    """The rows of matrices in another order."""
    if x.shape.is_static:
        return gather(x, order, axis=-2, batch_dims=len(order.shape) - 1)
    # a product that picks rows has a gradient for any number of matrices
    _, column = places(1, axis_size(x, -2))
    return matmul(cast(equal(expand_dims(order, -1), column), x.dtype), x)


def _unit_lower(factors: Any) -> Any:
    return set_diag(band_part(factors, -1, 0), ones_like(diag_part(factors)))


class Lu(NamedTuple):
    """The result of :func:`lu`: both factors in one matrix, and the permutation of the rows."""

    lu: Tensor
    p: Tensor


def lu(input: TensorLike, output_idx_type: DTypeLike = int32, name: str | None = None) -> Lu:
    """Lower and upper triangular factors of square matrices with permuted rows (LAPACK's ``getrf``).

    Args:
        input: square matrices of shape ``(..., n, n)``, in float32, float64, complex64 or complex128.
        output_idx_type: the dtype of the permutation: int32 or int64.

    Returns:
        A named tuple: ``lu``, with the shape and dtype of ``input``: the upper factor, and below its diagonal
        the lower one, whose own diagonal is of ones; and ``p``, of shape ``(..., n)``: row ``i`` of the
        factors' product is row ``p[i]`` of ``input``.

    Raises:
        InvalidArgumentError: a matrix is not invertible, or not square.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> factors, order = df.linalg.lu([[0.0, 2.0], [4.0, 8.0]])
    >>> factors.numpy().tolist(), order.numpy().tolist()
    ([[4.0, 8.0], [0.0, 2.0]], [1, 0])
    """
    factors, order = dispatch.current().apply(LU, (input,), {})
    target = as_dtype(output_idx_type)
    return Lu(factors, order if target is int32 else cast(order, target))


def _factors(lower_upper: Any, perm: Any) -> tuple[Any, Any]:
    factors, order = convert_to_tensor(lower_upper), convert_to_tensor(perm)
    rank = len(factors.shape)
    if rank < 2 or rank != len(order.shape) + 1 or factors.shape[-2] != factors.shape[-1]:
        raise InvalidArgumentError(
            f"lower_upper is of square matrices and perm of their rows' numbers, but the shapes are "
            f"{factors.shape} and {order.shape}; give what df.linalg.lu returns."
        )
    return factors, order


def lu_solve(
    lower_upper: TensorLike,
    perm: TensorLike,
    rhs: TensorLike,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """The ``x`` with ``a @ x = rhs``, from the LU decomposition of ``a``.

    Args:
        lower_upper: the factors, of shape ``(..., n, n)``, as :func:`lu` returns them.
        perm: the permutation, of shape ``(..., n)``.
        rhs: of shape ``(..., n, k)``; the leading axes broadcast.
        validate_args: ignored: the arguments are always checked.

    Returns:
        A tensor of shape ``(..., n, k)`` with the common dtype of ``lower_upper`` and ``rhs``.

    Raises:
        InvalidArgumentError: shapes don't fit.

    >>> import dualflow as df
    >>> df.linalg.lu_solve(*df.linalg.lu([[0.0, 2.0], [4.0, 8.0]]), [[2.0], [12.0]]).numpy().tolist()
    [[1.0], [1.0]]
    """
    factors, order = _factors(lower_upper, perm)
    factors, rhs = promote_together(factors, rhs)
    if len(rhs.shape) < 2:
        raise InvalidArgumentError(
            f"rhs is of matrices, but the shape is {rhs.shape}; give it a second axis with df.expand_dims."
        )
    if order.shape[:-1] != rhs.shape[:-2]:  # adding zeros broadcasts symbolic sizes, too
        rhs = rhs + cast(zeros_like(expand_dims(order, -1)), rhs.dtype)
        order = order + cast(zeros_like(reduce_sum(rhs, -1)), order.dtype)
    below = triangular_solve(_unit_lower(factors), _rows(rhs, order))
    return triangular_solve(factors, below, lower=False)


def lu_matrix_inverse(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The inverse of matrices, from their LU decomposition.

    Args:
        lower_upper: the factors, of shape ``(..., n, n)``, as :func:`lu` returns them.
        perm: the permutation, of shape ``(..., n)``.
        validate_args: ignored: the arguments are always checked.

    Returns:
        A tensor with the shape and dtype of ``lower_upper``.

    Raises:
        InvalidArgumentError: shapes don't fit.

    >>> import dualflow as df
    >>> df.linalg.lu_matrix_inverse(*df.linalg.lu([[0.0, 2.0], [4.0, 0.0]])).numpy().tolist()
    [[0.0, 0.25], [0.5, 0.0]]
    """
    factors, order = _factors(lower_upper, perm)
    return lu_solve(factors, order, eye(axis_size(factors, -1), dtype=factors.dtype))


def lu_reconstruct(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The matrices with the given LU decomposition.

    Args:
        lower_upper: the factors, of shape ``(..., n, n)``, as :func:`lu` returns them.
        perm: the permutation, of shape ``(..., n)``.
        validate_args: ignored: the arguments are always checked.

    Returns:
        A tensor with the shape and dtype of ``lower_upper``.

    Raises:
        InvalidArgumentError: shapes don't fit.

    >>> import dualflow as df
    >>> df.linalg.lu_reconstruct(*df.linalg.lu([[0.0, 2.0], [4.0, 8.0]])).numpy().tolist()
    [[0.0, 2.0], [4.0, 8.0]]
    """
    factors, order = _factors(lower_upper, perm)
    return _rows(matmul(_unit_lower(factors), band_part(factors, 0, -1)), argsort(order))
