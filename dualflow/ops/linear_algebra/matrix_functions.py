"""Functions of square matrices: the exponential, the logarithm and the square root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import abs, maximum
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import zeros_like
from dualflow.ops.joining import concat
from dualflow.ops.linear_algebra.matrices import require_square_shapes, require_squares, squares
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.reduction import reduce_max
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.selection import where
from dualflow.ops.tensor_sizes import axis_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _infer(x: TensorSpec, function: str) -> TensorSpec:
    squares(x)
    if function == "logm" and not x.dtype.is_complex:
        raise DTypeError(
            f"takes complex64 or complex128, not {x.dtype.name}, since the logarithm of real matrices may be "
            "complex; convert the input with df.cast."
        )
    return x


def _kernel(x: Any, function: str) -> Any:
    from scipy import linalg

    require_squares(x)
    if function == "logm" and x.dtype.kind != "c":
        raise TypeError("takes complex numbers")
    is_finite = np.isfinite(x).all((-2, -1))
    if not x.size or not is_finite.any():
        return np.full_like(x, np.nan)
    finite = (
        x if is_finite.all() else np.where(is_finite[..., None, None], x, np.eye(x.shape[-1], dtype=x.dtype))
    )
    if function == "logm":  # SciPy's is precise in double precision alone
        result = linalg.logm(finite.astype(np.complex128))
    else:
        result = (linalg.expm if function == "expm" else linalg.sqrtm)(finite)
    if result.dtype.kind == "c" and x.dtype.kind != "c":  # the square root is not real
        result = np.where((np.abs(result.imag) > 0).any((-2, -1), keepdims=True), np.nan, result.real)
    return np.where(is_finite[..., None, None], result, np.nan).astype(x.dtype)


def _vjp(g: Any, out: Any, x: Any, function: str) -> Any:
    """The vjp: a block of the function of a larger matrix; Higham, "Functions of Matrices" (2008), thm. 3.6.

    For a matrix and a direction that block is the derivative; for the transposed matrix and a cotangent it is
    the cotangent of the matrix.
    """
    size = axis_size(x, -1)
    largest = stop_gradient(reduce_max(abs(g), (-2, -1), keepdims=True))
    scale = cast(where(largest > 0, largest, maximum(largest, 1)), g.dtype)
    transposed = matrix_transpose(x)
    above = concat([transposed, g / scale], -1)
    below = concat([zeros_like(transposed), transposed], -1)
    return _apply(concat([above, below], -2), function)[..., :size, size:] * scale


def _apply(x: Any, function: str) -> Any:
    return dispatch.current().apply(MATRIX_FUNCTION, (x,), {"function": function})


_MATRIX = [[2.0, 1.0, -0.5], [0.3, 3.0, 0.7], [0.2, 0.4, 1.0]]

MATRIX_FUNCTION = register(
    Op(
        name="matrix_function",
        doc="""The exponential, logarithm or square root of square matrices: "expm", "logm" or "sqrtm".""",
        infer=_infer,
        kernel=_kernel,
        kind=Opaque("SciPy computes functions of matrices"),
        required_shapes=require_square_shapes,
        batching_rule=LEADING,
        vjp=(_vjp,),
        samples=(
            Sample((Domain(shape=(3, 3), values=_MATRIX),), {"function": "expm"}),
            Sample(
                (Domain(shape=(2, 2, 2), values=[[[2.0, 0.5], [0.3, 1.5]], [[1.0, 0.4], [-0.2, 3.0]]]),),
                {"function": "sqrtm"},
            ),
            Sample((Domain(kinds="c", shape=(3, 3), values=_MATRIX),), {"function": "logm"}),
            Sample((Domain(shape=(2, 0, 0)),), {"function": "expm"}),
        ),
    )
)


def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """The exponential of square matrices: the sum of ``input ** k / k!``, where powers are matrix products.

    Args:
        input: of shape ``(..., n, n)``, in float32, float64, complex64 or complex128.

    Returns:
        A tensor with the shape and dtype of ``input``; nan for matrices with inf or nan. By scaling, squaring
        and Padé approximation (Al-Mohy and Higham, 2009).

    Raises:
        InvalidArgumentError: a matrix is not square.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).numpy().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return _apply(input, "expm")


def logm(input: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of square matrices: the ``y`` with ``expm(y) = input``.

    The imaginary parts of its eigenvalues are between ``-pi`` and ``pi``.

    Args:
        input: of shape ``(..., n, n)``, in complex64 or complex128; without eigenvalues of 0.

    Returns:
        Of the shape of ``input``; nan for matrices with inf or nan. By inverse scaling and squaring (Al-Mohy
        and Higham, 2012). SciPy warns of singular matrices, which have no logarithm.

    Raises:
        InvalidArgumentError: a matrix is not square.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> x = df.constant([[1.0, 1.0], [0.0, 1.0]], df.complex64)
    >>> df.math.real(df.linalg.logm(x)).numpy().round(5).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return _apply(input, "logm")


def sqrtm(input: TensorLike, name: str | None = None) -> Tensor:
    """The square root of square matrices: the ``y`` with ``y @ y = input``.

    Its eigenvalues have no negative real part.

    Args:
        input: of shape ``(..., n, n)``, in float32, float64, complex64 or complex128.

    Returns:
        Of the shape of ``input``; nan for real matrices whose root is not real, and for matrices with inf or
        nan. By the Schur decomposition (Björck and Hammarling, 1983). SciPy warns of singular matrices, which
        may have no root.

    Raises:
        InvalidArgumentError: a matrix is not square.
        DTypeError: the dtype is not supported.

    >>> import dualflow as df
    >>> df.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]).numpy().round(5).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return _apply(input, "sqrtm")
