"""Comparisons of tensors with a tolerance, and as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import promote_together, tensor, to
from dualflow.ops.arithmetic import abs as magnitude
from dualflow.ops.comparison import equal, isfinite, isnan, logical_and, logical_or
from dualflow.ops.reduction import reduce_all
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


def isclose(
    a: TensorLike, b: TensorLike, rtol: TensorLike = 1e-05, atol: TensorLike = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)``; infinities are close if they are equal.

    Args:
        rtol: the relative tolerance, a number or numbers that broadcast.
        atol: the absolute tolerance, as ``rtol``.
        equal_nan: whether nan is close to nan.

    Returns:
        A bool tensor with the shape to which the inputs broadcast.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.numpy.isclose([1.0, 1.1], 1.0 + 1e-9).numpy()
    array([ True, False])
    """
    x, y = promote_together(tensor(a), tensor(b))
    if not x.dtype.is_inexact:
        x, y = to(x, np.float64), to(y, np.float64)
    tolerance = magnitude(y) * rtol + atol
    near = logical_and(magnitude(x - y) <= tolerance, isfinite(y))
    close = logical_or(near, equal(x, y))
    return logical_or(close, logical_and(isnan(x), isnan(y))) if equal_nan else close


def allclose(
    a: TensorLike, b: TensorLike, rtol: TensorLike = 1e-05, atol: TensorLike = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether all elements of two tensors are close; see :func:`isclose`.

    Args:
        rtol: the relative tolerance, a number or numbers that broadcast.
        atol: the absolute tolerance, as ``rtol``.
        equal_nan: whether nan is close to nan.

    Returns:
        A scalar bool tensor.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> bool(df.numpy.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9]))
    True
    """
    return reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: TensorLike, a2: TensorLike, equal_nan: bool = False) -> Tensor:
    """Whether both arguments have the same shape and equal elements.

    Args:
        equal_nan: whether nan equals nan.

    Returns:
        A scalar bool tensor.

    >>> import dualflow as df
    >>> bool(df.numpy.array_equal([1, 2], [1, 2])), bool(df.numpy.array_equal([1, 2], [[1, 2]]))
    (True, False)
    """
    x, y = promote_together(tensor(a1), tensor(a2))
    if x.shape != y.shape:
        return tensor(False)
    same = equal(x, y)
    if equal_nan and x.dtype.is_inexact:
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return reduce_all(same)


def array_equiv(a1: TensorLike, a2: TensorLike) -> Tensor:
    """Whether the arguments broadcast, and have equal elements then.

    Returns:
        A scalar bool tensor.

    >>> import dualflow as df
    >>> bool(df.numpy.array_equiv([1, 1], 1))
    True
    """
    x, y = promote_together(tensor(a1), tensor(a2))
    try:
        return reduce_all(equal(x, y))
    except ValueError:
        return tensor(False)


complete_docstrings(globals())
make_entries(globals())
