"""The roots of polynomials, and polynomials through points: what takes linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import creation, linalg, products
from dualflow.numpy.operands import agreed, inexact, tensor, to
from dualflow.ops.arrangement import transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.creation import zeros as filled_with_zeros
from dualflow.ops.joining import concat
from dualflow.ops.powers import sqrt
from dualflow.ops.static import known_value, static_int
from dualflow.ops.tensor import Tensor


def roots(p: Any) -> Tensor:
    """The roots of the polynomial with coefficients ``p``, as complex numbers.

    Leading zeros are left out where the coefficients are known while tracing.

    Raises:
        InvalidArgumentError: not a vector.

    >>> import dualflow as df
    >>> sorted(df.numpy.real(df.numpy.roots([1.0, -3.0, 2.0])).numpy().round(6).tolist())
    [1.0, 2.0]
    """
    x = inexact(p)
    if len(x.shape) != 1:
        raise InvalidArgumentError(f"roots takes coefficients as a vector, not shape {x.shape}.")
    coefficients, after = known_value(x), 0
    if coefficients is not None:
        there = np.flatnonzero(coefficients)
        first, last = (there[0], there[-1] + 1) if there.size else (0, 0)
        after = len(coefficients) - int(last) if there.size else 0
        x = x[int(first) : int(last)]
    kind = np.result_type(x.dtype.dtype, np.complex64)
    zeros = filled_with_zeros([after], kind)
    count = static_int(x.shape[0], "the number of coefficients")
    if count < 2:
        return zeros
    companion = concat([-(x[1:] / x[0])[None, :], tensor(np.eye(count - 2, count - 1), x.dtype)], 0)
    return concat([linalg.eigvals(companion), zeros], 0)


def polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """The coefficients of the polynomial of degree ``deg`` closest to the points (x, y), by least squares.

    Args:
        x: the points' places, a vector.
        y: their values, a vector or several as columns.
        deg: the degree.
        rcond: singular values not above ``rcond`` times the largest count as 0.
        full: return the squared rests, the rank, the singular values and ``rcond`` too.
        w: weights of the rests.
        cov: return the covariance of the coefficients too; "unscaled" takes the weights as they are.

    Raises:
        InvalidArgumentError: a negative degree, or points of other shapes.

    >>> import dualflow as df
    >>> df.numpy.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).numpy().round(6).tolist()
    [2.0, 1.0]
    """
    places, values = agreed(inexact(x), inexact(y))
    order = static_int(deg, "deg") + 1
    if order < 1 or len(places.shape) != 1 or values.shape[0] != places.shape[0]:
        raise InvalidArgumentError(
            f"polyfit takes a degree of 0 or more and as many values as places, not {deg}, {values.shape} "
            f"and {places.shape}."
        )
    count = static_int(places.shape[0], "the number of points")
    bound = count * float(np.finfo(places.dtype.dtype).eps) if rcond is None else rcond
    rows = creation.vander(places, order)
    if w is not None:
        weights = to(tensor(w), rows.dtype)
        rows = rows * weights[:, None]
        values = values * (weights if len(values.shape) == 1 else weights[:, None])
    scale = sqrt(reduce_sum(rows * rows, 0))
    scaled = rows / scale
    coefficients, rests, rank, singular = linalg.lstsq(scaled, values, bound)
    coefficients = transpose(transpose(coefficients) / scale)
    if full:
        return coefficients, rests, rank, singular, bound
    if not cov:
        return coefficients
    base = linalg.inv(products.matmul(transpose(scaled), scaled)) / products.outer(scale, scale)
    factor = 1.0 if cov == "unscaled" else rests / (count - order)
    return coefficients, base[..., None] * factor if len(values.shape) > 1 else base * factor


make_entries(globals())
