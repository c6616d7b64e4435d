"""Distinct elements, and operations on sets of elements."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, overload

import numpy as np

from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import Value, flat, promote_together, tensor, to
from dualflow.numpy.sorting import lexsort, searchsorted, sort, stable_argsort
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.comparison import equal, isnan, logical_and, logical_not, logical_or, not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like
from dualflow.ops.joining import concat
from dualflow.ops.masking import boolean_mask
from dualflow.ops.positions import range as range_op
from dualflow.ops.reduction import reduce_any
from dualflow.ops.scans import cumsum
from dualflow.ops.selection import where as where_op
from dualflow.ops.static import require_static_sizes
from dualflow.ops.taking import gather
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


class DistinctAll(NamedTuple, Generic[Value]):
    """Distinct elements, their first positions, the inverse indices, and their counts."""

    values: Value
    indices: Value
    inverse_indices: Value
    counts: Value


class DistinctCounts(NamedTuple, Generic[Value]):
    """Distinct elements and their counts."""

    values: Value
    counts: Value


class DistinctInverse(NamedTuple, Generic[Value]):
    """Distinct elements, and the index of each element of the input among them."""

    values: Value
    inverse_indices: Value


def _starts_run(x: Any, equal_nan: bool) -> Any:
    """A mask of the elements of a sorted vector that start a run: they differ from the previous element."""
    later, earlier = x[1:], x[:-1]
    other = not_equal(later, earlier)
    if equal_nan and x.dtype.is_inexact:
        other = logical_and(other, logical_not(logical_and(isnan(later), isnan(earlier))))
    return concat([ones_like(other[:0] if x.shape[0] == 0 else cast(x[:1], bool), bool), other], 0)


@overload
def unique(
    ar: TensorLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Tensor: ...
@overload
def unique(
    ar: TensorLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any: ...
def unique(
    ar: TensorLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The distinct elements, sorted; with ``axis``, the distinct slices along it.

    Args:
        ar: numbers of any shape.
        return_index: whether to return the index of the first occurrence of each, too.
        return_inverse: whether to return the index of each element among the distinct ones, too.
        return_counts: whether to return how often each occurs, too.
        axis: the axis of the slices; by default elements are compared.
        equal_nan: whether all nan are one element.
        sorted: ignored: the elements are always sorted.

    Returns:
        A vector of the dtype of ``ar``, whose size depends on the elements; with another result, a tuple.
        Indices and counts are int64.

    Raises:
        DTypeError: ``ar`` can't become a tensor.

    >>> import dualflow as df
    >>> values, counts = df.numpy.unique([3, 1, 3], return_counts=True)
    >>> values.numpy(), counts.numpy()
    (array([1, 3]), array([1, 2]))
    """
    x = tensor(ar)
    if axis is None:
        row = flat(x)
        order = stable_argsort(row, 0)
        ordered = gather(row, order)
        first = _starts_run(ordered, equal_nan)
        values = boolean_mask(ordered, first)
        shape = operands.sizes(x)
    else:
        positive_axis = normalize_axis(axis, len(x.shape))
        to_front = [positive_axis, *[i for i in range(len(x.shape)) if i != positive_axis]]
        parts = transpose(x, to_front)
        front, *others = operands.sizes(parts)
        order, first = _sort_rows(reshape(parts, [front, math.prod(others)]))
        inverse = inverse_permutation(to_front)
        values = transpose(boolean_mask(gather(parts, order), first), inverse)
        shape = (operands.sizes(x)[positive_axis],)
    if not (return_index or return_inverse or return_counts):
        return values
    results = [values]
    if return_index:
        results.append(to(boolean_mask(order, first), np.int64))
    if return_inverse:
        which = cumsum(cast(first, np.int64), 0) - 1
        results.append(reshape(gather(which, stable_argsort(order, 0)), shape))
    if return_counts:
        starts = where_op(first)[:, 0]
        ends = (
            concat([starts[1:], reshape(tensor(operands.length(order)), [1])], 0)
            if starts.shape[0] != 0
            else starts
        )
        results.append(ends - starts)
    return tuple(results)


def inverse_permutation(order: Any) -> list[int]:
    """The inverse of the permutation ``order``."""
    return builtins.sorted(range(len(order)), key=order.__getitem__)


def _sort_rows(rows: Any) -> tuple[Any, Any]:
    """The permutation that sorts the rows of a matrix, and a mask of the first of equal sorted rows."""
    (size,) = require_static_sizes(rows.shape, "unique's number of elements of a slice", [1])
    if rows.shape[0] == 0:
        return tensor(np.zeros(0, np.int32)), tensor(np.zeros(0, bool))
    order = (
        to(lexsort([rows[:, i] for i in reversed(range(size))]), np.int32)
        if size
        else range_op(operands.sizes(rows)[0])
    )
    ordered = gather(rows, order)
    other = reduce_any(not_equal(ordered[1:], ordered[:-1]), 1)
    first = concat([tensor(np.ones(1, bool)), other], 0)
    return order, first if rows.shape[0] is not None else first[: operands.sizes(rows)[0]]


def unique_all(x: TensorLike) -> DistinctAll[Tensor]:
    """The distinct elements, their first indices, the index of each element among them, and their counts.

    Returns:
        A named tuple of ``values``, ``indices``, ``inverse_indices`` and ``counts``; the last three are
        int64.

    >>> import dualflow as df
    >>> df.numpy.unique_all([3, 1, 3]).counts.numpy()
    array([1, 2])
    """
    return DistinctAll(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: TensorLike) -> DistinctCounts[Tensor]:
    """The distinct elements, sorted, and how often each occurs.

    Returns:
        A named tuple of ``values``, in the dtype of ``x``, and ``counts``, int64.

    >>> import dualflow as df
    >>> df.numpy.unique_counts([3, 1, 3]).counts.numpy()
    array([1, 2])
    """
    return DistinctCounts(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: TensorLike) -> DistinctInverse[Tensor]:
    """The distinct elements, sorted, and the index of each element among them.

    Returns:
        A named tuple of ``values``, in the dtype of ``x``, and ``inverse_indices``, int64 with the shape of
        ``x``.

    >>> import dualflow as df
    >>> df.numpy.unique_inverse([3, 1, 3]).inverse_indices.numpy()
    array([1, 0, 1])
    """
    return DistinctInverse(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: TensorLike) -> Tensor:
    """The distinct elements, sorted; each nan is one of its own.

    Returns:
        A vector of the dtype of ``x``, whose size depends on the elements.

    >>> import dualflow as df
    >>> df.numpy.unique_values([3, 1, 3]).numpy()
    array([1, 3])
    """
    return to(unique(x, equal_nan=False), tensor(x).dtype)


def isin(
    element: object,
    test_elements: TensorLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Tensor:
    """Whether each element is among ``test_elements``.

    Args:
        element: numbers of any shape.
        test_elements: numbers of any shape.
        assume_unique: ignored.
        invert: whether to return the opposite.
        kind: ignored: the elements are searched in sorted ones.

    Returns:
        A bool tensor with the shape of ``element``.

    Raises:
        DTypeError: an argument can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.isin([1, 2, 3], [3, 1]).numpy()
    array([ True, False,  True])
    """
    x, members = promote_together(tensor(element), tensor(test_elements))
    members = flat(members)
    if members.shape[0] is None or members.dtype.is_complex:
        is_member = reduce_any(equal(x[..., None], members), -1)
    elif not members.shape[0]:
        is_member = zeros_like(x, bool)
    else:
        ordered = sort(members)
        index = searchsorted(ordered, x)
        is_member = equal(gather(ordered, where_op(index < members.shape[0], index, 0)), x)
    return logical_not(is_member) if invert else is_member


def _distinct_vectors(ar1: Any, ar2: Any, assume_unique: bool) -> tuple[Any, Any]:
    """Both arguments as vectors of one dtype without repeated elements."""
    a, b = promote_together(flat(tensor(ar1)), flat(tensor(ar2)))
    return (a, b) if assume_unique else (unique(a), unique(b))


@overload
def intersect1d(
    ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False, return_indices: Literal[False] = False
) -> Tensor: ...
@overload
def intersect1d(
    ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def intersect1d(
    ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False, return_indices: bool = False
) -> Any: ...
def intersect1d(
    ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The distinct elements that both arguments have, sorted.

    Args:
        assume_unique: whether the elements of each argument are distinct.
        return_indices: whether to return the indices of their first occurrences in both, too.

    Returns:
        A vector of the common dtype, whose size depends on the elements; with ``return_indices``, a tuple of
        it and two int64 vectors.

    >>> import dualflow as df
    >>> df.numpy.intersect1d([1, 2, 3], [3, 1, 9]).numpy()
    array([1, 3])
    """
    a, b = promote_together(flat(tensor(ar1)), flat(tensor(ar2)))
    indices_a = indices_b = None
    if not assume_unique:
        a, indices_a = unique(a, return_index=True)
        b, indices_b = unique(b, return_index=True)
    both = concat([a, b], 0)
    order = stable_argsort(both, 0)
    ordered = gather(both, order)
    twice = equal(ordered[1:], ordered[:-1])
    common = boolean_mask(ordered[:-1], twice)
    if not return_indices:
        return common
    first = to(boolean_mask(order[:-1], twice), np.int64)
    second = to(boolean_mask(order[1:], twice), np.int64) - operands.length(a)
    if indices_a is not None and indices_b is not None:
        first, second = gather(indices_a, first), gather(indices_b, second)
    return common, first, second


def union1d(ar1: TensorLike, ar2: TensorLike) -> Tensor:
    """The distinct elements that either argument has, sorted.

    Returns:
        A vector of the common dtype, whose size depends on the elements.

    >>> import dualflow as df
    >>> df.numpy.union1d([1, 2], [2, 9]).numpy()
    array([1, 2, 9])
    """
    return unique(concat([flat(x) for x in promote_together(tensor(ar1), tensor(ar2))], 0))


def setdiff1d(ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False) -> Tensor:
    """The distinct elements of the first argument that the second doesn't have, sorted.

    Args:
        assume_unique: whether the elements of each argument are distinct; they are not sorted then.

    Returns:
        A vector of the dtype of ``ar1``, whose size depends on the elements.

    >>> import dualflow as df
    >>> df.numpy.setdiff1d([1, 2, 3], [2]).numpy()
    array([1, 3])
    """
    a, b = flat(tensor(ar1)), flat(tensor(ar2))
    a = a if assume_unique else unique(a)
    return boolean_mask(a, isin(a, b, invert=True))


def setxor1d(ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False) -> Tensor:
    """The distinct elements that exactly one of the arguments has, sorted.

    Args:
        assume_unique: whether the elements of each argument are distinct.

    Returns:
        A vector of the common dtype, whose size depends on the elements.

    >>> import dualflow as df
    >>> df.numpy.setxor1d([1, 2], [2, 9]).numpy()
    array([1, 9])
    """
    a, b = _distinct_vectors(ar1, ar2, assume_unique)
    ordered = sort(concat([a, b], 0))
    same = equal(ordered[1:], ordered[:-1])
    edge = convert_to_tensor(np.zeros(1, bool))
    if ordered.shape[0] == 0:
        return ordered
    is_single = logical_not(logical_or(concat([same, edge], 0), concat([edge, same], 0)))
    return boolean_mask(ordered, is_single)


complete_docstrings(globals())
make_entries(globals())
