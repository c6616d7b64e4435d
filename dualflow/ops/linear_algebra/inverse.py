"""The inverse of square matrices, and their determinants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import expand_dims, matrix_transpose
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.complex_numbers import complex, imag
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.creation import zeros_like
from dualflow.ops.linear_algebra.eliminations import lapack_det, lapack_inv, lapack_slogdet
from dualflow.ops.linear_algebra.matrices import (
    first_singular,
    not_invertible,
    only,
    require_square_shapes,
    require_squares,
    same_squares,
    squares,
)
from dualflow.ops.linear_algebra.small_matrices import lower_determinant, lower_inverse
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_MATRIX = [[4.0, 1.0, -0.5], [0.3, -3.0, 0.7], [1.2, 0.4, 2.0]]
_SAMPLES = (
    Sample((Domain(shape=(3, 3), values=_MATRIX),)),
    Sample((Domain(shape=(2, 2, 2), values=[[[2.0, 0.5], [-0.3, 1.5]], [[0.2, 3.0], [-1.0, 0.4]]]),)),
    Sample((Domain(shape=(0, 2, 2)),)),
)


def _inv(x: Any) -> Any:
    require_squares(x)
    try:
        return lapack_inv(x)
    except np.linalg.LinAlgError:
        raise not_invertible(first_singular(x)) from None


def _inv_vjp(g: Any, out: Any, x: Any) -> Any:
    return -matmul(matmul(out, g, transpose_a=True), out, transpose_b=True)


INV = register(
    Op(
        name="inv",
        doc="""The inverse of square matrices.""",
        infer=same_squares,
        kernel=_inv,
        kind=Opaque("LAPACK inverts matrices", lowering=lower_inverse),
        required_shapes=require_square_shapes,
        batching_rule=LEADING,
        vjp=(_inv_vjp,),
        samples=_SAMPLES,
    )
)


def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of square matrices; :func:`solve` is faster and more precise than a product with it.

    Args:
        input: square matrices of shape ``(..., n, n)``, in float32, float64, complex64 or complex128.
        adjoint: whether to invert the conjugate transpose.

    Returns:
        A tensor with the shape and dtype of ``input``.

    Raises:
        InvalidArgumentError: a matrix is not invertible, or not square.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    inverse = dispatch.current().apply(INV, (input,), {})
    return matrix_transpose(inverse, conjugate=True) if adjoint else inverse


def _determinant_infer(x: TensorSpec, log: bool) -> tuple[TensorSpec, ...]:
    batch, _ = squares(x)
    spec = TensorSpec.of(batch, x.dtype)
    return (TensorSpec.of(batch, x.dtype.real), spec) if log else (spec,)


def _determinant(x: Any, log: bool) -> tuple[Any, ...]:
    require_squares(x)
    if not log:
        return (lapack_det(x),)
    sign, logarithm = lapack_slogdet(x)
    return logarithm, sign


def _determinant_joint_vjp(needed: Any, g: Any, out: Any, x: Any, log: bool) -> tuple[Any, ...]:
    """The vjp by Jacobi's formula: the logarithm changes by the trace of ``inv(x) @ dx``."""
    if not log:
        g_log = g * out
    else:
        (logarithm, sign), (g_logarithm, g_sign) = out, g
        g_log = zeros_like(logarithm) if g_logarithm is None else g_logarithm
        if x.dtype.is_complex:
            g_log = complex(g_log, zeros_like(logarithm) if g_sign is None else imag(g_sign * sign))
    return (expand_dims(expand_dims(g_log, -1), -1) * matrix_transpose(inv(x)),)


DETERMINANT = register(
    Op(
        name="determinant",
        doc="""The determinant of square matrices; with ``log`` the logarithm of its size, and its sign.""",
        infer=_determinant_infer,
        kernel=_determinant,
        kind=Opaque("LAPACK factors matrices", lowering=lower_determinant),
        required_shapes=require_square_shapes,
        batching_rule=LEADING,
        joint_vjp=_determinant_joint_vjp,
        outputs=None,
        samples=tuple(
            Sample(sample.inputs, {"log": log}) for sample in _SAMPLES[:2] for log in (False, True)
        ),
    )
)


class LogMatrixDeterminant(NamedTuple):
    """The result of :func:`slogdet`.

    Attributes:
        sign: 1, -1 or 0; of complex matrices a number of absolute value 1, or 0.
        log_abs_determinant: ``-inf`` where the determinant is 0.
    """

    sign: Any
    log_abs_determinant: Any


def slogdet(input: TensorLike, name: str | None = None) -> LogMatrixDeterminant:
    """The sign of the determinant, and the logarithm of its absolute value, which does not overflow.

    Args:
        input: square matrices, of shape ``(..., n, n)``, in float32, float64, complex64 or complex128.

    Returns:
        ``sign`` and ``log_abs_determinant``, of shape ``(...)``, both in the dtype of the input. The gradient
        needs invertible matrices.

    Raises:
        InvalidArgumentError: a matrix is not square.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> [float(x) for x in df.linalg.slogdet([[0.0, 1.0], [1.0, 0.0]])]
    [-1.0, 0.0]
    """
    log, sign = dispatch.current().apply(DETERMINANT, (input,), {"log": True})
    return LogMatrixDeterminant(sign, cast(log, sign.dtype) if sign.dtype.is_complex else log)


def det(input: TensorLike, name: str | None = None) -> Tensor:
    """The determinant of square matrices.

    Args:
        input: of shape ``(..., n, n)``, in float32, float64, complex64 or complex128.

    Returns:
        A tensor of shape ``(...)`` with the dtype of ``input``; 1 for matrices without elements. The gradient
        needs invertible matrices.

    Raises:
        InvalidArgumentError: a matrix is not square.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> float(df.linalg.det([[0.0, 1.0], [1.0, 0.0]]))
    -1.0
    """
    return only(dispatch.current().apply(DETERMINANT, (input,), {"log": False}))
