"""Histograms: the numbers of elements in bins."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import sorting
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, has_axes, numpy_result, promote_together, tensor, to
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import logical_and
from dualflow.ops.counting import bins as bins_of
from dualflow.ops.creation import ones_like
from dualflow.ops.joining import concat
from dualflow.ops.reduction import reduce_max, reduce_min
from dualflow.ops.scattering import scatter_nd
from dualflow.ops.selection import where as where_op
from dualflow.ops.static import ints, static_value
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike


def bincount(x: TensorLike, /, weights: TensorLike | None = None, minlength: IntLike = 0) -> Tensor:
    """How often each integer occurs, from 0 to the largest, or the sum of its weights.

    Args:
        x: a vector of integers, 0 or more.
        weights: the weight of each element; by default each counts 1.
        minlength: the smallest size of the result.

    Returns:
        A vector of ``max(x) + 1`` elements or ``minlength``, int64; float64 with ``weights``.

    Raises:
        InvalidArgumentError: an integer is negative.
        DTypeError: ``x`` is not of integers.

    >>> import dualflow as df
    >>> df.numpy.bincount([0, 2, 2]).numpy()
    array([1, 0, 2])
    """
    v = tensor(x)
    if v.dtype.kind not in "biu" and v.shape != (0,):
        raise DTypeError(f"bincount counts integers, not {v.dtype.name}.")
    v = to(v, np.int64)
    counted = None if weights is None else to(tensor(weights), np.float64)
    return bins_of.bincount(v, counted, minlength, dtype=np.int64)


def histogram_bin_edges(
    a: TensorLike,
    bins: TensorLike = 10,
    range: tuple[float, float] | None = None,
    weights: TensorLike | None = None,
) -> Tensor:
    """The bin edges of :func:`histogram`: ``bins`` itself, or the edges of ``bins`` equal-width bins.

    Args:
        a: real numbers of any shape.
        bins: the number of bins, an ascending vector of edges, or the name of one of NumPy's rules.
        range: the lowest and the highest edge; those of ``a`` by default.
        weights: ignored.

    Returns:
        A vector with one element more than bins; float64, or the dtype of ``a`` for floats.

    Raises:
        InvalidArgumentError: there is no bin, the edges or ``range`` descend, or ``range`` is not finite.
        DTypeError: ``bins`` is a name and ``a`` is symbolic.

    >>> import dualflow as df
    >>> df.numpy.histogram_bin_edges([0.0, 4.0], bins=4).numpy()
    array([0., 1., 2., 3., 4.])
    """
    x = flat(tensor(a))
    if isinstance(bins, str):
        static = static_value(x)
        if static is None:
            raise DTypeError(
                f"bins={bins!r} chooses the number of bins by the data; give a number while tracing."
            )
        compute_edges = functools.partial(np.histogram_bin_edges, static, bins, range)
        edges = numpy_result(compute_edges, "pass a number of bins, or their edges")
        return tensor(edges)
    edges = tensor(bins)
    if len(edges.shape) == 1:
        static = static_value(edges)
        if static is not None and (np.diff(static) < 0).any():
            raise InvalidArgumentError("The edges of bins rise all the way; sort them.")
        return edges
    count = ints(bins, "bins")[0]
    if len(edges.shape) or count < 1:
        raise InvalidArgumentError(f"bins must be a positive integer or a vector of edges, not {bins!r}.")
    kind = np.result_type(x.dtype.dtype, np.float64) if x.dtype.kind in "biu" else x.dtype.dtype
    low, high = _limits(x, range, kind)
    steps = tensor(np.arange(count + 1), np.float64) / count
    computed = to(low, np.float64) + steps * (to(high, np.float64) - to(low, np.float64))
    return to(concat([computed[:-1], reshape(to(high, np.float64), [1])], 0), kind)


def _limits(x: Any, limits: Any, kind: Any) -> tuple[Any, Any]:
    """The lowest and the highest edge, widened by 0.5 each if they are equal."""
    if limits is not None:
        low, high = (tensor(v) for v in limits)
        ends = [static_value(v) for v in (low, high)]
        if all(v is not None for v in ends) and not (np.isfinite(ends).all() and ends[0] <= ends[1]):  # type: ignore[arg-type,operator]  # none is None
            raise InvalidArgumentError(f"A range is two finite numbers that rise, not {limits!r}.")
    elif x.shape[0] == 0:
        low, high = tensor(0.0), tensor(1.0)
    else:
        low, high = reduce_min(_as_numbers(x)), reduce_max(_as_numbers(x))
        ends = [static_value(low), static_value(high)]
        if not all(end is None or np.isfinite(end) for end in ends):
            raise InvalidArgumentError(f"Elements from {ends[0]} to {ends[1]} have no bins; give a range.")
    low, high = to(low, np.float64), to(high, np.float64)
    same = low >= high
    return where_op(same, low - 0.5, low), where_op(same, high + 0.5, high)


def _as_numbers(x: Any) -> Any:
    return to(x, np.uint8) if x.dtype.is_bool else x


def histogram(
    a: TensorLike,
    bins: TensorLike = 10,
    range: tuple[float, float] | None = None,
    density: bool | None = None,
    weights: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    """The number of elements in each bin, or their weight, and the edges.

    A bin includes its left edge; the last one includes both.

    Args:
        a: real numbers of any shape.
        bins: the number of bins, an ascending vector of edges, or the name of one of NumPy's rules.
        range: the lowest and the highest edge; those of ``a`` by default.
        density: whether to return the density, whose integral is 1; False by default.
        weights: the weight of each element, of the shape of ``a``; by default each counts 1.

    Returns:
        A pair of vectors: the counts, int64, the dtype of ``weights``, or float64 with ``density``; and the
        edges.

    Raises:
        InvalidArgumentError: there is no bin, the edges or ``range`` descend, or ``range`` is not finite.
        DTypeError: ``bins`` is a name and ``a`` is symbolic.

    >>> import dualflow as df
    >>> counts, edges = df.numpy.histogram([1.0, 2.0, 1.0], bins=2)
    >>> counts.numpy(), edges.numpy()
    (array([2, 1]), array([1. , 1.5, 2. ]))
    """
    edges = histogram_bin_edges(a, bins, range, weights)
    x = flat(_as_numbers(tensor(a)))
    counts = _count_in_bins([x], [edges], weights)
    if density:
        counts_as_floats = to(counts, np.float64)
        counts = counts_as_floats / to(edges[1:] - edges[:-1], np.float64) / reduce_sum(counts_as_floats)
    return counts, edges


def _count_in_bins(columns: list[Any], edges: list[Any], weights: Any) -> Tensor:
    """The total weight of the points in each cell of a grid of bins."""
    in_range: Any = None
    position: Any = 0
    shape = []
    for x, row in zip(columns, edges, strict=True):
        count = row.shape[0] - 1
        left, right = promote_together(row, x)
        index = sorting.searchsorted(left, right, "right") - 1
        is_right_edge = right == left[-1]
        index = where_op(is_right_edge, count - 1, index)
        in_axis = logical_and(index >= 0, index < count)
        in_range = in_axis if in_range is None else logical_and(in_range, in_axis)
        position = position * count + where_op(in_axis, index, 0)
        shape.append(count)
    total = int(np.prod(shape))
    if weights is None:
        counts = ones_like(position, np.int64)
    else:
        weight = flat(tensor(weights))
        counts = to(weight, np.int64) if weight.dtype.is_bool else weight
    counts = where_op(in_range, counts, tensor(0, counts.dtype))
    return reshape(scatter_nd(position[:, None], counts, [total]), shape)


def histogramdd(
    sample: object,
    bins: TensorLike = 10,
    range: Sequence[Any] | None = None,
    density: bool | None = None,
    weights: TensorLike | None = None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The number of points in each cell of a grid of bins, and the edges along each axis.

    Args:
        sample: a matrix with a point in each row, or a list with a vector of coordinates for each axis.
        bins: the number of bins or the edges, for all axes or a list for each.
        range: a list with the lowest and the highest edge along each axis; those of ``sample`` by default.
        density: whether to return the density, whose integral is 1; False by default.
        weights: the weight of each point, a vector; by default each counts 1.

    Returns:
        A pair: a float64 tensor with the number of bins along each axis as its shape, and a tuple of vectors
        of edges.

    Raises:
        InvalidArgumentError: ``bins`` doesn't have an entry for each axis, or is invalid; see
            :func:`histogram`.
        DTypeError: ``sample`` can't become a tensor.

    >>> import dualflow as df
    >>> counts, edges = df.numpy.histogramdd([[1.0, 2.0], [1.0, 3.0]], bins=2)
    >>> counts.numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if isinstance(sample, list | tuple):
        columns = [flat(tensor(x)) for x in sample]
    else:
        table = tensor(sample)
        columns = [table] if len(table.shape) == 1 else [table[:, i] for i in builtins.range(table.shape[1])]
    each = list(bins) if isinstance(bins, list | tuple) else [bins] * len(columns)
    if len(each) != len(columns):
        raise InvalidArgumentError(f"There are {len(columns)} variables, and bins for {len(each)}.")
    limits: Sequence[Any] = [None] * len(columns) if range is None else range
    edges = [histogram_bin_edges(x, b, r) for x, b, r in zip(columns, each, limits, strict=True)]
    counts = to(_count_in_bins(columns, edges, weights), np.float64)
    if density:
        for axis, row in enumerate(edges):
            widths = to(row[1:] - row[:-1], np.float64)
            counts = counts / reshape(widths, [-1 if i == axis else 1 for i in builtins.range(len(edges))])
        total = to(_count_in_bins(columns, edges, weights), np.float64)
        counts = counts / reduce_sum(total)
    return counts, tuple(edges)


def histogram2d(
    x: TensorLike,
    y: TensorLike,
    bins: TensorLike = 10,
    range: Sequence[Any] | None = None,
    density: bool | None = None,
    weights: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The number of points (x, y) in each cell of a grid of bins, and the edges along both axes.

    Args:
        x: the first coordinates, a vector.
        y: the second coordinates, a vector of the same size.
        bins: the number of bins or the edges, for both axes or a list for each.
        range: a list with the lowest and the highest edge along each axis; those of the points by default.
        density: whether to return the density, whose integral is 1; False by default.
        weights: the weight of each point, a vector; by default each counts 1.

    Returns:
        A tuple of a float64 matrix and two vectors of edges.

    Raises:
        InvalidArgumentError: ``bins`` doesn't have an entry for each axis, or is invalid; see
            :func:`histogram`.

    >>> import dualflow as df
    >>> counts, x_edges, y_edges = df.numpy.histogram2d([1.0, 2.0], [1.0, 3.0], bins=2)
    >>> counts.numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    shared = isinstance(bins, list | tuple) and len(bins) not in (1, 2)
    each = [bins, bins] if shared or has_axes(bins) else bins
    counts, (first, second) = histogramdd([x, y], each, range, density, weights)
    return counts, first, second


complete_docstrings(globals())
make_entries(globals())
