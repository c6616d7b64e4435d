"""Sorting, partitioning and binary search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, promote_together, tensor, to
from dualflow.ops import sorting
from dualflow.ops.arrangement import reshape
from dualflow.ops.comparison import isnan
from dualflow.ops.complex_numbers import imag, real
from dualflow.ops.conversion import cast
from dualflow.ops.joining import unstack
from dualflow.ops.ordering import search
from dualflow.ops.selection import where as where_op
from dualflow.ops.static import ints
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike


def _resolve_axis(a: Any, axis: Any) -> tuple[Any, int]:
    """``a`` and its axis to sort; flattened if ``axis`` is None."""
    x = tensor(a)
    if axis is None:
        return flat(x), 0
    if not x.shape:
        raise InvalidArgumentError("A number has no axis to sort; use atleast_1d.")
    return x, normalize_axis(axis, len(x.shape))


def argsort(
    a: TensorLike,
    axis: AxisLike | None = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    stable: TensorLike | None = None,
) -> Tensor:
    """The indices that sort along ``axis``; equal elements keep their order, and nan comes last.

    Returns:
        An int64 tensor with the shape of ``a``.

    Raises:
        InvalidArgumentError: ``a`` has no axes.
        DTypeError: ``order`` is passed.

    >>> import dualflow as df
    >>> df.numpy.argsort([3, 1, 2]).numpy()
    array([1, 2, 0])
    """
    operands.reject_unsupported("argsort", order=order)
    x, along = _resolve_axis(a, axis)
    return to(stable_argsort(x, along), np.int64)


def stable_argsort(x: Any, axis: int) -> Any:
    """The indices that sort ``x``; complex numbers by their real parts, then by their imaginary parts."""
    if not x.dtype.is_complex:
        return sorting.argsort(cast(x, np.uint8) if x.dtype.is_bool else x, axis, stable=True)
    is_nan = isnan(x)
    a, b = (where_op(is_nan, tensor(np.nan, x.dtype.real), part(x)) for part in (real, imag))
    order = sorting.argsort(b, axis, stable=True)
    return sorting.take_along_axis(
        order, sorting.argsort(sorting.take_along_axis(a, order, axis), axis, stable=True), axis
    )


def sort(
    a: TensorLike,
    axis: AxisLike | None = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    stable: TensorLike | None = None,
) -> Tensor:
    """The elements sorted along ``axis``, ascending; nan comes last.

    Returns:
        A tensor with the shape and dtype of ``a``.

    Raises:
        InvalidArgumentError: ``a`` has no axes.
        DTypeError: ``order`` is passed.

    >>> import dualflow as df
    >>> df.numpy.sort([3, 1, 2]).numpy()
    array([1, 2, 3])
    """
    operands.reject_unsupported("sort", order=order)
    x, along = _resolve_axis(a, axis)
    return sorting.take_along_axis(x, stable_argsort(x, along), along)


def sort_complex(a: TensorLike) -> Tensor:
    """The elements as complex numbers, sorted by their real parts, then by their imaginary parts.

    Args:
        a: numbers of one axis or more; the last one is sorted.

    Returns:
        A tensor with the shape of ``a``; complex64 for integers of up to 16 bits and complex64, else
        complex128.

    Raises:
        InvalidArgumentError: ``a`` has no axes.

    >>> import dualflow as df
    >>> df.numpy.sort_complex([2, 1j]).numpy()
    array([0.+1.j, 2.+0.j])
    """
    x = tensor(a)
    if not x.dtype.is_complex:
        x = to(x, np.complex64 if x.dtype.kind in "iu" and x.dtype.size <= 2 else np.complex128)
    return sort(x)


def partition(
    a: TensorLike,
    kth: TensorLike,
    axis: AxisLike | None = -1,
    kind: str = "introselect",
    order: str | None = None,
) -> Tensor:
    """The elements sorted along ``axis``, as ``numpy.partition`` may return them for every ``kth``.

    Args:
        kth: an index, or several.
        kind: ignored: the elements are sorted.

    Returns:
        A tensor with the shape and dtype of ``a``.

    Raises:
        InvalidArgumentError: ``kth`` is out of range, or ``a`` has no axes.
        DTypeError: ``order`` is passed.

    >>> import dualflow as df
    >>> df.numpy.partition([3, 1, 2], 1).numpy()
    array([1, 2, 3])
    """
    _check_kth(a, kth, axis)
    return sort(a, axis, order=order)


def argpartition(
    a: TensorLike,
    kth: TensorLike,
    axis: AxisLike | None = -1,
    kind: str = "introselect",
    order: str | None = None,
) -> Tensor:
    """The indices that sort along ``axis``, as ``numpy.argpartition`` may return them for every ``kth``.

    Args:
        kth: an index, or several.
        kind: ignored: the elements are sorted.

    Returns:
        An int64 tensor with the shape of ``a``.

    Raises:
        InvalidArgumentError: ``kth`` is out of range, or ``a`` has no axes.
        DTypeError: ``order`` is passed.

    >>> import dualflow as df
    >>> df.numpy.argpartition([3, 1, 2], 1).numpy()
    array([1, 2, 0])
    """
    _check_kth(a, kth, axis)
    return argsort(a, axis, order=order)


def _check_kth(a: Any, kth: Any, axis: Any) -> None:
    x, along = _resolve_axis(a, axis)
    size = x.shape[along]
    for k in ints(kth, "kth"):
        if size is not None and not -size <= k < size:
            raise InvalidArgumentError(f"kth={k} is outside of an axis of size {size}.")


def lexsort(keys: TensorLike, axis: int = -1) -> Tensor:
    """The indices that sort by several keys, the last of which is the primary one.

    Args:
        keys: a list of tensors of one shape, or a tensor of them.

    Returns:
        An int64 tensor with the shape of a key.

    Raises:
        InvalidArgumentError: there are no keys.
        DTypeError: a key can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.lexsort(([3, 1, 2], [0, 1, 0])).numpy()
    array([2, 0, 1])
    """
    rows = [tensor(x) for x in keys] if isinstance(keys, list | tuple) else unstack(tensor(keys))
    if not rows:
        raise InvalidArgumentError("lexsort needs one key at least.")
    along = normalize_axis(axis, len(rows[0].shape))
    order = stable_argsort(rows[0], along)
    for key in rows[1:]:
        order = sorting.take_along_axis(
            order, stable_argsort(sorting.take_along_axis(key, order, along), along), along
        )
    return to(order, np.int64)


# Searching


def searchsorted(
    a: TensorLike, v: TensorLike, side: str = "left", sorter: TensorLike | None = None
) -> Tensor:
    """The indices at which to insert ``v`` into the sorted vector ``a``, by binary search.

    Args:
        a: a vector of real numbers, ascending.
        v: the numbers to insert, of any shape.
        side: "left", before equal elements, or "right", after them.
        sorter: indices that sort ``a``; by default ``a`` is sorted.

    Returns:
        An int64 tensor with the shape of ``v``.

    Raises:
        InvalidArgumentError: ``a`` is not a vector, or ``side`` is unknown.
        DTypeError: a number is complex.

    >>> import dualflow as df
    >>> df.numpy.searchsorted([1, 2, 3], [2, 9], side="right").numpy()
    array([2, 3])
    """
    if side not in ("left", "right"):
        raise InvalidArgumentError(f"searchsorted's side is 'left' or 'right', not {side!r}.")
    sorted_values, values = promote_together(tensor(a), tensor(v))
    if sorted_values.dtype.is_complex:
        raise DTypeError("searchsorted searches among real numbers, not complex ones.")
    if len(sorted_values.shape) != 1:
        raise InvalidArgumentError(
            f"searchsorted searches a vector, of one axis, not shape {sorted_values.shape}."
        )
    if sorter is not None:
        sorted_values = gather(sorted_values, tensor(sorter))
    if sorted_values.dtype.is_bool:
        sorted_values, values = to(sorted_values, np.uint8), to(values, np.uint8)
    indices = search.searchsorted(sorted_values, flat(values), side, np.int64)
    return reshape(indices, operands.sizes(values))


def digitize(x: TensorLike, bins: TensorLike, right: bool = False) -> Tensor:
    """The index of the bin that each element falls into.

    Args:
        x: real numbers of any shape.
        bins: the edges, a vector that ascends or descends; it ascends if it is symbolic.
        right: whether a bin includes its right edge instead of its left one.

    Returns:
        An int64 tensor with the shape of ``x``.

    Raises:
        InvalidArgumentError: the edges are not a vector, or neither ascend nor descend.

    >>> import dualflow as df
    >>> df.numpy.digitize([0.5, 1.5, 9.0], [1.0, 2.0]).numpy()
    array([0, 1, 2])
    """
    edges = tensor(bins)
    if len(edges.shape) != 1:
        raise InvalidArgumentError(f"digitize's bins are a vector, not of shape {edges.shape}; flatten them.")
    static_edges = edges.static_value()
    if static_edges is None:
        ascending = True
    else:
        steps = np.diff(static_edges)
        ascending = bool((steps >= 0).all())
        if not ascending and not (steps <= 0).all():
            raise InvalidArgumentError("digitize needs bins that ascend or descend throughout; sort them.")
    side = "left" if right else "right"
    if ascending:
        return searchsorted(edges, x, side)
    size = operands.sizes(edges)[0]
    return size - searchsorted(edges[::-1], x, side)


complete_docstrings(
    globals(),
    axis="the axis; a negative one counts from the end, and None flattens.",
    order="must be None; elements have no fields.",
    stable="ignored: sorting is always stable; None by default.",
)
make_entries(globals())
