"""Tridiagonal matrices: products with them, and systems of equations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import expand_dims, matrix_transpose, squeeze
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, logical_and
from dualflow.ops.complex_numbers import conj, real
from dualflow.ops.creation import constant, convert_to_tensor
from dualflow.ops.joining import stack
from dualflow.ops.linear_algebra.banded import solve_banded
from dualflow.ops.linear_algebra.diagonals import diag, diag_part, places, set_diag
from dualflow.ops.linear_algebra.eigenvalues import eigh, eigvalsh
from dualflow.ops.record import promote_together
from dualflow.ops.repetition import pad
from dualflow.ops.selection import where
from dualflow.ops.static import static_int
from dualflow.ops.tensor_sizes import axis_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _compact(diagonals: Any, kind: str) -> Any:
    """The three diagonals as the rows of one tensor, the one above the main one first."""
    if kind == "compact":
        bands = convert_to_tensor(diagonals)
    elif kind == "matrix":
        bands = diag_part(diagonals, k=(-1, 1), align="LEFT_RIGHT")
    elif kind == "sequence":
        bands = _stacked(diagonals)
    else:
        raise InvalidArgumentError(f"diagonals_format is 'compact', 'sequence' or 'matrix', not {kind!r}.")
    if len(bands.shape) < 2 or bands.shape[-2] not in (3, None):
        raise InvalidArgumentError(
            f"a tridiagonal matrix has 3 diagonals, as rows, but the shape is {bands.shape}; pass 3 rows."
        )
    return bands


def _stacked(diagonals: Any) -> Any:
    """The three diagonals of a sequence as rows of equal length; the outer ones may be shorter by one."""
    if not isinstance(diagonals, list | tuple) or len(diagonals) != 3:
        raise InvalidArgumentError("diagonals in sequence format are a list of three: above, main, below.")
    above, main, below = promote_together(*diagonals)
    size = main.shape[-1]
    rows = []
    for row, padding in ((above, (0, 1)), (main, (0, 0)), (below, (1, 0))):
        if size is not None and row.shape[-1] == size - 1:
            row = pad(row, [(0, 0)] * (len(row.shape) - 1) + [padding])
        rows.append(row)
    return stack(rows, -2)


def tridiagonal_solve(
    diagonals: TensorLike,
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """The ``x`` with ``a @ x = rhs``, where ``a`` is tridiagonal (LAPACK's ``gtsv``).

    Args:
        diagonals: those of ``a``, of shape ``(..., n, n)``, in float32, float64, complex64 or complex128. In
            "compact" format a tensor of shape ``(..., 3, n)``: the diagonal above the main one, whose last
            element is not read, the main one, and the one below, whose first element is not read. In
            "sequence" format a list of these three, where the outer ones may have ``n - 1`` elements. In
            "matrix" format ``a`` itself, whose other elements are not read.
        rhs: of shape ``(..., n, k)``, or ``(..., n)``, with one axis less than ``a``.
        diagonals_format: "compact", "sequence" or "matrix".
        transpose_rhs: whether ``rhs`` is given as ``(..., k, n)``.
        conjugate_rhs: whether to conjugate ``rhs``.
        partial_pivoting: ignored: rows are exchanged where that is more precise.
        perturb_singular: must be False: singular matrices are not changed.

    Returns:
        A tensor of shape ``(..., n, k)``, or ``(..., n)``, with the common dtype; nan for singular matrices.

    Raises:
        InvalidArgumentError: shapes that do not fit, an unknown format, or ``perturb_singular``.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.tridiagonal_solve([[1.0, 0.0], [1.0, 2.0], [0.0, 0.0]], [3.0, 4.0]).numpy().tolist()
    [1.0, 2.0]
    """
    if perturb_singular:
        raise InvalidArgumentError(
            "tridiagonal_solve does not perturb singular matrices; add a small number to the main diagonal."
        )
    bands, right = promote_together(_compact(diagonals, diagonals_format), rhs)
    right = conj(right) if conjugate_rhs else right
    if len(right.shape) == len(bands.shape) - 1:
        return squeeze(solve_banded(bands, expand_dims(right, -1), (-1, 1), False), -1)
    return solve_banded(bands, matrix_transpose(right) if transpose_rhs else right, (-1, 1), False)


def tridiagonal_matmul(
    diagonals: TensorLike, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """The product of tridiagonal matrices with others, from the three diagonals alone.

    Args:
        diagonals: of shape ``(..., 3, n)``, or in another format, as :func:`tridiagonal_solve` takes them.
        rhs: of shape ``(..., n, k)``.
        diagonals_format: "compact", "sequence" or "matrix".

    Returns:
        A tensor of shape ``(..., n, k)`` with the common dtype.

    Raises:
        InvalidArgumentError: shapes that do not fit, or an unknown format.

    >>> import dualflow as df
    >>> df.linalg.tridiagonal_matmul([[1, 0], [1, 2], [0, 3]], [[1], [10]]).numpy().tolist()
    [[11], [23]]
    """
    bands, right = promote_together(_compact(diagonals, diagonals_format), rhs)
    if len(right.shape) < 2 or right.shape[-2] not in (bands.shape[-1], None):
        raise InvalidArgumentError(
            f"tridiagonal_matmul needs a right-hand side of {bands.shape[-1]} rows, not of shape "
            f"{right.shape}; transpose it or pass more rows."
        )
    if None in (bands.shape[-1], right.shape[-2]):
        fits = equal(axis_size(bands, -1), axis_size(right, -2))
        right = required(
            right, fits, "tridiagonal_matmul needs a right-hand side of as many rows as diagonals."
        )
    above, main, below = (expand_dims(bands[..., i, :], -1) for i in (0, 1, 2))
    batch = [(0, 0)] * (max(len(bands.shape), len(right.shape)) - 2)
    from_above = pad(above[..., :-1, :] * right[..., 1:, :], [*batch, (0, 1), (0, 0)])
    from_below = pad(below[..., 1:, :] * right[..., :-1, :], [*batch, (1, 0), (0, 0)])
    return main * right + from_above + from_below


@overload
def eigh_tridiagonal(
    alpha: TensorLike,
    beta: TensorLike,
    eigvals_only: Literal[True] = True,
    select: str = "a",
    select_range: TensorLike | None = None,
    tol: TensorLike | None = None,
    name: str | None = None,
) -> Tensor: ...
@overload
def eigh_tridiagonal(
    alpha: TensorLike,
    beta: TensorLike,
    eigvals_only: Literal[False],
    select: str = "a",
    select_range: TensorLike | None = None,
    tol: TensorLike | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def eigh_tridiagonal(
    alpha: TensorLike,
    beta: TensorLike,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: TensorLike | None = None,
    tol: TensorLike | None = None,
    name: str | None = None,
) -> Any: ...
def eigh_tridiagonal(
    alpha: TensorLike,
    beta: TensorLike,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: TensorLike | None = None,
    tol: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """The eigenvalues, and eigenvectors, of a symmetric or Hermitian tridiagonal matrix.

    Args:
        alpha: the main diagonal, of shape ``(..., n)``, in float32, float64, complex64 or complex128; its
            imaginary part is not read.
        beta: the diagonal below, of shape ``(..., n - 1)``.
        eigvals_only: whether to leave the eigenvectors out.
        select: "a" for all eigenvalues, "i" for a range of positions, "v" for an interval.
        select_range: with "i" the first and the last position, counted from the smallest eigenvalue; with "v"
            the ends of the interval, of which the lower one is excluded.
        tol: ignored: the eigenvalues are as precise as the dtype.

    Returns:
        The eigenvalues, in ascending order and real; without ``eigvals_only`` also the eigenvectors, as the
        columns of a matrix.

    Raises:
        InvalidArgumentError: shapes that do not fit, an unknown ``select``, or an empty range.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.eigh_tridiagonal([2.0, 2.0], [1.0]).numpy().round(5).tolist()
    [1.0, 3.0]
    """
    main, below = promote_together(alpha, beta)
    if len(main.shape) < 1 or len(main.shape) != len(below.shape):
        raise InvalidArgumentError(
            f"alpha and beta are diagonals, of n and n - 1 elements, but the shapes are {main.shape} and "
            f"{below.shape}."
        )
    matrix = _lower_half(main, below)
    if eigvals_only:
        return _selected(real(eigvalsh(matrix)), None, select, select_range)[0]
    values, vectors = eigh(matrix)
    return _selected(real(values), vectors, select, select_range)


def _lower_half(main: Any, below: Any) -> Any:
    """Matrices with ``main`` on the diagonal and ``below`` on the one below; zeros elsewhere."""
    matrix = diag(main)
    if main.shape[-1] is not None:
        return matrix if main.shape[-1] in (0, 1) else set_diag(matrix, below, k=-1)
    size, count = axis_size(main, -1), axis_size(below, -1)
    message = "the diagonal below the main one has another number of elements than rows but one."
    added = required(constant(1), equal(count, maximum(size - 1, 0)), message)
    row, column = places(size, size)
    columns = expand_dims(pad(below, [*[[0, 0]] * (len(below.shape) - 1), [0, added]]), -2)
    return where(equal(column, row - 1), columns, matrix)


def _selected(values: Any, vectors: Any, select: str, ends: Any) -> tuple[Any, Any]:
    """The selected eigenvalues and their vectors."""
    if select == "a":
        return values, vectors
    is_range = ends is not None and bool(ends[0] <= ends[1])
    if select not in ("i", "v") or not is_range or (select == "v" and ends[0] == ends[1]):
        raise InvalidArgumentError(
            f"select is 'a', 'i' or 'v', these with an ascending select_range, not {select!r} and {ends!r}."
        )
    if select == "i":
        kept: Any = slice(static_int(ends[0], "select_range"), static_int(ends[1], "select_range") + 1)
    else:
        kept = logical_and(values > ends[0], values <= ends[1])
    return values[..., kept], vectors if vectors is None else vectors[..., kept]
