"""Differences, integrals, interpolation and convolution along an axis."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape, normalize_axes, normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands, sorting
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, inexact, promote_together, tensor, to
from dualflow.ops.arithmetic import abs as magnitude
from dualflow.ops.arithmetic import maximum, minimum, mod
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import broadcast_like, broadcast_to, reduce_sum
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, logical_and, not_equal
from dualflow.ops.complex_numbers import conj
from dualflow.ops.joining import concat
from dualflow.ops.positions import range as range_op
from dualflow.ops.repetition import pad
from dualflow.ops.scans import cumsum
from dualflow.ops.selection import where as where_op
from dualflow.ops.static import ints
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike


def diff(
    a: TensorLike,
    n: int = 1,
    axis: int = -1,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
) -> Tensor:
    """The differences of neighbours along ``axis``, ``n`` times; of bools, whether they differ.

    Args:
        a: numbers of one axis or more.
        n: how many times to take differences, 0 or more.
        axis: the axis; a negative one counts from the end.
        prepend: a number, or numbers with the axes of ``a``, to join before ``a``; none by default.
        append: as ``prepend``, to join after ``a``.

    Returns:
        A tensor with the shape of ``a``, ``n`` smaller along ``axis``, and the common dtype of ``a``,
        ``prepend`` and ``append``; bool for bools.

    Raises:
        InvalidArgumentError: ``n`` is negative, or ``a`` has no axes.

    >>> import dualflow as df
    >>> df.numpy.diff([1, 4, 9, 16]).numpy(), df.numpy.diff([1, 4, 9], n=2).numpy()
    (array([3, 5, 7]), array([2]))
    """
    x = tensor(a)
    if n < 0 or not x.shape:
        raise InvalidArgumentError(
            f"diff takes one axis or more, and differences 0 times or more, not {n} of shape {x.shape}."
        )
    if n == 0:
        return x
    positive_axis = normalize_axis(axis, len(x.shape))

    def as_part(value: Any) -> Any:
        v = tensor(value)
        return (
            v if v.shape else broadcast_to(v, [1 if i == positive_axis else d for i, d in enumerate(x.shape)])
        )

    parts = [x if part is None else as_part(part) for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = concat(promote_together(*parts), positive_axis)
    front = (slice(None),) * positive_axis
    for _ in range(n):
        later, earlier = x[(*front, slice(1, None))], x[(*front, slice(None, -1))]
        x = not_equal(later, earlier) if x.dtype.is_bool else later - earlier
    return x


def ediff1d(ary: TensorLike, to_end: TensorLike | None = None, to_begin: TensorLike | None = None) -> Tensor:
    """The differences of neighbouring elements, with ``to_begin`` before them and ``to_end`` after them.

    Args:
        ary: numbers of any shape, which are flattened.
        to_end: numbers to put after the differences; none by default.
        to_begin: numbers to put before the differences; none by default.

    Returns:
        A vector of the dtype of ``ary``.

    >>> import dualflow as df
    >>> df.numpy.ediff1d([1, 4, 9], to_begin=0).numpy()
    array([0, 3, 5])
    """
    x = flat(tensor(ary))
    parts = [] if to_begin is None else [to(flat(tensor(to_begin)), x.dtype)]
    parts.append(x[1:] - x[:-1])
    parts += [] if to_end is None else [to(flat(tensor(to_end)), x.dtype)]
    return concat(parts, 0) if len(parts) > 1 else parts[0]


def gradient(f: TensorLike, *varargs: Any, axis: AxisLike | None = None, edge_order: int = 1) -> Any:
    """The slope along each axis, by finite differences of second order.

    At the ends they are of the order ``edge_order``. B. Fornberg, "Generation of finite difference formulas
    on arbitrarily spaced grids", 1988.

    Args:
        f: samples of one axis or more; integers count as float64.
        *varargs: the spacing of the samples: a number for all axes, a number for each axis, or the
            coordinates of the samples, a vector for each axis; 1 by default.
        axis: an axis or several; all by default.
        edge_order: 1 or 2, the order of the differences at the ends.

    Returns:
        A tensor with the shape and dtype of ``f``; a tuple of one for each axis if there are several.

    Raises:
        InvalidArgumentError: an axis has fewer than ``edge_order + 1`` samples, ``varargs`` doesn't fit the
            axes, or ``edge_order`` is neither 1 nor 2.
        DTypeError: ``f`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.gradient([1.0, 2.0, 4.0, 7.0]).numpy()
    array([1. , 1.5, 2.5, 3. ])
    """
    x = inexact(f)
    rank = len(x.shape)
    axes = tuple(range(rank)) if axis is None else normalize_axes(ints(axis, "axis"), rank)
    if edge_order not in (1, 2):
        raise InvalidArgumentError(f"gradient's edge_order is 1 or 2, not {edge_order}.")
    steps = (
        list(varargs)
        if len(varargs) != 1 or len(tensor(varargs[0]).shape) == 1
        else list(varargs) * len(axes)
    )
    steps = steps or [1.0] * len(axes)
    if len(steps) != len(axes):
        raise InvalidArgumentError(
            f"gradient takes a distance for each of {len(axes)} axes, not {len(steps)}."
        )
    gradients = [_gradient_along(x, i, step, edge_order) for i, step in zip(axes, steps, strict=True)]
    return gradients[0] if len(gradients) == 1 else tuple(gradients)


def _gradient_along(x: Any, axis: int, step: Any, edge_order: int) -> Tensor:
    """The gradient along ``axis``; ``step`` is the distance of samples, or a vector of their coordinates."""
    size, spacing = operands.sizes(x)[axis], tensor(step)
    if type(size) is not int:
        message = f"gradient needs {edge_order + 1} samples or more along axis {axis}."
        x = operands.with_required_size(x, [axis], size > edge_order, message)
    elif size < edge_order + 1:
        raise InvalidArgumentError(
            f"gradient needs {edge_order + 1} samples or more along axis {axis}, not {size}."
        )
    places = Shape(x.shape[axis : axis + 1] if spacing.shape else ())
    if not places.is_compatible_with(spacing.shape):
        raise InvalidArgumentError(f"Places of shape {spacing.shape} are not those of {size} samples.")
    if spacing.shape and None in (spacing.shape[0], x.shape[axis]):
        fits = operands.sizes(spacing)[0] == size
        spacing = required(spacing, fits, f"there are more or fewer places than samples along axis {axis}.")
    if not spacing.shape:
        gaps = None
    else:
        coordinates = to(spacing, np.result_type(spacing.dtype.dtype, x.dtype.dtype))
        gaps = to(coordinates[1:] - coordinates[:-1], x.dtype)
    inner = _central_differences(x, axis, tensor(step, x.dtype) if gaps is None else gaps)
    edge = _first_order_edges if edge_order == 1 else _second_order_edges
    first, last = edge(
        lambda i: x[(*(slice(None),) * axis, slice(i, i + 1 or None))],
        lambda i: tensor(step, x.dtype) if gaps is None else gaps[i],
    )
    return concat([first, inner, last], axis)


def _central_differences(x: Any, axis: int, gaps: Any) -> Any:
    """The gradient between the edges; ``gaps`` is the distance of all samples, or a vector of distances."""
    front = (slice(None),) * axis
    before, middle, after = (x[(*front, slice(i, i - 2 or None))] for i in range(3))
    if not gaps.shape:
        return (after - before) / (2 * gaps)
    shape = [-1 if i == axis else 1 for i in range(len(x.shape))]
    left, right = reshape(gaps[:-1], shape), reshape(gaps[1:], shape)
    return (
        before * (-right / (left * (left + right)))
        + middle * ((right - left) / (left * right))
        + after * (left / (right * (left + right)))
    )


def _first_order_edges(sample: Callable[[int], Any], gap: Callable[[int], Any]) -> tuple[Any, Any]:
    """The gradients at the first and the last sample, from two samples each."""
    return (sample(1) - sample(0)) / gap(0), (sample(-1) - sample(-2)) / gap(-1)


def _second_order_edges(sample: Callable[[int], Any], gap: Callable[[int], Any]) -> tuple[Any, Any]:
    """The gradients at the first and the last sample, from three samples each."""
    p, q = gap(0), gap(1)
    first = (
        sample(0) * (-(2 * p + q) / (p * (p + q)))
        + sample(1) * ((p + q) / (p * q))
        + sample(2) * (-p / (q * (p + q)))
    )
    p, q = gap(-2), gap(-1)
    last = (
        sample(-3) * (q / (p * (p + q)))
        + sample(-2) * (-(q + p) / (p * q))
        + sample(-1) * ((2 * q + p) / (q * (p + q)))
    )
    return first, last


def trapezoid(y: TensorLike, x: TensorLike | None = None, dx: TensorLike = 1.0, axis: int = -1) -> Tensor:
    """The integral along ``axis`` by the trapezoidal rule.

    Args:
        y: samples; integers count as float64.
        x: the coordinates of the samples, a vector or of the shape of ``y``; by default they are ``dx``
            apart.
        dx: the spacing of the samples where ``x`` is None.
        axis: the axis; a negative one counts from the end.

    Returns:
        A tensor with the shape of ``y`` without ``axis``, and the common dtype of ``y`` and the coordinates,
        float64 for integers.

    Raises:
        InvalidArgumentError: ``x`` has not as many coordinates along ``axis`` as ``y`` has samples, or the
            shapes do not broadcast.

    >>> import dualflow as df
    >>> float(df.numpy.trapezoid([1, 2, 3]))
    4.0
    """
    v = tensor(y)
    positive_axis = normalize_axis(axis, len(v.shape))
    front = (slice(None),) * positive_axis
    if x is None:
        step: Any = dx if type(dx) in (int, float) else tensor(dx)
    else:
        coordinates = tensor(x)
        vector = len(coordinates.shape) == 1
        step = diff(coordinates, axis=0 if vector else axis)
        count, samples = coordinates.shape[0 if vector else axis], v.shape[positive_axis]
        if count != samples and None not in (count, samples):
            raise InvalidArgumentError(
                "trapezoid takes a coordinate for each sample: along the axis "
                f"x has {count}, y has {samples}."
            )
        if vector:
            step = reshape(step, [-1 if i == positive_axis else 1 for i in range(len(v.shape))])
    total = v[(*front, slice(1, None))] + v[(*front, slice(None, -1))]
    areas = _times(step, total)
    return reduce_sum(areas if areas.dtype.is_inexact else to(areas, np.float64), positive_axis) / 2


def _times(x: Any, y: Any) -> Any:
    left, right = promote_together(x, y)
    return left * right


def interp(
    x: TensorLike,
    xp: TensorLike,
    fp: TensorLike,
    left: TensorLike | None = None,
    right: TensorLike | None = None,
    period: float | None = None,
) -> Tensor:
    """Linear interpolation at ``x`` between the points (xp, fp).

    Args:
        x: where to interpolate, real numbers of any shape; integers count as float64.
        xp: the coordinates of the points, an ascending vector.
        fp: the values of the points, a vector of real or complex numbers.
        left: the value below the first coordinate; the first of ``fp`` by default.
        right: the value above the last coordinate; the last of ``fp`` by default.
        period: the period of the coordinates, which then need not ascend; None by default.

    Returns:
        A tensor with the shape of ``x`` and the common dtype of all three.

    Raises:
        InvalidArgumentError: ``xp`` and ``fp`` are not vectors of one size, which is 1 or more.

    >>> import dualflow as df
    >>> df.numpy.interp([1.5, 9.0], [1.0, 2.0], [10.0, 20.0]).numpy()
    array([15., 20.])
    """
    points, coordinates = promote_together(inexact(x), inexact(xp))
    values = inexact(fp)
    if len(coordinates.shape) != 1 or coordinates.shape != values.shape or coordinates.shape[0] == 0:
        raise InvalidArgumentError(
            f"interp takes as many places as values, one at least, not {coordinates.shape} and "
            f"{values.shape}."
        )
    if period is not None:
        points, coordinates = (
            mod(points, magnitude(tensor(period, points.dtype))),
            mod(coordinates, magnitude(tensor(period, points.dtype))),
        )
        order = sorting.argsort(coordinates)
        coordinates, values = gather(coordinates, order), gather(values, order)
        span = magnitude(tensor(period, points.dtype))
        coordinates = concat([coordinates[-1:] - span, coordinates, coordinates[:1] + span], 0)
        values = concat([values[-1:], values, values[:1]], 0)
    kind = np.result_type(points.dtype.dtype, values.dtype.dtype)
    last = operands.sizes(coordinates)[0] - 1
    if isinstance(last, int) and last == 0:
        values_at = broadcast_like(to(values[0], kind), points)
    else:
        index = sorting.searchsorted(coordinates, points, "right") - 1
        index = where_op(index < 0, 0, where_op(index > last - 1, last - 1, index))
        x0, x1 = gather(coordinates, index), gather(coordinates, index + 1)
        y0, y1 = to(gather(values, index), kind), to(gather(values, index + 1), kind)
        is_coincident = equal(x0, x1)
        fraction = to((points - x0) / where_op(is_coincident, tensor(1, points.dtype), x1 - x0), kind)
        values_at = y0 + (y1 - y0) * fraction
        values_at = where_op(equal(points, x1), y1, values_at)
    first_value, last_value = to(values[0], kind), to(values[-1], kind)
    values_at = where_op(
        points < coordinates[0], first_value if left is None else tensor(left, kind), values_at
    )
    values_at = where_op(
        points > coordinates[-1], last_value if right is None else tensor(right, kind), values_at
    )
    return values_at if last == 0 else where_op(equal(points, points), values_at, tensor(math.nan, kind))


def unwrap(
    p: TensorLike, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi
) -> Tensor:
    """Angles along ``axis`` with multiples of ``period`` added.

    Neighbours then differ by half a period at most.

    Args:
        p: real numbers of one axis or more.
        discont: the smallest difference of neighbours that is changed; ``period / 2`` by default.
        axis: the axis; a negative one counts from the end.
        period: the period.

    Returns:
        A tensor with the shape of ``p``, and the common dtype of ``p`` and ``period``.

    >>> import dualflow as df
    >>> df.numpy.unwrap([0.0, 3.0, 6.5], period=6.0).numpy()
    array([0. , 3. , 0.5])
    """
    x = tensor(p)
    positive_axis = normalize_axis(axis, len(x.shape))
    steps = diff(x, axis=positive_axis)
    kind = operands.result_type(steps, period)
    steps = to(steps, kind)
    limit = period / 2 if discont is None else discont
    is_integer = kind.kind in "iu"
    high: Any
    low: Any
    if is_integer:
        high, remainder = builtins.divmod(period, 2)
        boundary = remainder == 0
    else:
        high, boundary = period / 2, True
    low = -high
    wrapped = mod(steps - low, tensor(period, kind)) + low
    if boundary:
        wrapped = where_op(logical_and(equal(wrapped, low), steps > 0), tensor(high, kind), wrapped)
    correction = where_op(magnitude(steps) < limit, tensor(0, kind), wrapped - steps)
    front = (slice(None),) * positive_axis
    first, others = to(x[(*front, slice(None, 1))], kind), to(x[(*front, slice(1, None))], kind)
    return concat([first, others + cumsum(correction, positive_axis)], positive_axis)


# Convolution


def _convolution(a: Any, v: Any, mode: str) -> Tensor:
    """The convolution of two vectors: sums of products with the reversed second one, in ``mode``."""
    x, w = promote_together(a, v)
    if len(x.shape) != 1 or len(w.shape) != 1 or 0 in (x.shape[0], w.shape[0]):
        raise InvalidArgumentError(
            f"Vectors of one element or more are required, not shapes {x.shape} and {w.shape}."
        )
    if mode not in ("full", "same", "valid"):
        raise InvalidArgumentError(f"mode is 'full', 'same' or 'valid', not {mode!r}.")
    if x.dtype.is_bool:
        return to(_convolution(to(x, np.int64), to(w, np.int64), mode), bool)
    (n,), (m,) = operands.sizes(x), operands.sizes(w)
    if (m > n) if type(n) is type(m) is int else type(n) is int:  # the shorter one, or that of known size
        x, w, n, m = w, x, m, n
    window_indices: Any
    longer: Any
    shorter: Any
    if type(n) is int and type(m) is int:
        window_indices = np.arange(n + m - 1)[:, None] + np.arange(m)
        longer, shorter = n, m
    else:
        message = "vectors of one element or more are required."
        n, m = (size if type(size) is int else required(size, size > 0, message) for size in (n, m))
        window_indices = range_op(n + m - 1, dtype=int64)[:, None] + range_op(m, dtype=int64)
        longer, shorter = maximum(n, m), minimum(n, m)
    windows = gather(pad(x, [[m - 1, m - 1]]), window_indices)
    # outside of ``x`` there is no product, not even of nan
    inside = (window_indices >= m - 1) & (window_indices < n + m - 1)
    full = reduce_sum(where_op(tensor(inside), windows * w[::-1], tensor(0, x.dtype)), 1)
    if mode == "full":
        return full
    start = shorter - 1 if mode == "valid" else (shorter - 1) // 2
    return full[start : longer if mode == "valid" else start + longer]


def convolve(a: TensorLike, v: TensorLike, mode: str = "full") -> Tensor:
    """The convolution of two vectors, which is the product of two polynomials given by their coefficients.

    Args:
        a: a vector of one element or more.
        v: another one.
        mode: "full", all offsets at which the vectors overlap; "same", the middle ``max(n, m)`` of these;
            "valid", those at which they overlap in full.

    Returns:
        A vector of ``n + m - 1``, ``max(n, m)`` or ``max(n, m) - min(n, m) + 1`` elements, by ``mode``, in
        the common dtype.

    Raises:
        InvalidArgumentError: an argument is not a vector or is empty, or ``mode`` is unknown.

    >>> import dualflow as df
    >>> df.numpy.convolve([1, 2, 3], [0, 1, 0.5]).numpy()
    array([0. , 1. , 2.5, 4. , 1.5])
    """
    return _convolution(tensor(a), tensor(v), mode)


def correlate(a: TensorLike, v: TensorLike, mode: str = "valid") -> Tensor:
    """The cross-correlation of two vectors: ``sum(a[k + i] * conj(v[i]))`` for each offset ``k``.

    Args:
        a: a vector of one element or more.
        v: another one.
        mode: "full", "same" or "valid", as for :func:`convolve`.

    Returns:
        A vector with the size that :func:`convolve` returns, in the common dtype.

    Raises:
        InvalidArgumentError: an argument is not a vector or is empty, or ``mode`` is unknown.

    >>> import dualflow as df
    >>> df.numpy.correlate([1, 2, 3], [0, 1, 0.5]).numpy()
    array([3.5])
    """
    x, w = tensor(a), tensor(v)
    kernel = (conj(w) if w.dtype.is_complex else w)[::-1]
    if mode != "same":
        return _convolution(x, kernel, mode)
    full = _convolution(x, kernel, "full")
    (n,), (m,) = operands.sizes(x), operands.sizes(w)
    start: Any
    count: Any
    if type(n) is type(m) is int:
        start, count = (n // 2, m) if m > n else ((m - 1) // 2, n)  # as NumPy selects it
    else:
        start, count = where_op(m > n, n // 2, (m - 1) // 2), maximum(n, m)
    return full[start : start + count]


complete_docstrings(globals())
make_entries(globals())
