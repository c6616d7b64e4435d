"""roots and polyfit: the functions of polynomials that need linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import linalg, matrices, products
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import inexact, promote_together, tensor, to
from dualflow.ops.arrangement import transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.creation import zeros as tensor_zeros
from dualflow.ops.joining import concat
from dualflow.ops.powers import sqrt
from dualflow.ops.static import static_int, static_value
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike


def roots(p: TensorLike) -> Tensor:
    """The roots of the polynomial with coefficients ``p``: the eigenvalues of its companion matrix.

    Leading zeros are left out where the coefficients are known while tracing.

    Args:
        p: the coefficients, a vector, the highest power first.

    Returns:
        A complex vector of ``n - 1`` roots, where ``n`` is the number of coefficients without leading zeros;
        complex64 for float32, else complex128.

    Raises:
        InvalidArgumentError: ``p`` is not a vector.

    >>> import dualflow as df
    >>> sorted(df.numpy.real(df.numpy.roots([1.0, -3.0, 2.0])).numpy().round(6).tolist())
    [1.0, 2.0]
    """
    x = inexact(p)
    if len(x.shape) != 1:
        raise InvalidArgumentError(f"roots takes coefficients as a vector, not shape {x.shape}.")
    coefficients, trailing_zeros = static_value(x), 0
    if coefficients is not None:
        nonzero = np.flatnonzero(coefficients)
        first, last = (nonzero[0], nonzero[-1] + 1) if nonzero.size else (0, 0)
        trailing_zeros = len(coefficients) - int(last) if nonzero.size else 0
        x = x[int(first) : int(last)]
    kind = np.result_type(x.dtype.dtype, np.complex64)
    zeros = tensor_zeros([trailing_zeros], kind)
    count = static_int(x.shape[0], "the number of coefficients")
    if count < 2:
        return zeros
    companion = concat([-(x[1:] / x[0])[None, :], tensor(np.eye(count - 2, count - 1), x.dtype)], 0)
    return concat([linalg.eigvals(companion), zeros], 0)


def polyfit(
    x: TensorLike,
    y: TensorLike,
    deg: IntLike,
    rcond: float | None = None,
    full: bool = False,
    w: TensorLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The coefficients of the polynomial of degree ``deg`` that fits points best, by least squares.

    Args:
        x: the coordinates of the points, a vector; integers count as float64.
        y: the values, a vector, or a matrix with a set of values in each column.
        deg: the degree, 0 or more.
        rcond: singular values not above ``rcond`` times the largest count as 0; the number of points times
            the dtype's ``eps`` by default.
        full: whether to return the squared residuals, the rank, the singular values and ``rcond``, too.
        w: weights of the residuals, a vector; all 1 by default.
        cov: whether to return the covariance matrix of the coefficients, too; "unscaled" doesn't scale it by
            the residuals.

    Returns:
        A vector of ``deg + 1`` coefficients, the highest power first, or a column of them for each column of
        ``y``, in the common dtype of ``x`` and ``y``. With ``full`` or ``cov``, a tuple.

    Raises:
        InvalidArgumentError: ``deg`` is negative, or the shapes of ``x`` and ``y`` don't fit.

    >>> import dualflow as df
    >>> df.numpy.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).numpy().round(6).tolist()
    [2.0, 1.0]
    """
    points, values = promote_together(inexact(x), inexact(y))
    order = static_int(deg, "deg") + 1
    if order < 1 or len(points.shape) != 1 or values.shape[0] != points.shape[0]:
        raise InvalidArgumentError(
            f"polyfit takes a degree of 0 or more and as many values as points, not {deg}, {values.shape} "
            f"and {points.shape}."
        )
    count = static_int(points.shape[0], "the number of points")
    rcond = count * float(np.finfo(points.dtype.dtype).eps) if rcond is None else rcond
    vandermonde = matrices.vander(points, order)
    if w is not None:
        weights = to(tensor(w), vandermonde.dtype)
        vandermonde = vandermonde * weights[:, None]
        values = values * (weights if len(values.shape) == 1 else weights[:, None])
    scale = sqrt(reduce_sum(vandermonde * vandermonde, 0))
    scaled = vandermonde / scale
    coefficients, residuals, rank, singular = linalg.lstsq(scaled, values, rcond)
    coefficients = transpose(transpose(coefficients) / scale)
    if full:
        return coefficients, residuals, rank, singular, rcond
    if not cov:
        return coefficients
    unscaled_covariance = linalg.inv(products.matmul(transpose(scaled), scaled)) / products.outer(
        scale, scale
    )
    residual_variance = 1.0 if cov == "unscaled" else residuals / (count - order)
    if len(values.shape) > 1:
        unscaled_covariance = unscaled_covariance[..., None]
    return coefficients, unscaled_covariance * residual_variance


complete_docstrings(globals())
make_entries(globals())
