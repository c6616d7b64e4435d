"""Sorting, searching in what is sorted, and sets."""

from __future__ import annotations

import builtins
from typing import Any, Generic, NamedTuple

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.operands import Value, agreed, flat, tensor, to
from dualflow.ops import sorting
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.comparison import equal, isnan, logical_and, logical_not, logical_or, not_equal
from dualflow.ops.complex_numbers import imag, real
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like
from dualflow.ops.joining import concat, unstack
from dualflow.ops.masking import boolean_mask
from dualflow.ops.ordering import search
from dualflow.ops.reduction import reduce_any
from dualflow.ops.scans import cumsum
from dualflow.ops.selection import where as choose
from dualflow.ops.static import ints
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Tensor


def _along(a: Any, axis: Any) -> tuple[Any, int]:
    x = tensor(a)
    if axis is None:
        return flat(x), 0
    if not x.shape:
        raise InvalidArgumentError("A number has no axis to sort; use atleast_1d.")
    return x, normalize_axis(axis, len(x.shape))


def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Tensor:
    """The places along ``axis`` that sort; equal elements keep their order, and nan comes last.

    >>> import dualflow as df
    >>> df.numpy.argsort([3, 1, 2]).numpy()
    array([1, 2, 0])
    """
    operands.refuse("argsort", order=order)
    x, where = _along(a, axis)
    return to(_order(x, where), np.int64)


def _order(x: Any, axis: int) -> Any:
    """The places that sort; complex numbers by their real parts, and then by the imaginary ones."""
    if not x.dtype.is_complex:
        return sorting.argsort(cast(x, np.uint8) if x.dtype.is_bool else x, axis, stable=True)
    spoilt = isnan(x)
    a, b = (choose(spoilt, tensor(np.nan, x.dtype.real), part(x)) for part in (real, imag))
    order = sorting.argsort(b, axis, stable=True)
    return sorting.take_along_axis(
        order, sorting.argsort(sorting.take_along_axis(a, order, axis), axis, stable=True), axis
    )


def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Tensor:
    """The elements in order along ``axis``; with None, all of them. nan comes last.

    >>> import dualflow as df
    >>> df.numpy.sort([3, 1, 2]).numpy()
    array([1, 2, 3])
    """
    operands.refuse("sort", order=order)
    x, where = _along(a, axis)
    return sorting.take_along_axis(x, _order(x, where), where)


def sort_complex(a: Any) -> Tensor:
    """The elements as complex numbers, in order of their real and then their imaginary parts."""
    x = tensor(a)
    if not x.dtype.is_complex:
        x = to(x, np.complex64 if x.dtype.kind in "iu" and x.dtype.size <= 2 else np.complex128)
    return sort(x)


def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Tensor:
    """The elements along ``axis`` with the ``kth`` where sorting would put them: all are sorted here."""
    _check_places(a, kth, axis)
    return sort(a, axis, order=order)


def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Tensor:
    """The places along ``axis`` that put the ``kth`` where sorting would: those that sort."""
    _check_places(a, kth, axis)
    return argsort(a, axis, order=order)


def _check_places(a: Any, kth: Any, axis: Any) -> None:
    x, where = _along(a, axis)
    size = x.shape[where]
    for k in ints(kth, "kth"):
        if size is not None and not -size <= k < size:
            raise InvalidArgumentError(f"kth={k} is outside of an axis of size {size}.")


def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """The places that sort by several keys, of which the last one counts first.

    >>> import dualflow as df
    >>> df.numpy.lexsort(([3, 1, 2], [0, 1, 0])).numpy()
    array([2, 0, 1])
    """
    rows = [tensor(x) for x in keys] if isinstance(keys, list | tuple) else unstack(tensor(keys))
    if not rows:
        raise InvalidArgumentError("lexsort needs one key at least.")
    where = normalize_axis(axis, len(rows[0].shape))
    order = _order(rows[0], where)
    for key in rows[1:]:
        order = sorting.take_along_axis(
            order, _order(sorting.take_along_axis(key, order, where), where), where
        )
    return to(order, np.int64)


# Searching


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Where each of ``v`` belongs in the sorted vector ``a``: "left" of equal elements, or "right" of them.

    Raises:
        InvalidArgumentError: ``a`` is no vector, or ``side`` is another word.

    >>> import dualflow as df
    >>> df.numpy.searchsorted([1, 2, 3], [2, 9], side="right").numpy()
    array([2, 3])
    """
    if side not in ("left", "right"):
        raise InvalidArgumentError(f"searchsorted's side is 'left' or 'right', not {side!r}.")
    row, values = agreed(tensor(a), tensor(v))
    if row.dtype.is_complex:
        raise DTypeError("searchsorted searches among real numbers, not complex ones.")
    if len(row.shape) != 1:
        raise InvalidArgumentError(f"searchsorted searches a vector, of one axis, not shape {row.shape}.")
    if sorter is not None:
        row = gather(row, tensor(sorter))
    if row.dtype.is_bool:
        row, values = to(row, np.uint8), to(values, np.uint8)
    places = search.searchsorted(row, flat(values), side, np.int64)
    return reshape(places, operands.sizes(values))


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """The number of the bin that each element falls into; the ``bins``, known while tracing, rise or fall.

    Raises:
        InvalidArgumentError: the bins neither rise nor fall.
    """
    edges = tensor(bins)
    static_edges = edges.static_value()
    if static_edges is None:
        rising = True
    else:
        steps = np.diff(static_edges)
        rising = bool((steps >= 0).all())
        if not rising and not (steps <= 0).all():
            raise InvalidArgumentError("digitize's bins rise or fall all the way; sort them.")
    side = "left" if right else "right"
    if rising:
        return searchsorted(edges, x, side)
    size = operands.sizes(edges)[0]
    return size - searchsorted(edges[::-1], x, side)


# Sets


class DistinctAll(NamedTuple, Generic[Value]):
    """Distinct elements, where each was first, which one each element is, and how often it occurs."""

    values: Value
    indices: Value
    inverse_indices: Value
    counts: Value


class DistinctCounts(NamedTuple, Generic[Value]):
    """Distinct elements, and how often each occurs."""

    values: Value
    counts: Value


class DistinctInverse(NamedTuple, Generic[Value]):
    """Distinct elements, and which one each element is."""

    values: Value
    inverse_indices: Value


def _differs(x: Any, equal_nan: bool) -> Any:
    """Whether each element of a sorted vector is another than the one before."""
    later, earlier = x[1:], x[:-1]
    other = not_equal(later, earlier)
    if equal_nan and x.dtype.is_inexact:
        other = logical_and(other, logical_not(logical_and(isnan(later), isnan(earlier))))
    return concat([ones_like(other[:0] if x.shape[0] == 0 else cast(x[:1], bool), bool), other], 0)


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The distinct elements in order; with ``axis``, the distinct parts along it.

    Args:
        ar: a tensor of any shape.
        return_index: return where each stood first, too.
        return_inverse: return which of them each element is, too.
        return_counts: return how often each occurs, too.
        axis: compare the parts along this axis instead of the elements.
        equal_nan: count nan as one element.
        sorted: ignored: they are always in order.

    >>> import dualflow as df
    >>> values, counts = df.numpy.unique([3, 1, 3], return_counts=True)
    >>> values.numpy(), counts.numpy()
    (array([1, 3]), array([1, 2]))
    """
    x = tensor(ar)
    if axis is None:
        row = flat(x)
        order = _order(row, 0)
        ordered = gather(row, order)
        first = _differs(ordered, equal_nan)
        values = boolean_mask(ordered, first)
        shape = operands.sizes(x)
    else:
        where = normalize_axis(axis, len(x.shape))
        to_front = [where, *[i for i in range(len(x.shape)) if i != where]]
        parts = transpose(x, to_front)
        order, first = _of_rows(reshape(parts, [parts.shape[0], -1]))
        back = undone(to_front)
        values = transpose(boolean_mask(gather(parts, order), first), back)
        shape = (operands.sizes(x)[where],)
    if not (return_index or return_inverse or return_counts):
        return values
    results = [values]
    if return_index:
        results.append(to(boolean_mask(order, first), np.int64))
    if return_inverse:
        which = cumsum(cast(first, np.int64), 0) - 1
        results.append(reshape(gather(which, _order(order, 0)), shape))
    if return_counts:
        starts = choose(first)[:, 0]
        ends = (
            concat([starts[1:], reshape(tensor(operands.length(order)), [1])], 0)
            if starts.shape[0] != 0
            else starts
        )
        results.append(ends - starts)
    return tuple(results)


def undone(order: Any) -> list[int]:
    """The permutation that undoes another one."""
    return builtins.sorted(range(len(order)), key=order.__getitem__)


def _of_rows(rows: Any) -> tuple[Any, Any]:
    """The order of a matrix's rows, and which of them differ from the one before."""
    count = rows.shape[1]
    if not rows.shape[0]:
        return tensor(np.zeros(0, np.int32)), tensor(np.zeros(0, bool))
    order = (
        to(lexsort([rows[:, i] for i in reversed(range(count))]), np.int32)
        if count
        else tensor(np.arange(rows.shape[0]))
    )
    ordered = gather(rows, order)
    other = reduce_any(not_equal(ordered[1:], ordered[:-1]), 1)
    return order, concat([tensor(np.ones(1, bool)), other], 0)


def unique_all(x: Any) -> DistinctAll[Tensor]:
    """The distinct elements, their first places, which one each element is, and their counts."""
    return DistinctAll(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> DistinctCounts[Tensor]:
    """The distinct elements, and how often each occurs."""
    return DistinctCounts(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> DistinctInverse[Tensor]:
    """The distinct elements, and which of them each element is."""
    return DistinctInverse(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any) -> Tensor:
    """The distinct elements, in order."""
    return to(unique(x, equal_nan=False), tensor(x).dtype)


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Tensor:
    """Whether each element is one of ``test_elements``; with ``invert``, whether it isn't.

    >>> import dualflow as df
    >>> df.numpy.isin([1, 2, 3], [3, 1]).numpy()
    array([ True, False,  True])
    """
    x, members = agreed(tensor(element), tensor(test_elements))
    members = flat(members)
    if members.shape[0] is None or members.dtype.is_complex:
        is_member = reduce_any(equal(x[..., None], members), -1)
    elif not members.shape[0]:
        is_member = zeros_like(x, bool)
    else:
        ordered = sort(members)
        place = searchsorted(ordered, x)
        is_member = equal(gather(ordered, choose(place < members.shape[0], place, 0)), x)
    return logical_not(is_member) if invert else is_member


def _sets(ar1: Any, ar2: Any, assume_unique: bool) -> tuple[Any, Any]:
    a, b = agreed(flat(tensor(ar1)), flat(tensor(ar2)))
    return (a, b) if assume_unique else (unique(a), unique(b))


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that both have, in order; with ``return_indices``, their first places too."""
    a, b = agreed(flat(tensor(ar1)), flat(tensor(ar2)))
    at_a = at_b = None
    if not assume_unique:
        a, at_a = unique(a, return_index=True)
        b, at_b = unique(b, return_index=True)
    both = concat([a, b], 0)
    order = _order(both, 0)
    ordered = gather(both, order)
    twice = equal(ordered[1:], ordered[:-1])
    common = boolean_mask(ordered[:-1], twice)
    if not return_indices:
        return common
    first = to(boolean_mask(order[:-1], twice), np.int64)
    second = to(boolean_mask(order[1:], twice), np.int64) - operands.length(a)
    if at_a is not None and at_b is not None:
        first, second = gather(at_a, first), gather(at_b, second)
    return common, first, second


def union1d(ar1: Any, ar2: Any) -> Tensor:
    """The distinct elements that one of both has, in order."""
    return unique(concat([flat(x) for x in agreed(tensor(ar1), tensor(ar2))], 0))


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The distinct elements of the first that the second doesn't have."""
    a, b = flat(tensor(ar1)), flat(tensor(ar2))
    a = a if assume_unique else unique(a)
    return boolean_mask(a, isin(a, b, invert=True))


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The distinct elements that exactly one of both has, in order."""
    a, b = _sets(ar1, ar2, assume_unique)
    ordered = sort(concat([a, b], 0))
    same = equal(ordered[1:], ordered[:-1])
    edge = convert_to_tensor(np.zeros(1, bool))
    if ordered.shape[0] == 0:
        return ordered
    alone = logical_not(logical_or(concat([same, edge], 0), concat([edge, same], 0)))
    return boolean_mask(ordered, alone)


make_entries(globals())
