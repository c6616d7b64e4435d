"""Means, spreads and norms: compositions of sums and extremes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, float16, float32, float_for, int64, uint64
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arithmetic import abs, divide, maximum, square, truncatemod
from dualflow.ops.arrangement import expand_dims, squeeze, transpose
from dualflow.ops.broadcasting import REDUCE_SUM, reduce_sum, reduction_axes
from dualflow.ops.choice import masked
from dualflow.ops.comparison import isfinite, not_equal
from dualflow.ops.complex_numbers import conj, real
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.decomposition import singular_values
from dualflow.ops.exponential import exp
from dualflow.ops.powers import log, pow, sqrt
from dualflow.ops.reduction import reduce_max
from dualflow.ops.shapes import shape
from dualflow.ops.static import dtype_of, ints, shape_of

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def _count(x: Any, axes: tuple[int, ...], dtype: DType) -> Any:
    """How many elements a reduction of ``x`` joins: a number, or a tensor if only the run will tell."""
    count: Any = 1
    for a, size in enumerate(shape_of(x)):
        if a in axes:
            count = count * (cast(shape(x)[a], dtype) if size is None else size)
    return count


def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean over ``axis`` (all axes by default), in the input's dtype: that of integers is cut off.

    Integers are summed in 64 bits and float16 in float32, so that sums larger than these hold do no harm.

    Args:
        input_tensor: numbers of any shape.
        axis: an axis or several; all by default.
        keepdims: keep the reduced axes, as size 1.
        name: ignored; as in TensorFlow.

    Returns:
        Where there are no elements, nan for floats and 0 for integers.

    Raises:
        InvalidArgumentError: an axis is out of range or named twice.

    >>> import dualflow as df
    >>> df.reduce_mean([[1.0, 2.0], [3.0, 5.0]], axis=0).numpy()
    array([2. , 3.5], dtype=float32)
    """
    axes = reduction_axes(input_tensor, axis)
    dtype = dtype_of(input_tensor)
    if dtype.is_integer:
        return _integer_mean(input_tensor, axes, keepdims, dtype)
    if dtype is float16:
        return cast(reduce_mean(cast(input_tensor, float32), axes, keepdims), float16)
    total = dispatch.current().apply(REDUCE_SUM, (input_tensor,), {"axis": axes, "keepdims": bool(keepdims)})
    return divide(total, _count(input_tensor, axes, dtype))


def _integer_mean(x: Any, axes: tuple[int, ...], keepdims: bool, dtype: DType) -> Any:
    """The quotient of sum and count, cut off towards zero; of no elements 0."""
    wide = uint64 if dtype.is_unsigned else int64
    total = reduce_sum(cast(x, wide), axes, keepdims)
    count = _count(x, axes, wide)
    count = max(count, 1) if type(count) is int else maximum(count, 1)
    return cast((total - truncatemod(total, count)) // count, dtype)


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean squared distance from the mean over ``axis``, by default all; integers become float32.

    Of complex numbers it is real.
    """
    x = as_float(input_tensor)
    return reduce_mean(squared_magnitude(x - reduce_mean(x, axis, keepdims=True)), axis, keepdims)


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of :func:`reduce_variance`."""
    return sqrt(reduce_variance(input_tensor, axis, keepdims))


def squared_magnitude(x: Any) -> Any:
    """``abs(x) ** 2``: real, and with a gradient at 0."""
    return real(x * conj(x)) if x.dtype.is_complex else square(x)


def as_float(x: Any) -> Any:
    """``x`` as a tensor of floats: float32 for integers."""
    tensor = convert_to_tensor(x)
    target = float_for(tensor.dtype)
    return tensor if tensor.dtype is target else cast(tensor, target)


def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """``log(sum(exp(x)))`` over ``axis`` (all axes by default), without overflow.

    >>> import dualflow as df
    >>> float(df.reduce_logsumexp([1000.0, 1000.0]))
    1000.6931...
    """
    x = as_float(input_tensor)
    axes = reduction_axes(x, axis)
    high = reduce_max(x, axes, keepdims=True)
    high = stop_gradient(masked(isfinite(high), high))
    found = log(reduce_sum(exp(x - high), axes, keepdims))
    return found + (high if keepdims or not axes else squeeze(high, axes))


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares over ``axis`` (all axes by default)."""
    return sqrt(reduce_sum(square(abs(input_tensor)), axis, keepdims))


def count_nonzero(
    input: Any, axis: Any = None, keepdims: bool = False, dtype: Any = int64, name: str | None = None
) -> Tensor:
    """How many elements are not 0 (or hold), over ``axis`` (all axes by default)."""
    x = convert_to_tensor(input)
    return reduce_sum(cast(x if x.dtype.is_bool else not_equal(x, 0), as_dtype(dtype)), axis, keepdims)


def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The norm of vectors or matrices.

    Args:
        tensor: floats or complex numbers of any shape; integers become float32.
        ord: of vectors "euclidean", a positive number or ``inf``; of matrices "euclidean" or "fro" (the
            root of the sum of squares), 1 (the largest sum of a column), 2 (the largest singular value) or
            ``inf`` (the largest sum of a row).
        axis: the axis of vectors; two axes, of the rows and columns of matrices; by default all elements
            are one vector.
        keepdims: keep the reduced axes, as size 1.
        name: ignored; as in TensorFlow.

    Returns:
        Real numbers, also of a complex tensor.

    Raises:
        InvalidArgumentError: an unknown ``ord``, or more than two axes.
        DTypeError: the 2-norm of float16 matrices.

    >>> import dualflow as df
    >>> float(df.norm([3.0, 4.0])), float(df.norm([3.0, 4.0], ord=1))
    (5.0, 7.0)
    >>> float(df.norm([[3.0, 4.0], [5.0, 6.0]], ord=1, axis=(0, 1)))
    10.0
    """
    x = as_float(tensor)
    if axis is None or not np.ndim(axis):
        return _vector_norm(x, ord, axis, keepdims)
    axes = reduction_axes(x, axis)
    if len(axes) != 2:
        raise InvalidArgumentError(f"norm's axis is None, an integer or two of them, not {axis!r}.")
    rows, columns = (a % len(x.shape) for a in ints(axis, "axis"))
    return _matrix_norm(x, ord, rows, columns, keepdims)


def _vector_norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    if ord in ("euclidean", 2):
        return reduce_euclidean_norm(x, axis, keepdims)
    if ord == 1:
        return reduce_sum(abs(x), axis, keepdims)
    if ord == math.inf:
        return reduce_max(abs(x), axis, keepdims)
    if isinstance(ord, int | float) and ord > 0:
        return pow(reduce_sum(pow(abs(x), ord), axis, keepdims), 1 / ord)
    raise InvalidArgumentError(
        f"norm's ord of vectors is 'euclidean', inf or a positive number, not {ord!r}; give two axes for the "
        "norm of matrices."
    )


def _matrix_norm(x: Any, ord: Any, rows: int, columns: int, keepdims: bool) -> Any:
    if ord in ("euclidean", "fro"):
        return reduce_euclidean_norm(x, (rows, columns), keepdims)
    if ord == 2:
        others = [a for a in range(len(x.shape)) if a not in (rows, columns)]
        largest = reduce_max(singular_values(transpose(x, (*others, rows, columns))), -1)
        return expand_dims(largest, sorted((rows, columns))) if keepdims else largest
    if ord not in (1, math.inf):
        raise InvalidArgumentError(
            f"norm's ord of matrices is 'euclidean', 'fro', 1, 2 or inf, not {ord!r}; give one axis for the "
            "norm of vectors."
        )
    first, second = (rows, columns) if ord == 1 else (columns, rows)
    found = reduce_max(reduce_sum(abs(x), first, keepdims=True), second, keepdims=True)
    return found if keepdims else squeeze(found, (rows, columns))
