"""Determinants, inverses and equations of matrices, which are the last two axes."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from dualflow import linalg as matrices
from dualflow.array_api.array import Array, in_floats, tensor_of
from dualflow.array_api.decompositions import adjoint, real_part
from dualflow.array_api.products import matrix_product
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import broadcast
from dualflow.core.tracebacks import make_entries
from dualflow.ops import reduction
from dualflow.ops.arithmetic import multiply
from dualflow.ops.arrangement import expand_dims, squeeze
from dualflow.ops.broadcasting import broadcast_to, reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.positions import eye
from dualflow.ops.selection import where
from dualflow.ops.static import known_sizes
from dualflow.ops.tensor import Tensor


class SlogdetResult(NamedTuple):
    """What :func:`slogdet` returns."""

    sign: Array
    logabsdet: Array


def det(x: Any, /) -> Array:
    """The determinants of square matrices.

    Raises:
        InvalidArgumentError: not square matrices.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.det(xp.asarray([[2.0, 0.0], [0.0, 3.0]])).tolist()
    6.0
    """
    return Array(matrices.det(in_floats(x)))


def slogdet(x: Any, /) -> SlogdetResult:
    """The signs of the determinants of square matrices, and the logarithms of their magnitudes.

    Returns:
        A named tuple of ``sign``, complex for complex matrices, and ``logabsdet``, real.

    Raises:
        InvalidArgumentError: not square matrices.

    >>> import dualflow.array_api as xp
    >>> [found.tolist() for found in xp.linalg.slogdet(xp.asarray([[-1.0, 0.0], [0.0, 1.0]]))]
    [-1.0, 0.0]
    """
    sign, logabsdet = matrices.slogdet(in_floats(x))
    return SlogdetResult(Array(sign), Array(real_part(logabsdet)))


def inv(x: Any, /) -> Array:
    """The inverses of square matrices.

    Raises:
        InvalidArgumentError: not square, or not invertible.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return Array(matrices.inv(in_floats(x)))


def solve(x1: Any, x2: Any, /) -> Array:
    """The solutions ``x`` of ``x1 @ x = x2``.

    Args:
        x1: square matrices.
        x2: right-hand sides: a vector, or matrices; the batches broadcast.

    Raises:
        InvalidArgumentError: sizes that do not fit, or matrices that are not invertible.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a, b = in_floats(x1), in_floats(x2)
    vector = len(b.shape) == 1
    right = expand_dims(b, 1) if vector else b
    batch = broadcast([a.shape[:-2], right.shape[:-2]])
    a, right = (broadcast_to(z, [*batch, *z.shape[-2:]]) for z in (a, right))
    found = matrices.solve(a, right)
    return Array(squeeze(found, -1) if vector else found)


def pinv(x: Any, /, *, rtol: Any = None) -> Array:
    """The pseudo-inverses of matrices.

    Args:
        x: matrices.
        rtol: singular values up to this part of the largest count as 0: a number, or one for each matrix. By
            default the larger size times the dtype's ``eps``.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    tensor = in_floats(x)
    s, u, v = matrices.svd(tensor)
    kept = _above(s, tensor, rtol)
    inverse = where(kept, 1 / where(kept, s, 1), 0)
    scaled = multiply(v, expand_dims(cast(inverse, v.dtype), -2))
    return Array(matrix_product(scaled, adjoint(u)))


def _above(s: Any, x: Tensor, rtol: Any) -> Any:
    """Whether singular values of the matrices ``x`` do not count as 0."""
    if rtol is None:
        rtol = max(known_sizes(x.shape, "the default rtol", (-2, -1))) * float(np.finfo(s.dtype.dtype).eps)
    bound = rtol if isinstance(rtol, float | int) else expand_dims(cast(tensor_of(rtol), s.dtype), -1)
    largest = reduction.reduce_max(s, -1, keepdims=True) if s.shape[-1] else reduce_sum(s, -1, keepdims=True)
    return s > multiply(largest, bound)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Array:
    """The ranks of matrices: how many singular values do not count as 0; see :func:`pinv`.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.matrix_rank(xp.asarray([[1.0, 1.0], [1.0, 1.0]])).tolist()
    1
    """
    tensor = in_floats(x)
    kept = _above(matrices.svd(tensor, compute_uv=False), tensor, rtol)
    return Array(reduce_sum(cast(kept, "int64"), -1))


def matrix_power(x: Any, n: int, /) -> Array:
    """Square matrices to an integer power; the inverse's for a negative one.

    Raises:
        InvalidArgumentError: not square, or not invertible where ``n`` is negative.

    >>> import dualflow.array_api as xp
    >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    tensor, times = tensor_of(x), operator.index(n)
    if len(tensor.shape) < 2 or tensor.shape[-1] != tensor.shape[-2]:
        raise InvalidArgumentError(
            f"matrix_power takes square matrices, not an array of shape {tensor.shape}."
        )
    if not times:
        return Array(broadcast_to(eye(tensor.shape[-1], dtype=tensor.dtype), tensor.shape))
    square = tensor if times > 0 else matrices.inv(in_floats(x))
    found, left = None, abs(times)
    while left:
        if left & 1:
            found = square if found is None else matrix_product(found, square)
        left >>= 1
        square = matrix_product(square, square) if left else square
    return Array(found)


make_entries(globals())
