"""The singular value decomposition of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import divide_no_nan, square
from dualflow.ops.arrangement import expand_dims, matrix_transpose
from dualflow.ops.complex_numbers import conj
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.forms import Opaque
from dualflow.ops.linear_algebra.diagonals import diag
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample


def _infer(x: TensorSpec) -> tuple[TensorSpec, ...]:
    if not x.dtype.is_inexact or x.dtype.name == "float16":
        raise DTypeError(
            f"takes floats of 32 bits or more, not {x.dtype.name}; convert the input with df.cast."
        )
    if len(x.shape) < 2:
        raise InvalidArgumentError(f"takes matrices, but the shape is {x.shape}; give it two axes or more.")
    *batch, rows, columns = x.shape
    rank = None if rows is None or columns is None else min(rows, columns)
    return (
        TensorSpec.of(Shape([*batch, rank]), x.dtype.real),
        TensorSpec.of(Shape([*batch, rows, rank]), x.dtype),
        TensorSpec.of(Shape([*batch, columns, rank]), x.dtype),
    )


def _kernel(x: Any) -> tuple[Any, ...]:
    if x.dtype.kind not in "fc" or x.dtype.itemsize == 2:
        raise TypeError("takes floats of 32 bits or more")
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return s, u, np.conjugate(np.swapaxes(vh, -1, -2))


def _pullback(needed: Any, g: Any, out: Any, x: Any) -> tuple[Any, ...]:
    """After Townsend, "Differentiating the Singular Value Decomposition" (2016)."""
    (s, u, v), (gs, gu, gv) = out, g
    if x.dtype.is_complex and not (gu is None and gv is None):
        raise InvalidArgumentError(
            "svd has no gradient for singular vectors of complex matrices, whose phase is arbitrary; "
            "differentiate the singular values alone."
        )
    vt = matrix_transpose(v)
    if x.dtype.is_complex:
        return (matmul(conj(u) * expand_dims(cast(gs, x.dtype), -2), vt),)
    squares = square(s)
    gaps = divide_no_nan(1.0, expand_dims(squares, -2) - expand_dims(squares, -1))
    rows, columns = expand_dims(s, -2), expand_dims(s, -1)
    inner: Any = 0.0 if gs is None else diag(gs)
    beyond: Any = 0.0
    if gu is not None:
        turned = matmul(matrix_transpose(u), gu)
        inner = inner + gaps * (turned - matrix_transpose(turned)) * rows
        beyond = beyond + matmul(divide_no_nan(gu - matmul(u, turned), rows), vt)
    if gv is not None:
        turned = matmul(vt, gv)
        inner = inner + columns * gaps * (turned - matrix_transpose(turned))
        rest = divide_no_nan(gv - matmul(v, turned), rows)
        beyond = beyond + matmul(u, matrix_transpose(rest))
    return (matmul(matmul(u, inner), vt) + beyond,)


SVD = register(
    Op(
        name="svd",
        doc="""The singular values of matrices, from the largest, and the left and right singular vectors.""",
        infer=_infer,
        kernel=_kernel,
        form=Opaque("LAPACK decomposes matrices"),
        pullback=_pullback,
        outputs=3,
        samples=(
            Sample((Domain(-3, 3, "f", (4, 3)),)),
            Sample((Domain(-3, 3, "f", (2, 2, 4)),)),
        ),
    )
)


def singular_values(x: Any) -> Any:
    """The singular values of each matrix, from the largest to the smallest."""
    return dispatch.current().apply(SVD, (x,), {})[0]
