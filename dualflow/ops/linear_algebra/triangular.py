"""Systems of linear equations with triangular matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.contraction import matmul
from dualflow.ops.linear_algebra.diagonals import band_part
from dualflow.ops.linear_algebra.matrices import require_matrices, require_solution_shapes, solution
from dualflow.ops.linear_algebra.triangular_blas import solve
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, Promotion, promote_together, register
from dualflow.ops.samples import Domain, Sample

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _infer(a: TensorSpec, b: TensorSpec, lower: bool) -> TensorSpec:
    return solution(a, b)


def _kernel(a: Any, b: Any, lower: bool) -> Any:
    require_matrices(a, b)
    size, columns = b.shape[-2:]
    if a.shape[-2:] != (size, size):
        raise ValueError("the shapes do not fit")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if a.ndim == b.ndim == 2:
        return solve(a, b, lower)
    if a.ndim == 2:  # the columns of all right-hand sides at once
        columns_first = np.moveaxis(b, -2, 0)
        solution = solve(a, columns_first.reshape(size, int(np.prod(columns_first.shape[1:]))), lower)
        return np.moveaxis(solution.reshape(columns_first.shape), 0, -2)
    if np.prod(batch) > size:
        return _row_by_row(a, b, lower, (*batch, size, columns))
    matrices = np.broadcast_to(a, (*batch, size, size))
    sides = np.broadcast_to(b, (*batch, size, columns))
    out = np.empty(sides.shape, b.dtype)
    for at in np.ndindex(*batch):
        out[at] = solve(matrices[at], sides[at], lower)
    return out


def _row_by_row(a: Any, b: Any, lower: bool, shape: tuple[int, ...]) -> Any:
    """The solutions of many small systems, computed together row by row."""
    out = np.empty(shape, b.dtype)
    size = shape[-2]
    for i in range(size) if lower else range(size - 1, -1, -1):
        solved = slice(0, i) if lower else slice(i + 1, None)
        row = b[..., i, :] - np.matmul(a[..., i : i + 1, solved], out[..., solved, :])[..., 0, :]
        out[..., i, :] = row / a[..., i, i, None]
    return out


def _joint_vjp(needed: Any, g: Any, out: Any, a: Any, b: Any, lower: bool) -> tuple[Any, ...]:
    g_b = dispatch.current().apply(TRIANGULAR_SOLVE, (matrix_transpose(a), g), {"lower": not lower})
    if not needed[0]:
        return None, g_b
    used = (-1, 0) if lower else (0, -1)
    return -band_part(matmul(g_b, out, transpose_b=True), *used), g_b


_LOWER = [[2.0, 9.0, 9.0], [0.5, -3.0, 9.0], [1.2, 0.4, 1.5]]

TRIANGULAR_SOLVE = register(
    Op(
        name="triangular_solve",
        doc="""``x`` in ``a @ x = b``, of matrices ``a`` of which only one triangle is read.""",
        infer=_infer,
        kernel=_kernel,
        kind=Opaque("BLAS solves systems of equations"),
        required_shapes=require_solution_shapes,
        batching_rule=LEADING,
        joint_vjp=_joint_vjp,
        promotion=Promotion.TOGETHER,
        samples=(
            Sample((Domain(shape=(3, 3), values=_LOWER), Domain(-3, 3, "f", (3, 2))), {"lower": True}),
            Sample(
                (Domain(shape=(2, 2), values=[[2.0, 0.3], [9.0, -1.5]]), Domain(-3, 3, "f", (3, 2, 1))),
                {"lower": False},
            ),
            Sample((Domain(1, 2, shape=(2, 3, 3)), Domain(-3, 3, "f", (3, 2))), {"lower": False}),
            Sample((Domain(shape=(2, 2)), Domain(shape=(2, 0))), {"lower": True}),
        ),
    )
)


def triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The ``x`` with ``matrix @ x = rhs``, where ``matrix`` is triangular (BLAS's ``trsm``).

    Args:
        matrix: square matrices of shape ``(..., n, n)``, in float32, float64, complex64 or complex128.
        rhs: of shape ``(..., n, k)``; the leading axes broadcast.
        lower: whether ``matrix`` is lower triangular, or upper; its other triangle is not read.
        adjoint: whether to solve with the conjugate transpose of ``matrix``.

    Returns:
        A tensor of shape ``(..., n, k)`` with the common dtype; inf and nan where the diagonal has a 0.

    Raises:
        InvalidArgumentError: shapes that do not fit.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.triangular_solve([[2.0, 0.0], [1.0, 4.0]], [[2.0], [5.0]]).numpy().tolist()
    [[1.0], [1.0]]
    """
    a, b = promote_together(matrix, rhs)
    if adjoint:
        a = matrix_transpose(a, conjugate=True)
    return dispatch.current().apply(TRIANGULAR_SOLVE, (a, b), {"lower": bool(lower) != bool(adjoint)})
