"""Systems of linear equations with banded matrices, of which only the diagonals are stored.

Bands have shape ``(..., diagonals, n)``, the highest diagonal first. Column ``i`` holds the elements of row
``i`` of the matrix, which is TensorFlow's alignment "LEFT_RIGHT"; elements outside of the matrix are not
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.complex_numbers import conj
from dualflow.ops.joining import stack
from dualflow.ops.linear_algebra.matrices import matrices, not_invertible, require_matrices
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, Promotion, promote_together, register
from dualflow.ops.repetition import pad
from dualflow.ops.samples import Domain, Sample
from dualflow.sizes.size_functions import common_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

Band = tuple[int, int]
"""The lowest and the highest diagonal: one of them the main one, or the two next to it."""


def _infer(bands: TensorSpec, b: TensorSpec, band: Band, transpose: bool) -> TensorSpec:
    (first, diagonals, size), (second, rows, columns) = matrices(bands), matrices(b)
    count = band[1] - band[0] + 1
    if diagonals is not None and diagonals != count:
        raise InvalidArgumentError(
            f"takes {count} diagonals, but the shape is {bands.shape}; give as many rows."
        )
    if size is not None and rows is not None and size != rows:
        raise InvalidArgumentError(
            f"the matrices have {size} rows and the right-hand sides {rows} (shapes {bands.shape} and "
            f"{b.shape}); give as many."
        )
    return TensorSpec.of(
        Shape([*broadcast([first, second]), rows if size is None else size, columns]), b.dtype
    )


def _kernel(bands: Any, b: Any, band: Band, transpose: bool) -> Any:
    require_matrices(bands, b)
    size, columns = b.shape[-2:]
    if bands.shape[-2:] != (band[1] - band[0] + 1, size):
        raise ValueError("the shapes do not fit")
    batch = np.broadcast_shapes(bands.shape[:-2], b.shape[:-2])
    all_bands = np.broadcast_to(bands, (*batch, *bands.shape[-2:]))
    sides = np.broadcast_to(b, (*batch, size, columns))
    out = np.empty(sides.shape, b.dtype)
    solve = _tridiagonal if band == (-1, 1) else _triangular
    for at in np.ndindex(*batch) if out.size else ():
        solution = solve(all_bands[at], sides[at], band, transpose)
        if solution is None:
            raise not_invertible(at)
        out[at] = solution
    return out


def _required_shapes(
    bands: Sequence[int], b: Sequence[int], band: Band, transpose: bool
) -> list[Sequence[int]]:
    size = common_size(bands[-1], b[-2])
    return [(*bands[:-2], band[1] - band[0] + 1, size), (*b[:-2], size, b[-1])]


def _triangular(bands: Any, b: Any, band: Band, transpose: bool) -> Any:
    """The solution by LAPACK's ``tbtrs``; None if the matrix is singular.

    LAPACK stores bands by columns. Ours, in reverse order, are its bands of the transposed matrix.
    """
    from scipy.linalg import lapack

    tbtrs = getattr(lapack, {"f": "s", "d": "d", "F": "c", "D": "z"}[bands.dtype.char] + "tbtrs")
    x, failed = tbtrs(bands[::-1], b, uplo="U" if band[1] == 0 else "L", trans="N" if transpose else "T")
    return None if failed else x


def _tridiagonal(bands: Any, b: Any, band: Band, transpose: bool) -> Any:
    """The solution by LAPACK's ``gtsv``; nan if the matrix is singular."""
    from scipy.linalg import lapack

    above, main, below = bands[0, :-1], bands[1], bands[2, 1:]
    if transpose:
        above, below = below, above
    if b.shape[0] == 1:
        return b / main[:, None]
    gtsv = getattr(lapack, {"f": "s", "d": "d", "F": "c", "D": "z"}[bands.dtype.char] + "gtsv")
    *_, x, failed = gtsv(below, main, above, b)
    return np.full_like(b, np.nan) if failed else x


def _joint_vjp(
    needed: Any, g: Any, out: Any, bands: Any, b: Any, band: Band, transpose: bool
) -> tuple[Any, ...]:
    """The cotangents of ``bands`` and ``b``; that of ``b`` is a solution with the transposed matrix."""
    g_b = solve_banded(bands, g, band, not transpose)
    if not needed[0]:
        return None, g_b
    row, column = (out, g_b) if transpose else (g_b, out)
    products = [reduce_sum(row * moved(column, d), -1) for d in range(band[1], band[0] - 1, -1)]
    return -stack(products, -2), g_b


def moved(x: Any, distance: int) -> Any:
    """The rows of ``x`` shifted up by ``distance``, with zeros for missing rows.

    >>> import dualflow as df
    >>> moved(df.constant([[1], [2], [3]]), 1).numpy().tolist()
    [[2], [3], [0]]
    """
    before, after = max(-distance, 0), max(distance, 0)
    rows = x[..., after:, :] if after else x[..., : -before or None, :]
    return pad(rows, [*[(0, 0)] * (len(x.shape) - 2), (before, after), (0, 0)]) if distance else x


def solve_banded(bands: Any, b: Any, band: Band, transpose: bool) -> Any:
    """The ``x`` with ``a @ x = b``, or with ``transpose(a) @ x = b``; ``a`` has the diagonals ``bands``."""
    return dispatch.current().apply(BANDED_SOLVE, (bands, b), {"band": band, "transpose": transpose})


_BANDS = [[0.5, 0.3, 9.0], [3.0, -2.0, 2.5], [9.0, 0.4, 0.7]]

BANDED_SOLVE = register(
    Op(
        name="banded_solve",
        doc="""``x`` in ``a @ x = b``, of matrices ``a`` that are given by their diagonals.""",
        infer=_infer,
        kernel=_kernel,
        kind=Opaque("LAPACK solves systems of equations"),
        required_shapes=_required_shapes,
        batching_rule=LEADING,
        joint_vjp=_joint_vjp,
        promotion=Promotion.TOGETHER,
        samples=tuple(
            Sample(
                (Domain(shape=(len(rows), 3), values=rows), Domain(-3, 3, "f", shape)),
                {"band": band, "transpose": transpose},
            )
            for rows, shape, band, transpose in (
                (_BANDS, (3, 2), (-1, 1), False),
                (_BANDS, (2, 3, 1), (-1, 1), True),
                (_BANDS[1:], (3, 2), (-1, 0), True),
                (_BANDS[:2], (2, 3, 1), (0, 1), False),
            )
        ),
    )
)


def banded_triangular_solve(
    bands: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The ``x`` with ``a @ x = rhs``, where ``a`` is triangular and has few diagonals (LAPACK's ``tbtrs``).

    Args:
        bands: the diagonals of ``a``, of shape ``(..., diagonals, n)``, in float32, float64, complex64 or
            complex128. With ``lower`` the first row is the main diagonal, and the others those below it; else
            the last row is the main diagonal. Column ``i`` holds elements of row ``i`` of ``a``, as
            :func:`set_diag` takes it with ``align="LEFT_RIGHT"``.
        rhs: of shape ``(..., n, k)``; the leading axes broadcast.
        lower: whether ``a`` is lower triangular, or upper.
        adjoint: whether to solve with the conjugate transpose of ``a``.

    Returns:
        A tensor of shape ``(..., n, k)`` with the common dtype.

    Raises:
        InvalidArgumentError: a matrix is not invertible, or shapes that do not fit.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.banded_triangular_solve([[2.0, 4.0], [0.0, 1.0]], [[2.0], [5.0]]).numpy().tolist()
    [[1.0], [1.0]]
    """
    a, b = promote_together(bands, rhs)
    size = a.shape[-2] if len(a.shape) > 1 else 1
    if size is None or not size:
        raise InvalidArgumentError(
            f"banded_triangular_solve takes 1 diagonal or more, a known number, but their shape is {a.shape}."
        )
    return solve_banded(
        conj(a) if adjoint else a, b, (1 - size, 0) if lower else (0, size - 1), bool(adjoint)
    )
