"""The singular value decomposition, the pseudo-inverse and the rank of matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int32
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import expand_dims, matrix_transpose
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.complex_numbers import conj, imag
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.linear_algebra.diagonals import diag, diag_part
from dualflow.ops.linear_algebra.factors import lapack_svd, lapack_svdvals
from dualflow.ops.linear_algebra.gaps import inverse_gaps_of_squares, inverses
from dualflow.ops.linear_algebra.matrices import matrices, only, require_matrices
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.reduction import reduce_max
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape
from dualflow.ops.statistics import as_float
from dualflow.ops.tensor_sizes import axis_size
from dualflow.sizes.size_functions import smallest

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _infer(x: TensorSpec, compute_uv: bool, full_matrices: bool) -> tuple[TensorSpec, ...]:
    batch, rows, columns = matrices(x)
    rank = None if rows is None or columns is None else smallest(rows, columns)
    values = TensorSpec.of(Shape([*batch, rank]), x.dtype.real)
    if not compute_uv:
        return (values,)
    return (
        values,
        TensorSpec.of(Shape([*batch, rows, rows if full_matrices else rank]), x.dtype),
        TensorSpec.of(Shape([*batch, columns, columns if full_matrices else rank]), x.dtype),
    )


def _kernel(x: Any, compute_uv: bool, full_matrices: bool) -> tuple[Any, ...]:
    require_matrices(x)
    try:
        return _decomposed(x, compute_uv, full_matrices)
    except np.linalg.LinAlgError:  # as of matrices with nan, whose results are nan
        is_finite = np.isfinite(x).all((-2, -1))
        decomposition = _decomposed(np.where(is_finite[..., None, None], x, 0), compute_uv, full_matrices)
        return tuple(
            [
                np.where(is_finite[(..., *[None] * (y.ndim - is_finite.ndim))], y, np.nan)
                for y in decomposition
            ]
        )


def _decomposed(x: Any, compute_uv: bool, full_matrices: bool) -> tuple[Any, ...]:
    if not compute_uv:
        return (lapack_svdvals(x),)
    u, s, vh = lapack_svd(x, full_matrices)
    return s, u, np.conjugate(np.swapaxes(vh, -1, -2))


def _joint_vjp(
    needed: Any, g: Any, out: Any, x: Any, compute_uv: bool, full_matrices: bool
) -> tuple[Any, ...]:
    """The vjp; Townsend, "Differentiating the Singular Value Decomposition" (2016), Wan and Zhang (2019)."""
    if not compute_uv:
        out, g = _svd(x), (g, None, None)
    (s, u, v), (g_s, g_u, g_v) = out, g
    rank = axis_size(s, -1)
    gaps, columns = cast(inverse_gaps_of_squares(s), x.dtype), cast(expand_dims(s, -2), x.dtype)
    inverse = cast(expand_dims(inverses(s), -2), x.dtype)
    inner: Any = 0.0 if g_s is None else diag(cast(g_s, x.dtype))
    left, right = u[..., :rank], matrix_transpose(v[..., :rank], conjugate=True)
    beyond = []
    if g_u is not None:
        along, orthogonal = _projected(u, conj(g_u), rank)
        inner = inner + gaps * (along - matrix_transpose(along, conjugate=True)) * columns
        if orthogonal is not None:
            beyond.append(matmul(orthogonal * inverse, right))
    if g_v is not None:
        along, orthogonal = _projected(v, conj(g_v), rank)
        inner = inner + matrix_transpose(columns) * gaps * (along - matrix_transpose(along, conjugate=True))
        if x.dtype.is_complex:
            inner = inner - diag(cast(imag(diag_part(along)) * inverses(s), x.dtype) * 1j)
        if orthogonal is not None:
            beyond.append(matmul(left, matrix_transpose(orthogonal * inverse, conjugate=True)))
    return (conj(sum(beyond, matmul(matmul(left, inner), right))),)


def _projected(basis: Any, g: Any, rank: int) -> tuple[Any, Any]:
    """The components of ``g`` within the span of the first ``rank`` vectors of a basis, and orthogonal to it.

    A rotation of the basis moves its other vectors against the first ones.
    """
    first = basis[..., :rank]
    along = matmul(first, g[..., :rank], adjoint_a=True)
    if type(rank) is int and basis.shape[-2] == rank:
        return along, None
    orthogonal = g[..., :rank] - matmul(first, along)
    if type(rank) is not int or basis.shape[-1] != rank:
        orthogonal = orthogonal - matmul(basis[..., rank:], matmul(g[..., rank:], first, adjoint_a=True))
    return along, orthogonal


def _values_alone(needed: Any, compute_uv: bool, full_matrices: bool) -> dict[str, Any] | None:
    return {"compute_uv": False, "full_matrices": False} if needed == (True, False, False) else None


SVD = register(
    Op(
        name="svd",
        doc="""The singular values of matrices, from the largest, and the left and right singular vectors.""",
        infer=_infer,
        kernel=_kernel,
        kind=Opaque("LAPACK decomposes matrices"),
        batching_rule=LEADING,
        joint_vjp=_joint_vjp,
        outputs=None,
        prune_outputs=_values_alone,
        samples=(
            Sample((Domain(-3, 3, "f", (4, 3)),), {"compute_uv": True, "full_matrices": False}),
            Sample((Domain(-3, 3, "f", (2, 2, 4)),), {"compute_uv": True, "full_matrices": False}),
            Sample((Domain(-3, 3, "f", (2, 3)),), {"compute_uv": True, "full_matrices": True}),
            Sample((Domain(-3, 3, "f", (2, 3)),), {"compute_uv": False, "full_matrices": False}),
        ),
    )
)


def _svd(x: Any, full_matrices: bool = False) -> Any:
    return dispatch.current().apply(SVD, (x,), {"compute_uv": True, "full_matrices": full_matrices})


def singular_values(x: Any) -> Any:
    """The singular values of each matrix, from the largest to the smallest."""
    return only(dispatch.current().apply(SVD, (x,), {"compute_uv": False, "full_matrices": False}))


@overload
def svd(
    tensor: TensorLike,
    full_matrices: bool = False,
    compute_uv: Literal[True] = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def svd(
    tensor: TensorLike, full_matrices: bool = False, *, compute_uv: Literal[False], name: str | None = None
) -> Tensor: ...
@overload
def svd(
    tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any: ...
def svd(
    tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """The singular value decomposition of matrices: ``tensor = u @ diag(s) @ adjoint(v)``.

    Args:
        tensor: of shape ``(..., m, n)``, in float32, float64, complex64 or complex128.
        full_matrices: whether ``u`` and ``v`` are square.
        compute_uv: whether to compute ``u`` and ``v``.

    Returns:
        ``s``, the singular values from the largest, real and of shape ``(..., p)``, where ``p`` is the
        smaller of ``m`` and ``n``; with ``compute_uv`` the tuple ``s, u, v``, whose singular vectors are the
        columns of ``(..., m, p)`` and ``(..., n, p)``, or with ``full_matrices`` of square matrices. They
        are unique up to their signs (or phases), and where singular values are equal up to rotation:
        gradients are those of what does not depend on it. Matrices with inf or nan have results of nan.

    Raises:
        InvalidArgumentError: fewer than two axes.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> s, u, v = df.linalg.svd([[0.0, 2.0], [3.0, 0.0]])
    >>> s.numpy().tolist()
    [3.0, 2.0]
    """
    return _svd(tensor, bool(full_matrices)) if compute_uv else singular_values(tensor)


def _unit(s: Any) -> float:
    return float(np.finfo(s.dtype.dtype).eps)


def _larger_size(x: Any) -> Any:
    """The larger of the numbers of rows and columns; a tensor if it is known at run time only."""
    rows, columns = x.shape[-2:]
    return reduce_max(shape(x)[-2:]) if rows is None or columns is None else max(rows, columns)


def pinv(
    a: TensorLike, rcond: TensorLike | None = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The Moore-Penrose inverse of matrices: the smallest ``x`` with ``a @ x`` closest to the identity.

    Args:
        a: of shape ``(..., m, n)``, in float32, float64, complex64 or complex128; integers become float32.
        rcond: singular values up to ``rcond`` times the largest one count as 0; None for 10 units of the last
            place times the larger of ``m`` and ``n``. It broadcasts with the leading axes of ``a``.
        validate_args: ignored: the arguments are always checked.

    Returns:
        A tensor of shape ``(..., n, m)`` with the dtype of ``a``; float32 for integers.

    Raises:
        InvalidArgumentError: fewer than two axes.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).numpy().tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    x = as_float(a)
    s, u, v = _svd(x)
    return matmul(v / cast(expand_dims(above(s, x, rcond), -2), x.dtype), u, adjoint_b=True)


def above(s: Any, x: Any, rcond: Any = None) -> Any:
    """The singular values of ``x``, with those that count as 0 replaced by inf, for their reciprocals."""
    if rcond is None:
        limit: Any = _larger_size(x)
        limit = (limit if isinstance(limit, int) else cast(limit, s.dtype)) * (10 * _unit(s))
    else:
        limit = expand_dims(cast(rcond, s.dtype), -1)
    return where(s > limit * reduce_max(s, -1, keepdims=True), s, math.inf)


def matrix_rank(
    a: TensorLike, tol: TensorLike | None = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The number of singular values of matrices that are not 0.

    Args:
        a: of shape ``(..., m, n)``, in float32, float64, complex64 or complex128; integers become float32.
        tol: singular values up to it count as 0; None for a unit of the last place of the largest one times
            the larger of ``m`` and ``n``.
        validate_args: ignored: the arguments are always checked.

    Returns:
        A tensor of shape ``(...)`` and dtype int32.

    Raises:
        InvalidArgumentError: fewer than two axes.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> int(df.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]))
    1
    """
    x = as_float(a)
    s = singular_values(x)
    if tol is None:
        size = _larger_size(x)
        tol = (
            reduce_max(s, -1, keepdims=True)
            * (size if isinstance(size, int) else cast(size, s.dtype))
            * _unit(s)
        )
    return reduce_sum(cast(s > tol, int32), -1)
