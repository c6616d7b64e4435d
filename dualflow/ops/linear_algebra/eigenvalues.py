"""Eigenvalues and eigenvectors of square matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, complex64, complex128
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import abs
from dualflow.ops.arrangement import expand_dims, matrix_transpose
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal
from dualflow.ops.complex_numbers import conj, imag, real
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.linear_algebra.diagonals import diag, lower_half, places
from dualflow.ops.linear_algebra.factors import lapack_eigh, lapack_eigvalsh
from dualflow.ops.linear_algebra.gaps import inverse_gaps
from dualflow.ops.linear_algebra.matrices import only, require_square_shapes, require_squares, squares
from dualflow.ops.linear_algebra.solving import solve
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.reduction import argmax
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.selection import masked
from dualflow.ops.static import dtype_of
from dualflow.ops.tensor_sizes import axis_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_SYMMETRIC = [[4.0, 1.0, 0.5], [1.0, -3.0, 0.7], [0.5, 0.7, 1.0]]


# self-adjoint matrices


def _eigh_infer(x: TensorSpec, compute_v: bool) -> tuple[TensorSpec, ...]:
    batch, size = squares(x)
    values = TensorSpec.of(Shape([*batch, size]), x.dtype.real)
    return (values, x) if compute_v else (values,)


def _eigh(x: Any, compute_v: bool) -> tuple[Any, ...]:
    require_squares(x)
    try:
        decomposition = lapack_eigh(x) if compute_v else (lapack_eigvalsh(x),)
    except np.linalg.LinAlgError:
        raise not_decomposed("Self-adjoint eigen") from None
    if np.isnan(decomposition[0]).any():
        raise not_decomposed("Self-adjoint eigen")
    return decomposition


def not_decomposed(what: str) -> InvalidArgumentError:
    """The error for matrices that have no eigenvalues, since they are not finite."""
    return InvalidArgumentError(
        f"{what} decomposition was not successful. The input might not be valid: it has inf or nan, or is "
        "too badly scaled; check it with df.debugging.check_numerics."
    )


def _eigh_joint_vjp(needed: Any, g: Any, out: Any, x: Any, compute_v: bool) -> tuple[Any, ...]:
    """The vjp, a lower triangle; Giles, "An extended collection of matrix derivative results" (2008)."""
    values, vectors = out if compute_v else dispatch.current().apply(EIGH, (x,), {"compute_v": True})
    g_values, g_vectors = g if compute_v else (g, None)
    inner: Any = 0.0 if g_values is None else diag(cast(g_values, x.dtype))
    if g_vectors is not None:
        gaps = cast(inverse_gaps(values), x.dtype)
        inner = inner + gaps * matmul(vectors, conj(g_vectors), adjoint_a=True)
    full = matmul(vectors, matmul(inner, vectors, adjoint_b=True))
    return (conj(lower_half(full + matrix_transpose(full, conjugate=True))),)


def _values_alone(needed: Any, compute_v: bool) -> dict[str, Any] | None:
    return {"compute_v": False} if needed == (True, False) else None


EIGH = register(
    Op(
        name="eigh",
        doc="""The eigenvalues of self-adjoint matrices, ascending; with ``compute_v`` the eigenvectors.""",
        infer=_eigh_infer,
        kernel=_eigh,
        kind=Opaque("LAPACK decomposes matrices"),
        required_shapes=require_square_shapes,
        batching_rule=LEADING,
        joint_vjp=_eigh_joint_vjp,
        outputs=None,
        prune_outputs=_values_alone,
        samples=(
            Sample((Domain(shape=(3, 3), values=_SYMMETRIC),), {"compute_v": True}),
            Sample((Domain(shape=(1, 3, 3), values=[_SYMMETRIC]),), {"compute_v": False}),
            Sample((Domain(shape=(2, 0, 0)),), {"compute_v": True}),
        ),
    )
)


def eigh(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Args:
        tensor: of shape ``(..., n, n)``, in float32, float64, complex64 or complex128; only the lower
            triangles are read.

    Returns:
        The eigenvalues, of shape ``(..., n)`` in ascending order and in the dtype of ``tensor``, and the
        eigenvectors, the columns of ``(..., n, n)``. These are unique up to their signs (or phases), and
        where eigenvalues are equal up to rotation: gradients are those of what does not depend on it.

    Raises:
        InvalidArgumentError: a matrix is not square, or has inf or nan.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> values, vectors = df.linalg.eigh([[2.0, 1.0], [1.0, 2.0]])
    >>> values.numpy().round(5).tolist()
    [1.0, 3.0]
    """
    values, vectors = dispatch.current().apply(EIGH, (tensor,), {"compute_v": True})
    return cast(values, vectors.dtype) if vectors.dtype.is_complex else values, vectors


def eigvalsh(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices, in ascending order.

    Args:
        tensor: of shape ``(..., n, n)``, as :func:`eigh` takes it.

    Returns:
        A tensor of shape ``(..., n)`` with the dtype of ``tensor``.

    Raises:
        InvalidArgumentError: a matrix is not square, or has inf or nan.
        DTypeError: another dtype than float32, float64, complex64 and complex128.

    >>> import dualflow as df
    >>> df.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]).numpy().round(5).tolist()
    [1.0, 3.0]
    """
    values = only(dispatch.current().apply(EIGH, (tensor,), {"compute_v": False}))
    dtype = dtype_of(tensor)
    return cast(values, dtype) if dtype.is_complex else values


# matrices of any kind


def _complex(dtype: DType) -> DType:
    return complex64 if dtype.real.size == 4 else complex128


def _eig_infer(x: TensorSpec, compute_v: bool) -> tuple[TensorSpec, ...]:
    batch, size = squares(x)
    values = TensorSpec.of(Shape([*batch, size]), _complex(x.dtype))
    return (values, TensorSpec.of(x.shape, values.dtype)) if compute_v else (values,)


def _eig(x: Any, compute_v: bool) -> tuple[Any, ...]:
    require_squares(x)
    target = np.result_type(x.dtype, np.complex64)
    try:
        decomposition = np.linalg.eig(x) if compute_v else (np.linalg.eigvals(x),)
    except np.linalg.LinAlgError:
        raise not_decomposed("Eigen") from None
    return tuple([np.asarray(y, target) for y in decomposition])


def _eig_joint_vjp(needed: Any, g: Any, out: Any, x: Any, compute_v: bool) -> tuple[Any, ...]:
    """The vjp; van der Aa et al., "Computation of eigenvalue and eigenvector derivatives" (2007)."""
    values, vectors = out if compute_v else dispatch.current().apply(EIG, (x,), {"compute_v": True})
    g_values, g_vectors = g if compute_v else (g, None)
    inner: Any = 0.0 if g_values is None else diag(g_values)
    if g_vectors is not None:
        free = _without_scale(vectors, g_vectors)
        inner = inner + inverse_gaps(values) * matmul(vectors, free, transpose_a=True)
    transposed = matrix_transpose(vectors)
    cotangent = solve(transposed, matmul(inner, transposed))
    return (cotangent if x.dtype.is_complex else real(cotangent),)


def _without_scale(vectors: Any, g: Any) -> Any:
    """The cotangent of the unscaled eigenvectors, for ``g``, that of vectors scaled to length 1.

    LAPACK makes the element real exactly, by which it is found.
    """
    if vectors.shape[-1] == 0:
        return g
    along = expand_dims(reduce_sum(g * vectors, -2), -2)
    largest = argmax(masked(equal(imag(vectors), 0), abs(vectors)), -2)
    row, _ = places(axis_size(vectors, -2), 1)
    pivot = cast(equal(row, expand_dims(cast(largest, row.dtype), -2)), vectors.dtype)
    size = expand_dims(reduce_sum(vectors * pivot, -2), -2)
    turn = cast(imag(along), vectors.dtype) * 1j
    return g - conj(vectors) * cast(real(along), vectors.dtype) - pivot * turn / size


_GENERAL = [[4.0, 1.0, -0.5], [0.3, -3.0, 0.7], [1.2, 0.4, 1.0]]

EIG = register(
    Op(
        name="eig",
        doc="""The eigenvalues of square matrices, and with ``compute_v`` the eigenvectors; complex.""",
        infer=_eig_infer,
        kernel=_eig,
        kind=Opaque("LAPACK decomposes matrices"),
        required_shapes=require_square_shapes,
        batching_rule=LEADING,
        joint_vjp=_eig_joint_vjp,
        outputs=None,
        samples=(
            Sample((Domain(shape=(3, 3), values=_GENERAL),), {"compute_v": True}),
            Sample((Domain(shape=(1, 3, 3), values=[_GENERAL]),), {"compute_v": False}),
        ),
    )
)


def eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The eigenvalues and eigenvectors of square matrices.

    Args:
        tensor: of shape ``(..., n, n)``, in float32, float64, complex64 or complex128.

    Returns:
        The eigenvalues, of shape ``(..., n)``, in no order, and the eigenvectors, the columns of
        ``(..., n, n)``, of length 1 and with a largest element that is real. Both are complex. Gradients need
        eigenvalues that differ.

    Raises:
        InvalidArgumentError: a matrix is not square, or has inf or nan.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> values, vectors = df.linalg.eig([[0.0, 1.0], [-1.0, 0.0]])
    >>> values.numpy().tolist()
    [1j, -1j]
    """
    values, vectors = dispatch.current().apply(EIG, (tensor,), {"compute_v": True})
    return values, vectors


def eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The eigenvalues of square matrices, in no order.

    Args:
        tensor: of shape ``(..., n, n)``, in float32, float64, complex64 or complex128.

    Returns:
        A complex tensor of shape ``(..., n)``.

    Raises:
        InvalidArgumentError: a matrix is not square, or has inf or nan.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.eigvals([[0.0, 1.0], [-1.0, 0.0]]).numpy().tolist()
    [1j, -1j]
    """
    return only(dispatch.current().apply(EIG, (tensor,), {"compute_v": False}))
