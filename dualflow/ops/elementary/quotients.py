"""Quotients: rounded towards zero, and with a result for a division by zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.arithmetic import divide, divide_no_nan, floordiv, multiply, subtract, truncatemod
from dualflow.ops.record import promote_together
from dualflow.ops.rounding import trunc

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def truncatediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The quotient rounded towards zero.

    Args:
        x: real numbers other than bools, of any shape.
        y: likewise; the shapes broadcast, and the dtypes promote to a common one.

    Returns:
        A tensor of the broadcast shape with the common dtype.

    Raises:
        InvalidArgumentError: an integer is divided by 0, or the shapes do not broadcast.
        DTypeError: an input holds bools, complex numbers or strings.

    >>> import dualflow as df
    >>> df.truncatediv([7, -7], 2).numpy()
    array([ 3, -3], dtype=int32)
    """
    x, y = promote_together(x, y)
    if x.dtype.is_integer:
        return floordiv(subtract(x, truncatemod(x, y)), y)
    return trunc(divide(x, y))


def realdiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The quotient of floats or complex numbers.

    Args:
        x: floats or complex numbers, of any shape.
        y: likewise; the shapes broadcast, and the dtypes promote to a common one.

    Returns:
        A tensor of the broadcast shape with the common dtype.

    Raises:
        DTypeError: an input holds integers or bools; see :func:`dualflow.divide`.
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.realdiv([1.0], [4.0]).numpy()
    array([0.25], dtype=float32)
    """
    x, y = promote_together(x, y)
    if not x.dtype.is_inexact:
        raise DTypeError(f"realdiv takes floats or complex numbers, not {x.dtype.name}; use df.divide.")
    return divide(x, y)


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """``1 / x``, and 0 where ``x`` is 0, as is the gradient there.

    Args:
        x: numbers of any shape.

    Returns:
        A tensor with the shape of ``x``, of a float or complex dtype.

    Raises:
        DTypeError: ``x`` holds strings.

    >>> import dualflow as df
    >>> df.math.reciprocal_no_nan([2.0, 0.0]).numpy()
    array([0.5, 0. ], dtype=float32)
    """
    return divide_no_nan(1.0, x)


def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """``scalar * x``, with the dtype of ``x``.

    Args:
        scalar: a scalar.
        x: numbers of any shape.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: ``scalar`` is not a scalar.

    >>> import dualflow as df
    >>> df.scalar_mul(2, [1.0, 3.0]).numpy()
    array([2., 6.], dtype=float32)
    """
    factor, x = promote_together(scalar, x)
    if len(factor.shape):
        raise InvalidArgumentError(
            f"scalar_mul takes one number, not a tensor of shape {factor.shape}; use df.multiply."
        )
    return multiply(factor, x)
