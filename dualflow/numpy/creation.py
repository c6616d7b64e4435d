"""Tensors from numbers: ``df.numpy``'s creation functions, with NumPy's default dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.operands import agreed, inexact, numpy_dtype, refuse, tensor, to
from dualflow.ops.arithmetic import abs as magnitude
from dualflow.ops.arithmetic import sign
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.conversion import identity as same
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.creation import ones as filled_with_ones
from dualflow.ops.creation import ones_like as like_ones
from dualflow.ops.creation import zeros as filled_with_zeros
from dualflow.ops.creation import zeros_like as like_zeros
from dualflow.ops.exponential import exp
from dualflow.ops.joining import concat
from dualflow.ops.positions import range as counted
from dualflow.ops.powers import log, pow
from dualflow.ops.rounding import floor
from dualflow.ops.static import ints, static_int
from dualflow.ops.tensor import Tensor

_TENSORS = (AbstractTensor, AbstractVariable)


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Tensor:
    """``object`` as a tensor: a number, an array, a tensor, or nested lists of them, of NumPy's dtype for it.

    Raises:
        InvalidArgumentError: lists of different lengths.
        DTypeError: what holds no numbers.

    >>> import dualflow as df
    >>> df.numpy.array([1, 2]).dtype, df.numpy.array([1.0, df.constant(2.0)]).dtype
    (dualflow.int64, dualflow.float32)
    """
    refuse("array", like=like)
    x = tensor(object, dtype)
    missing = ndmin - len(x.shape)
    return x[(None,) * missing] if missing > 0 else x


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Tensor:
    """``a`` as a tensor; see :func:`array`."""
    refuse("asarray", like=like)
    return tensor(a, dtype)


def asanyarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Tensor:
    """``a`` as a tensor; see :func:`array`."""
    return asarray(a, dtype, order, like=like)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Tensor:
    """``a`` as a tensor of one axis at least."""
    refuse("ascontiguousarray", like=like)
    x = tensor(a, dtype)
    return x if x.shape else x[None]


def copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    """``a`` as a tensor of its own."""
    return same(tensor(a))


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """``x`` in another dtype.

    >>> import dualflow as df
    >>> df.numpy.astype([1.7, -1.7], int).numpy()
    array([ 1, -1])
    """
    return to(tensor(x), dtype)


def zeros(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Tensor:
    """Zeros, of float64 by default.

    >>> import dualflow as df
    >>> df.numpy.zeros(2).numpy()
    array([0., 0.])
    """
    refuse("zeros", like=like)
    return filled_with_zeros(_shape(shape), numpy_dtype(dtype or float))


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Tensor:
    """Ones, of float64 by default."""
    refuse("ones", like=like)
    return filled_with_ones(_shape(shape), numpy_dtype(dtype or float))


def empty(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Tensor:
    """Zeros: a tensor has no elements that are left as they were."""
    return zeros(shape, dtype, order, like=like)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tensor:
    """``fill_value``, which broadcasts, in each place of ``shape``."""
    refuse("full", like=like)
    return broadcast_to(tensor(fill_value, dtype), _shape(shape))


def _shape(shape: Any) -> Any:
    """A size alone is a shape of one axis."""
    single = not isinstance(shape, list | tuple) and not getattr(shape, "shape", ())
    return [shape] if single else shape


def zeros_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """Zeros of the shape and dtype of ``a``."""
    x = tensor(a)
    target = x.dtype if dtype is None else as_dtype(numpy_dtype(dtype))
    return like_zeros(x, target) if shape is None else zeros(shape, target)


def ones_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """Ones of the shape and dtype of ``a``."""
    x = tensor(a)
    target = x.dtype if dtype is None else as_dtype(numpy_dtype(dtype))
    return like_ones(x, target) if shape is None else ones(shape, target)


def empty_like(
    prototype: Any,
    /,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """Zeros of the shape and dtype of ``prototype``."""
    return zeros_like(prototype, dtype, order, subok, shape)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """``fill_value``, which broadcasts, in the shape and dtype of ``a``."""
    x = tensor(a)
    target = x.dtype if dtype is None else as_dtype(numpy_dtype(dtype))
    value = tensor(fill_value, target)
    if shape is None and not x.shape.is_static:
        return value * like_ones(x, target)
    return broadcast_to(value, tuple(x.shape) if shape is None else _shape(shape))


# Ranges


def arange(
    start_or_stop: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    like: Any = None,
) -> Tensor:
    """The numbers from a start (0 where one number is given) up to ``stop``, which is left out, by ``step``.

    >>> import dualflow as df
    >>> df.numpy.arange(2, 9, 3).numpy()
    array([2, 5, 8])
    """
    refuse("arange", like=like)
    start, end = (0, start_or_stop) if stop is None else (start_or_stop, stop)
    limits = (start, end, 1 if step is None else step)
    if not any(isinstance(x, _TENSORS) for x in limits):
        return convert_to_tensor(np.arange(*limits, dtype=None if dtype is None else numpy_dtype(dtype)))
    start, end, step = agreed(*limits, dtype=dtype)
    return counted(start, end, step, start.dtype)


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which is the last if ``endpoint``.

    ``start`` and ``stop`` broadcast, and the numbers stand along ``axis``. With ``retstep`` the distance is
    returned too.

    >>> import dualflow as df
    >>> df.numpy.linspace(0, 1, 5).numpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    count = static_int(num, "num")
    if count < 0:
        raise InvalidArgumentError(f"linspace gives 0 numbers or more, not {count}.")
    first, last = agreed(_floating(start), _floating(stop))
    first, last = operands.broadcast_together(first, last)
    pieces = count - 1 if endpoint else count
    shape = (-1, *[1] * len(first.shape))
    place = reshape(tensor(np.arange(count), first.dtype), shape)
    step = (last - first) / pieces if pieces > 0 else last * math.nan
    numbers = first + (place * step if pieces > 0 else place * (last - first))
    if endpoint and count > 1:
        numbers = concat([numbers[:-1], last[None]], 0)
    if dtype is not None:
        target = numpy_dtype(dtype)
        numbers = to(floor(numbers) if target.kind in "iu" else numbers, target)
    where = normalize_axis(axis, len(numbers.shape))
    if where:
        order = list(range(1, len(numbers.shape)))
        numbers = transpose(numbers, [*order[:where], 0, *order[where:]])
    return (numbers, step) if retstep else numbers


def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """``base`` to the powers that :func:`linspace` gives.

    >>> import dualflow as df
    >>> df.numpy.logspace(0, 2, 3).numpy()
    array([  1.,  10., 100.])
    """
    ground, powers = agreed(base, linspace(start, stop, num, endpoint, axis=axis))
    numbers = pow(ground, powers)
    return numbers if dtype is None else to(numbers, dtype)


def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """``num`` numbers from ``start`` to ``stop``, each a constant multiple of the one before.

    >>> import dualflow as df
    >>> df.numpy.geomspace(1, 8, 4).numpy()
    array([1., 2., 4., 8.])
    """
    first, last = agreed(_floating(start), _floating(stop))
    first, last = operands.broadcast_together(first, last)
    if first.dtype.is_complex:
        factor = first
        numbers = exp(linspace(like_zeros(first), log(last / first), num, endpoint, axis=axis))
    else:
        factor = sign(first)
        numbers = exp(linspace(log(magnitude(first)), log(magnitude(last)), num, endpoint, axis=axis))
    where = normalize_axis(axis, len(numbers.shape))
    numbers = numbers * expand_dims(factor, where)
    ends = [expand_dims(first, where), expand_dims(last, where)]
    count = static_int(num, "num")
    inner = [slice(None)] * where
    if count > 0:
        numbers = concat([ends[0], numbers[(*inner, slice(1, None))]], where)
    if endpoint and count > 1:
        numbers = concat([numbers[(*inner, slice(None, -1))], ends[1]], where)
    return numbers if dtype is None else to(numbers, dtype)


def _floating(x: Any) -> Any:
    """A limit as floats; a Python number stays one, which adapts to the other limit."""
    return x * 1.0 if type(x) in (int, float, complex) else inexact(x)


# Grids and matrices


def eye(
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tensor:
    """A matrix of ``N`` rows and ``M`` columns with ones on the diagonal ``k``, and zeros elsewhere.

    >>> import dualflow as df
    >>> df.numpy.eye(2, 3, k=1).numpy().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    refuse("eye", like=like)
    rows = static_int(N, "N")
    columns = rows if M is None else static_int(M, "M")
    return convert_to_tensor(np.eye(rows, columns, static_int(k, "k"), numpy_dtype(dtype)))


def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Tensor:
    """The identity matrix of ``n`` rows."""
    return eye(n, dtype=dtype or float, like=like)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Tensor:
    """Ones on and below the diagonal ``k``, zeros above."""
    refuse("tri", like=like)
    rows = static_int(N, "N")
    columns = rows if M is None else static_int(M, "M")
    return convert_to_tensor(np.tri(rows, columns, static_int(k, "k"), numpy_dtype(dtype)))


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid: each of the vectors along an axis of its own.

    Args:
        xi: vectors.
        copy: ignored: tensors don't change.
        sparse: leave the other axes at size 1.
        indexing: "xy", where the first vector runs along the second axis, or "ij".

    Raises:
        InvalidArgumentError: another ``indexing``.

    >>> import dualflow as df
    >>> x, y = df.numpy.meshgrid([1, 2, 3], [4, 5])
    >>> x.shape, y.numpy().tolist()
    ((2, 3), [[4, 4, 4], [5, 5, 5]])
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"meshgrid's indexing is 'xy' or 'ij', not {indexing!r}.")
    vectors = [operands.flat(tensor(x)) for x in xi]
    count = len(vectors)
    swap = {0: 1, 1: 0} if indexing == "xy" and count > 1 else {}
    coordinates = [
        reshape(v, [-1 if a == swap.get(i, i) else 1 for a in range(count)]) for i, v in enumerate(vectors)
    ]
    return tuple(coordinates) if sparse else tuple(operands.broadcast_together(*coordinates))


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The positions of a grid of these sizes: one row of them for each axis."""
    sizes = ints(dimensions, "dimensions")
    kind = numpy_dtype(dtype)
    if sparse:
        return tuple(convert_to_tensor(x) for x in np.indices(sizes, kind, sparse=True))
    return convert_to_tensor(np.indices(sizes, kind))


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """``function`` of the positions of a grid, each axis's as a tensor.

    >>> import dualflow as df
    >>> df.numpy.fromfunction(lambda i, j: i + j, (2, 2)).numpy().tolist()
    [[0.0, 1.0], [1.0, 2.0]]
    """
    refuse("fromfunction", like=like)
    grid = indices(shape, dtype)
    return function(*[grid[axis] for axis in range(len(ints(shape, "shape")))], **kwargs)


def vander(x: Any, N: Any = None, increasing: bool = False) -> Tensor:
    """The powers of each element of a vector, in a row; the highest first unless ``increasing``.

    >>> import dualflow as df
    >>> df.numpy.vander([1, 2, 3]).numpy().tolist()
    [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    """
    v = tensor(x)
    if len(v.shape) != 1:
        raise InvalidArgumentError(f"vander takes a vector, not shape {v.shape}.")
    size = static_int(v.shape[0], "the size of the vector")
    count = size if N is None else static_int(N, "N")
    if v.dtype.is_integer or v.dtype.is_bool:
        v = to(v, np.int64 if v.dtype.kind in "bi" or v.dtype.size < 8 else np.uint64)
    exponents = np.arange(count) if increasing else np.arange(count)[::-1]
    rows = [like_ones(v)]
    for _ in range(count - 1):
        rows.append(rows[-1] * v)
    if not count:
        return filled_with_zeros([size, 0], v.dtype)
    return transpose(convert_to_tensor([rows[e] for e in exponents]))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """The elements of another library's array."""
    return tensor(x if isinstance(x, _TENSORS) else np.from_dlpack(x))


def frombuffer(
    buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, like: Any = None
) -> Tensor:
    """The bytes of ``buffer`` as numbers."""
    refuse("frombuffer", like=like)
    return tensor(np.frombuffer(buffer, numpy_dtype(dtype), count, offset))


def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Tensor:
    """The numbers that an iterator gives, or ``count`` of them."""
    refuse("fromiter", like=like)
    return tensor(np.fromiter(iter, numpy_dtype(dtype), count))


make_entries(globals())
