"""Systems of linear equations with square matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.contraction import matmul
from dualflow.ops.linear_algebra.eliminations import lapack_solve
from dualflow.ops.linear_algebra.matrices import (
    first_singular,
    not_invertible,
    require_matrices,
    require_solution_shapes,
    solution,
)
from dualflow.ops.linear_algebra.small_matrices import lower_solve
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, Promotion, promote_together, register
from dualflow.ops.samples import Domain, Sample

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _kernel(a: Any, b: Any) -> Any:
    require_matrices(a, b)
    try:
        return lapack_solve(a, b)
    except np.linalg.LinAlgError:
        raise not_invertible(first_singular(a)) from None


def _joint_vjp(needed: Any, g: Any, out: Any, a: Any, b: Any) -> tuple[Any, ...]:
    g_b = dispatch.current().apply(SOLVE, (matrix_transpose(a), g), {})
    return (-matmul(g_b, out, transpose_b=True) if needed[0] else None), g_b


_MATRIX = [[4.0, 1.0, -0.5], [0.3, -3.0, 0.7], [1.2, 0.4, 2.0]]

SOLVE = register(
    Op(
        name="solve",
        doc="""``x`` in ``a @ x = b``, of square matrices ``a``.""",
        infer=solution,
        kernel=_kernel,
        kind=Opaque("LAPACK solves systems of equations", lowering=lower_solve),
        required_shapes=require_solution_shapes,
        batching_rule=LEADING,
        joint_vjp=_joint_vjp,
        promotion=Promotion.TOGETHER,
        samples=(
            Sample((Domain(shape=(3, 3), values=_MATRIX), Domain(-3, 3, "f", (3, 2)))),
            Sample((Domain(shape=(3, 3), values=_MATRIX), Domain(-3, 3, "f", (2, 3, 1)))),
            Sample((Domain(shape=(0, 0)), Domain(shape=(0, 2)))),
        ),
    )
)


def solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The ``x`` with ``matrix @ x = rhs``, by elimination with row exchanges (LAPACK's ``gesv``).

    Args:
        matrix: square matrices of shape ``(..., n, n)``, in float32, float64, complex64 or complex128.
        rhs: of shape ``(..., n, k)``; the leading axes broadcast.
        adjoint: whether to solve with the conjugate transpose of ``matrix``.

    Returns:
        A tensor of shape ``(..., n, k)`` with the common dtype.

    Raises:
        InvalidArgumentError: a matrix is not invertible, or shapes that do not fit.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [2.0]]).numpy().tolist()
    [[1.0], [0.5]]
    """
    a, b = promote_together(matrix, rhs)
    return dispatch.current().apply(SOLVE, (matrix_transpose(a, conjugate=True) if adjoint else a, b), {})
