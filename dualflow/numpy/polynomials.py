"""Polynomials by their coefficients, the highest power first."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.function.control.maps import foldl
from dualflow.numpy import calculus, operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, inexact, promote_together, tensor, to
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import reshape
from dualflow.ops.creation import ones_like, zeros_like
from dualflow.ops.joining import concat, unstack
from dualflow.ops.positions import range as range_op
from dualflow.ops.repetition import pad
from dualflow.ops.static import static_int
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike


def _row(p: Any) -> Any:
    x = tensor(p)
    if len(x.shape) > 1:
        raise InvalidArgumentError(f"Coefficients are a vector, not of shape {x.shape}.")
    return flat(x)


def polyval(p: TensorLike, x: TensorLike) -> Tensor:
    """The value of a polynomial at ``x``, by Horner's rule.

    Args:
        p: the coefficients, a vector, the highest power first.

    Returns:
        A tensor with the shape of ``x``, and the common dtype.

    Raises:
        InvalidArgumentError: ``p`` is not a vector.

    >>> import dualflow as df
    >>> int(df.numpy.polyval([3, 0, 1], 5))
    76
    """
    coefficients, at = promote_together(_row(p), tensor(x))
    value = zeros_like(at)
    if coefficients.shape[0] is None:
        return foldl(lambda partial, c: partial * at + c, coefficients, value)
    for i in range(coefficients.shape[0]):
        value = value * at + coefficients[i]
    return value


def _pad_to_equal_size(a1: Any, a2: Any) -> tuple[Any, Any]:
    """Both coefficient vectors, the shorter one padded with leading zeros."""
    x, y = promote_together(_row(a1), _row(a2))
    (n,), (m,) = operands.sizes(x), operands.sizes(y)
    size = builtins.max(n, m) if type(n) is type(m) is int else maximum(n, m)
    return pad(x, [[size - n, 0]]), pad(y, [[size - m, 0]])


def polyadd(a1: TensorLike, a2: TensorLike) -> Tensor:
    """The sum of two polynomials.

    Args:
        a1: the coefficients of a polynomial, a vector, the highest power first.
        a2: those of another one.

    Returns:
        A vector of coefficients, of the larger size and the common dtype.

    Raises:
        InvalidArgumentError: an argument is not a vector.

    >>> import dualflow as df
    >>> df.numpy.polyadd([1, 2], [1, 0, 0]).numpy()
    array([1, 1, 2])
    """
    x, y = _pad_to_equal_size(a1, a2)
    return x + y


def polysub(a1: TensorLike, a2: TensorLike) -> Tensor:
    """The difference of two polynomials.

    Args:
        a1: the coefficients of a polynomial, a vector, the highest power first.
        a2: those of another one.

    Returns:
        A vector of coefficients, of the larger size and the common dtype.

    Raises:
        InvalidArgumentError: an argument is not a vector.

    >>> import dualflow as df
    >>> df.numpy.polysub([1, 0, 0], [1, 2]).numpy()
    array([ 1, -1, -2])
    """
    x, y = _pad_to_equal_size(a1, a2)
    return x - y


def polymul(a1: TensorLike, a2: TensorLike) -> Tensor:
    """The product of two polynomials.

    Args:
        a1: the coefficients of a polynomial, a vector, the highest power first.
        a2: those of another one.

    Returns:
        A vector of ``n + m - 1`` coefficients, of the common dtype.

    Raises:
        InvalidArgumentError: an argument is not a vector.

    >>> import dualflow as df
    >>> df.numpy.polymul([1, 1], [1, -1]).numpy()
    array([ 1,  0, -1])
    """
    x, y = promote_together(_row(a1), _row(a2))
    return calculus.convolve(x, y)


def polydiv(u: TensorLike, v: TensorLike) -> tuple[Tensor, Tensor]:
    """The quotient and the remainder of two polynomials, by long division.

    Args:
        u: the coefficients of the dividend, a vector, the highest power first.
        v: those of the divisor.

    Returns:
        A pair of vectors: the quotient, and the remainder with the size of ``u``, of which leading zeros
        stay.

    Raises:
        InvalidArgumentError: an argument is not a vector.
        DTypeError: ``u`` or ``v`` can't become a tensor.

    >>> import dualflow as df
    >>> [part.numpy().tolist() for part in df.numpy.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])]
    [[1.5, 1.75], [0.0, 0.0, 0.25]]
    """
    x, y = promote_together(inexact(_row(u)), inexact(_row(v)))
    n, m = x.shape[0] - 1, y.shape[0] - 1
    quotient = []
    for i in range(builtins.max(n - m + 1, 0)):
        factor = x[i] / y[0]
        quotient.append(reshape(factor, [1]))
        x = x - concat([zeros_like(x[:i]), factor * y, zeros_like(x[i + m + 1 :])], 0)
    return (concat(quotient, 0) if quotient else zeros_like(x[:1])), x


def polyder(p: TensorLike, m: IntLike = 1) -> Tensor:
    """The ``m``-th derivative of a polynomial.

    Args:
        p: the coefficients, a vector, the highest power first.
        m: how often to differentiate, 0 or more.

    Returns:
        A vector of ``m`` coefficients less than ``p``, int64 for integers, float64 for floats.

    Raises:
        InvalidArgumentError: ``p`` is not a vector, or ``m`` is negative.

    >>> import dualflow as df
    >>> df.numpy.polyder([1, 2, 3]).numpy()
    array([2, 2])
    """
    x, times = _row(p), static_int(m, "m")
    if times < 0:
        raise InvalidArgumentError(f"polyder needs m >= 0, not {m}.")
    for _ in range(times):
        x = x[:-1]
        x = x * tensor(_powers(x), _derivative_dtype(x))
    return x


def _powers(x: Any) -> Any:
    """The numbers from the size of the vector ``x`` down to 1."""
    (count,) = operands.sizes(x)
    return np.arange(count, 0, -1) if type(count) is int else count - range_op(count, dtype=int64)


def _derivative_dtype(x: Any) -> Any:
    """The dtype of coefficients multiplied by their powers, which are integers."""
    if not x.dtype.is_inexact:
        return np.result_type(x.dtype.dtype, np.int64)
    return np.result_type(x.dtype.dtype, np.float64)


def polyint(p: TensorLike, m: IntLike = 1, k: IntLike | None = None) -> Tensor:
    """The ``m``-th integral of a polynomial.

    Args:
        p: the coefficients, a vector, the highest power first.
        m: how often to integrate, 0 or more.
        k: the constants of integration, a number or one for each time; 0 by default.

    Returns:
        A vector of ``m`` coefficients more than ``p``, float64 or complex128.

    Raises:
        InvalidArgumentError: ``p`` is not a vector, ``m`` is negative, or there are fewer than ``m``
            constants.

    >>> import dualflow as df
    >>> df.numpy.polyint([2.0, 2.0]).numpy()
    array([1., 2., 0.])
    """
    x, times = _row(p), static_int(m, "m")
    if times < 0:
        raise InvalidArgumentError(f"polyint needs m >= 0, not {m}.")
    constants = [0.0] * times if k is None else unstack(flat(tensor(k)))
    constants = constants * times if len(constants) == 1 else constants
    if len(constants) < times:
        raise InvalidArgumentError(
            f"polyint needs one constant of integration for all, or {times} of them, not {len(constants)}."
        )
    for constant in constants[:times]:
        coefficients = inexact(x, np.result_type(x.dtype.dtype, np.float64))
        x = concat(
            [
                coefficients / tensor(_powers(x), coefficients.dtype),
                reshape(tensor(constant, coefficients.dtype), [1]),
            ],
            0,
        )
    return x


def poly(seq_of_zeros: TensorLike) -> Tensor:
    """The coefficients of the polynomial with the given roots, whose highest coefficient is 1.

    Args:
        seq_of_zeros: the roots, a vector.

    Returns:
        A vector of one element more, the highest power first, in the dtype of the roots, float64 for
        integers.

    Raises:
        InvalidArgumentError: ``seq_of_zeros`` is not a vector.
        DTypeError: ``seq_of_zeros`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.poly([1, 2]).numpy()
    array([ 1., -3.,  2.])
    """
    roots = inexact(seq_of_zeros)
    if len(roots.shape) != 1:
        raise InvalidArgumentError(f"poly takes the roots as a vector, not shape {roots.shape}.")
    coefficients = ones_like(roots[:1]) if roots.shape[0] else to(tensor([1.0]), roots.dtype)
    for i in range(static_int(roots.shape[0], "the number of roots")):
        coefficients = concat([coefficients, zeros_like(coefficients[:1])], 0) - concat(
            [zeros_like(coefficients[:1]), coefficients * roots[i]], 0
        )
    return coefficients


complete_docstrings(globals())
make_entries(globals())
