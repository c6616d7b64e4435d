"""Medians and other quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import normalize_axes
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import averages, operands, sorting
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, inexact, reject_unsupported, tensor, to
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.broadcasting import broadcast_like, reduce_sum
from dualflow.ops.comparison import isnan, logical_not
from dualflow.ops.reduction import reduce_any
from dualflow.ops.rounding import ceil, floor, round
from dualflow.ops.scans import cumsum
from dualflow.ops.selection import where as where_op
from dualflow.ops.sorting import take_along_axis
from dualflow.ops.static import ints, static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike

_CONTINUOUS = {
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
}
"""The parameters alpha and beta: Hyndman and Fan, Sample quantiles in statistical packages, 1996."""
_DISCONTINUOUS = (
    "lower",
    "higher",
    "midpoint",
    "nearest",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
)
_MEANS_OF_TWO = ("midpoint", "averaged_inverted_cdf")
"""The discontinuous methods that may return the mean of two elements; the others select an element."""


def _position(method: str, q: Any, count: Any) -> Any:
    """The position of the quantile among ``count`` sorted elements, a float counted from 0."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        return count * q + (alpha + q * (1 - alpha - beta)) - 1
    last = (count - 1) * q
    if method == "lower":
        return floor(last)
    if method == "higher":
        return ceil(last)
    if method == "midpoint":
        return 0.5 * (floor(last) + ceil(last))
    if method == "nearest":
        return round(last)
    if method == "inverted_cdf":
        return ceil(count * q) - 1
    if method == "averaged_inverted_cdf":
        position = count * q - 1
        return where_op(ceil(position) > position, ceil(position), position + 0.5)
    if method == "closest_observation":
        return round(count * q) - 1
    raise InvalidArgumentError(
        f"There is no method {method!r} of quantiles; one is 'linear', the default, others are "
        f"{', '.join(sorted({*_CONTINUOUS, *_DISCONTINUOUS} - {'linear'}))}."
    )


def _axes_to_last(x: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """``x`` with the axes to reduce merged into a last axis, and these axes."""
    rank = len(x.shape)
    axes = tuple(range(rank)) if axis is None else normalize_axes(ints(axis, "axis"), rank)
    kept_axes = [i for i in range(rank) if i not in axes]
    sizes = operands.sizes(x)
    return reshape(transpose(x, [*kept_axes, *axes]), [*[sizes[i] for i in kept_axes], -1]), axes


def _quantile(
    a: Any, q: Any, axis: Any, keepdims: bool, method: str, weights: Any, ignore_nan: bool
) -> Tensor:
    discrete = method in _DISCONTINUOUS and method not in _MEANS_OF_TWO
    x = inexact(a)
    if x.dtype.is_complex:
        raise DTypeError("Quantiles are of real numbers, not complex ones.")
    probabilities = _probabilities(q, x)
    rows, axes = _axes_to_last(tensor(a) if discrete else x, axis)
    static_probabilities = static_value(q)
    if (
        static_probabilities is not None
        and static_probabilities.size
        and not (static_probabilities.min() >= 0 and static_probabilities.max() <= 1)
    ):
        raise InvalidArgumentError("A probability must be from 0 to 1, a percentage from 0 to 100.")
    if weights is not None:
        quantiles = _weighted_quantiles(rows, probabilities, weights, x, axis, axes, method, ignore_nan)
    else:
        quantiles = _quantiles_of_rows(rows, probabilities, method, ignore_nan)
    if keepdims and axes:
        quantiles = expand_dims(quantiles, [len(probabilities.shape) + i for i in sorted(axes)])
    return quantiles


def _quantiles_of_rows(rows: Any, probabilities: Any, method: str, ignore_nan: bool) -> Tensor:
    """The quantiles of each row; the axes of ``probabilities`` come first."""
    ordered = sorting.sort(rows, -1)
    if ignore_nan:
        numbers = to(logical_not(isnan(rows)), np.int64)
        count: Any = to(reduce_sum(numbers, -1), probabilities.dtype)[..., None]
    else:
        count = operands.sizes(rows)[-1]
        count = float(count) if isinstance(count, int) else to(count, probabilities.dtype)
    row = flat(probabilities)
    position = _position(method, row, count)
    last = count - 1
    position = minimum(maximum(position, 0.0), last)
    below = floor(position)
    fraction = position - below
    if method in _DISCONTINUOUS and method not in _MEANS_OF_TWO:
        return _mark_undefined(
            _elements_at(ordered, below), ordered, probabilities, count if ignore_nan else None
        )
    above = minimum(below + 1, last)
    low, high = (_elements_at(ordered, index) for index in (below, above))
    kind = np.result_type(low.dtype.dtype, fraction.dtype.dtype)
    low, high, fraction = to(low, kind), to(high, kind), to(fraction, kind)
    gap = high - low
    # from the nearer end, so that a fraction of 1 gives the upper element to the bit
    between = where_op(fraction >= 0.5, high - gap * (1 - fraction), low + gap * fraction)
    return _mark_undefined(between, ordered, probabilities, count if ignore_nan else None)


def _mark_undefined(quantiles: Any, ordered: Any, probabilities: Any, count: Any) -> Tensor:
    """``quantiles`` with the axes of ``probabilities`` first, and nan for rows with nan or no numbers."""
    if quantiles.dtype.is_inexact:
        is_undefined = isnan(ordered[..., -1:]) if count is None else count <= 0
        quantiles = where_op(is_undefined, tensor(np.nan, quantiles.dtype), quantiles)
    return _probability_axes_first(quantiles, probabilities)


def _probability_axes_first(quantiles: Any, probabilities: Any) -> Tensor:
    """``quantiles``, whose last axis is that of the flattened ``probabilities``, with their axes first."""
    quantiles = transpose(quantiles, [len(quantiles.shape) - 1, *range(len(quantiles.shape) - 1)])
    return reshape(quantiles, [*operands.sizes(probabilities), *operands.sizes(quantiles)[1:]])


def _elements_at(ordered: Any, index: Any) -> Any:
    """The elements of each row at ``index``, which is common to all rows or has a row for each."""
    index = maximum(to(index, np.int64), 0)
    if len(index.shape) == 1:
        return gather(ordered, index, axis=len(ordered.shape) - 1)
    return take_along_axis(ordered, index, -1)


def _weighted_quantiles(
    rows: Any, probabilities: Any, weights: Any, x: Any, axis: Any, axes: Any, method: str, ignore_nan: bool
) -> Tensor:
    """The first element at which the running sum of the weights reaches a probability times their total."""
    if method != "inverted_cdf":
        raise InvalidArgumentError("Weighted quantiles have the method 'inverted_cdf' only.")
    w = inexact(weights)
    if w.shape != x.shape:
        if len(axes) != 1 or w.shape != (x.shape[axes[0]],):
            raise InvalidArgumentError(
                f"Weights of shape {w.shape} fit neither {x.shape} nor its axis {axis}."
            )
        row_weights = broadcast_like(w, rows)
    else:
        row_weights, _ = _axes_to_last(w, axis)
    is_nan = isnan(rows)
    if ignore_nan:
        row_weights = where_op(is_nan, tensor(0, row_weights.dtype), row_weights)
    order = sorting.argsort(rows, -1)
    ordered = take_along_axis(rows, order, -1)
    running = cumsum(take_along_axis(row_weights, order, -1), -1)
    running = running / running[..., -1:]
    row = flat(to(probabilities, running.dtype))
    first = reduce_sum(to(running[..., None] < row, np.int64), -2)
    first = minimum(first, operands.sizes(ordered)[-1] - 1)
    quantiles = take_along_axis(ordered, first, -1)
    if not ignore_nan:
        quantiles = where_op(reduce_any(is_nan, -1, True), tensor(np.nan, quantiles.dtype), quantiles)
    return _probability_axes_first(quantiles, probabilities)


def quantile(
    a: TensorLike,
    q: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: TensorLike | None = None,
) -> Tensor:
    """The quantiles of the elements over ``axis``.

    R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", 1996.

    Args:
        a: real numbers; integers are taken as float64.
        q: probabilities from 0 to 1, of any shape.
        weights: the weight of each element, of the shape of ``a`` or of the axis, for "inverted_cdf" only; by
            default each counts 1.

    Returns:
        A tensor with the axes of ``q``, then those of ``a`` without the reduced ones, and the dtype of ``a``,
        float64 for integers.

    Raises:
        InvalidArgumentError: a probability is not in [0, 1], ``method`` is another word, or ``weights``
            doesn't fit.
        DTypeError: ``a`` is complex.

    >>> import dualflow as df
    >>> df.numpy.quantile([1.0, 2.0, 4.0], [0.5, 0.75]).numpy()
    array([2., 3.])
    """
    reject_unsupported("quantile", out=out, overwrite_input=overwrite_input)
    return _quantile(a, q, axis, keepdims, method, weights, False)


def percentile(
    a: TensorLike,
    q: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: TensorLike | None = None,
) -> Tensor:
    """The percentiles of the elements over ``axis``; see :func:`quantile`.

    Args:
        q: percentages from 0 to 100, of any shape.
        weights: the weight of each element, of the shape of ``a`` or of the axis, for "inverted_cdf" only; by
            default each counts 1.

    Returns:
        A tensor with the axes of ``q``, then those of ``a`` without the reduced ones, and the dtype of ``a``;
        float64 for integers, unless ``method`` selects an element.

    Raises:
        InvalidArgumentError: a percentage is not in [0, 100], ``method`` is another word, or ``weights``
            doesn't fit.
        DTypeError: ``a`` is complex.

    >>> import dualflow as df
    >>> float(df.numpy.percentile([1.0, 2.0, 4.0], 50))
    2.0
    """
    reject_unsupported("percentile", out=out, overwrite_input=overwrite_input)
    return _quantile(a, _from_percentages(a, q), axis, keepdims, method, weights, False)


def _from_percentages(a: Any, q: Any) -> Any:
    return _probabilities(q, inexact(a)) / 100


def _probabilities(q: Any, x: Any) -> Tensor:
    """Probabilities as floats; a Python number gets the dtype of ``x``."""
    if isinstance(q, int | float):
        return tensor(q, x.dtype)
    probabilities = inexact(q)
    return to(probabilities, np.result_type(probabilities.dtype.dtype, x.dtype.dtype))


def median(
    a: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Tensor:
    """The median over ``axis``; nan if an element is nan.

    It is the middle element, or the mean of the two in the middle.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and its dtype, float64 for integers.

    >>> import dualflow as df
    >>> float(df.numpy.median([7, 1, 3, 5]))
    4.0
    """
    reject_unsupported("median", out=out, overwrite_input=overwrite_input)
    return _median(a, axis, keepdims, False)


def _median(a: Any, axis: Any, keepdims: bool, ignore_nan: bool) -> Tensor:
    x = inexact(a)
    rows, axes = _axes_to_last(x, axis)
    ordered = sorting.sort(rows, -1)
    if ignore_nan:
        count: Any = reduce_sum(to(logical_not(isnan(rows)), np.int64), -1, True)
        low, high = _elements_at(ordered, (count - 1) // 2), _elements_at(ordered, count // 2)
        middle = where_op(count > 0, (low + high) / 2, tensor(np.nan, x.dtype))[..., 0]
    else:
        size = operands.sizes(rows)[-1]
        if isinstance(size, int) and not size:
            return averages.mean(x, axis, keepdims=keepdims)
        low, high = (_elements_at(ordered, tensor([i])) for i in ((size - 1) // 2, size // 2))
        mean = (low + high) / 2
        if not isinstance(size, int):  # of an odd number of elements, the two are the same one
            mean = where_op(low == high, low, mean)
        elif size % 2:
            mean = low
        middle = where_op(isnan(ordered[..., -1:]), tensor(np.nan, x.dtype), mean)[..., 0]
    return expand_dims(middle, sorted(axes)) if keepdims and axes else middle


def nanmedian(
    a: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Tensor:
    """The :func:`median` of the elements that are not nan; nan where there are none.

    Returns:
        A tensor with the shape of ``a`` without the reduced axes, and its dtype, float64 for integers.

    >>> import dualflow as df
    >>> float(df.numpy.nanmedian([1.0, float("nan"), 3.0]))
    2.0
    """
    reject_unsupported("nanmedian", out=out, overwrite_input=overwrite_input)
    return _median(a, axis, keepdims, True)


def nanquantile(
    a: TensorLike,
    q: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: TensorLike | None = None,
) -> Tensor:
    """The :func:`quantile` of the elements that are not nan; nan where there are none.

    Args:
        q: probabilities from 0 to 1, of any shape.
        weights: the weight of each element, of the shape of ``a`` or of the axis, for "inverted_cdf" only; by
            default each counts 1.

    Returns:
        A tensor with the axes of ``q``, then those of ``a`` without the reduced ones, and the dtype of ``a``;
        float64 for integers, unless ``method`` selects an element.

    Raises:
        InvalidArgumentError: a probability is not in [0, 1], ``method`` is another word, or ``weights``
            doesn't fit.
        DTypeError: ``a`` is complex.

    >>> import dualflow as df
    >>> float(df.numpy.nanquantile([1.0, float("nan"), 3.0], 0.5))
    2.0
    """
    reject_unsupported("nanquantile", out=out, overwrite_input=overwrite_input)
    return _quantile(a, q, axis, keepdims, method, weights, True)


def nanpercentile(
    a: TensorLike,
    q: TensorLike,
    axis: AxisLike | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: TensorLike | None = None,
) -> Tensor:
    """The :func:`percentile` of the elements that are not nan; nan where there are none.

    Args:
        q: percentages from 0 to 100, of any shape.
        weights: the weight of each element, of the shape of ``a`` or of the axis, for "inverted_cdf" only; by
            default each counts 1.

    Returns:
        A tensor with the axes of ``q``, then those of ``a`` without the reduced ones, and the dtype of ``a``;
        float64 for integers, unless ``method`` selects an element.

    Raises:
        InvalidArgumentError: a percentage is not in [0, 100], ``method`` is another word, or ``weights``
            doesn't fit.
        DTypeError: ``a`` is complex.

    >>> import dualflow as df
    >>> float(df.numpy.nanpercentile([1.0, float("nan"), 3.0], 50))
    2.0
    """
    reject_unsupported("nanpercentile", out=out, overwrite_input=overwrite_input)
    return _quantile(a, _from_percentages(a, q), axis, keepdims, method, weights, True)


complete_docstrings(
    globals(),
    axis="the axes to reduce, an integer or several; all by default.",
    method='how to choose between neighbours, by NumPy\'s names: "linear", "lower", "nearest" and others.',
)
make_entries(globals())
