"""The QR decomposition of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.complex_numbers import conj
from dualflow.ops.contraction import matmul
from dualflow.ops.creation import zeros_like
from dualflow.ops.joining import concat
from dualflow.ops.linear_algebra.diagonals import lower_half
from dualflow.ops.linear_algebra.factors import lapack_qr
from dualflow.ops.linear_algebra.matrices import matrices, require_matrices
from dualflow.ops.linear_algebra.triangular import triangular_solve
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.tensor_sizes import axis_size
from dualflow.sizes.size_functions import smallest

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _infer(x: TensorSpec, full_matrices: bool, only_r: bool = False) -> tuple[TensorSpec, ...]:
    batch, rows, columns = matrices(x)
    inner = rows if full_matrices else None if rows is None or columns is None else smallest(rows, columns)
    r = TensorSpec.of(Shape([*batch, inner, columns]), x.dtype)
    return (r,) if only_r else (TensorSpec.of(Shape([*batch, rows, inner]), x.dtype), r)


def _kernel(x: Any, full_matrices: bool, only_r: bool = False) -> tuple[Any, ...]:
    require_matrices(x)
    return lapack_qr(x, full_matrices, only_r)


def _joint_vjp(needed: Any, g: Any, out: Any, x: Any, full_matrices: bool) -> tuple[Any, ...]:
    """The vjp; Roberts and Roberts, "QR and LQ decomposition matrix backpropagation algorithms" (2020)."""
    q, r = out
    g_q, g_r = (zeros_like(y) if c is None else conj(c) for c, y in zip(g, out, strict=True))
    inner, columns = q.shape[-1], r.shape[-1]
    if inner is not None and columns is not None and inner > columns:
        raise InvalidArgumentError(
            f"qr has no gradient with full_matrices=True for more rows than columns (shape {x.shape}), since "
            "any basis serves for the other columns of q; use full_matrices=False."
        )
    if inner is not None and inner == columns:
        return (conj(_of_tall(q, r, g_q, g_r)),)
    side = axis_size(q, -1)
    beside, g_beside = x[..., side:], g_r[..., side:]
    inside = _of_tall(q, r[..., :side], g_q + matmul(beside, g_beside, adjoint_b=True), g_r[..., :side])
    return (conj(concat([inside, matmul(q, g_beside)], -1)),)


def _of_tall(q: Any, r: Any, g_q: Any, g_r: Any) -> Any:
    """The gradient for matrices of no fewer rows than columns."""
    half = lower_half(matmul(r, g_r, adjoint_b=True) - matmul(g_q, q, adjoint_a=True))
    symmetric = half + matrix_transpose(half, conjugate=True)
    inner = g_q + matmul(q, symmetric)
    return matrix_transpose(
        triangular_solve(r, matrix_transpose(inner, conjugate=True), lower=False), conjugate=True
    )


def _partly(needed: Any, full_matrices: bool, only_r: bool = False) -> dict[str, Any] | None:
    return {"full_matrices": full_matrices, "only_r": True} if needed == (False, True) else None


QR = register(
    Op(
        name="qr",
        doc="""Orthonormal columns ``q`` and upper triangular ``r`` with ``q @ r = x``.""",
        infer=_infer,
        kernel=_kernel,
        kind=Opaque("LAPACK decomposes matrices"),
        batching_rule=LEADING,
        joint_vjp=_joint_vjp,
        outputs=None,
        prune_outputs=_partly,
        samples=(
            Sample(
                (Domain(shape=(4, 3), values=[[2, 1, 0.5], [-1, 3, 0.2], [0.3, 1, 2], [1, -2, 1]]),),
                {"full_matrices": False},
            ),
            Sample((Domain(shape=(1, 2, 3), values=[[[2, 0.5, 1], [-1, 3, 0.7]]]),), {"full_matrices": True}),
        ),
    )
)


class Qr(NamedTuple):
    """The result of :func:`qr`: ``q`` and ``r``."""

    q: Tensor
    r: Tensor


def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> Qr:
    """Matrices ``q`` with orthonormal columns and upper triangular ``r`` with ``q @ r = input``.

    Args:
        input: of shape ``(..., m, n)``, in float32, float64, complex64 or complex128.
        full_matrices: whether ``q`` is square.

    Returns:
        A named tuple: ``q`` and ``r`` with the dtype of ``input``, of shapes ``(..., m, p)`` and
        ``(..., p, n)``, where ``p`` is ``m`` with ``full_matrices``, and else the smaller of ``m`` and ``n``.
        Gradients need the first ``p`` columns to be independent.

    Raises:
        InvalidArgumentError: fewer than two axes; where a gradient is taken, more rows than columns with
            ``full_matrices``.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> q, r = df.linalg.qr([[0.0, 2.0], [3.0, 0.0]])
    >>> df.abs(df.matmul(q, r)).numpy().round(5).tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    return Qr(*dispatch.current().apply(QR, (input,), {"full_matrices": bool(full_matrices)}))
