"""What is different among the elements of an array: sorted, and compared with the neighbours."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dualflow.array_api.array import Array, tensor_of
from dualflow.array_api.searching import order_of
from dualflow.core.dtypes import int64
from dualflow.core.tracebacks import make_entries
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.comparison import not_equal
from dualflow.ops.complex_numbers import imag, real
from dualflow.ops.conversion import cast
from dualflow.ops.indexing import getitem
from dualflow.ops.joining import concat
from dualflow.ops.masking import boolean_mask
from dualflow.ops.scans import cumsum
from dualflow.ops.scattering import scatter_nd
from dualflow.ops.selection import where
from dualflow.ops.shapes import size
from dualflow.ops.tensor import Tensor


class UniqueAll(NamedTuple):
    """What :func:`unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What :func:`unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What :func:`unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def unique_all(x: Any, /) -> UniqueAll:
    """The different elements of ``x`` in order, where they are, and how many of each.

    Every nan is an element of its own.

    Returns:
        A named tuple of ``values``, ``indices`` of their first occurrences in the flattened array,
        ``inverse_indices``, of the shape of ``x``, that make it of the values, and ``counts``.

    Raises:
        DTypeError: ``x`` is no array.

    >>> import dualflow.array_api as xp
    >>> [found.tolist() for found in xp.unique_all(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    tensor = tensor_of(x)
    order, ordered, first = _grouped(tensor)
    starts = reshape(where(first), [-1])
    ends = concat([starts[1:], reshape(cast(size(ordered), int64), [1])], 0)
    group = cumsum(cast(first, int64)) - 1
    inverse = scatter_nd(expand_dims(order, -1), group, order.shape)
    found = (
        boolean_mask(ordered, first),
        boolean_mask(order, first),
        reshape(inverse, tensor.shape),
        ends[: starts.shape[0]] - starts,
    )
    return UniqueAll(*[Array(part) for part in found])


def _grouped(x: Tensor) -> tuple[Any, Any, Any]:
    """The positions that sort the flattened array, what they make of it, and where a new element begins."""
    flat = reshape(x, [-1])
    order = _complex_order(flat) if flat.dtype.is_complex else order_of(flat, 0, descending=False)
    ordered = getitem(flat, (order,))
    count = flat.shape[0]
    start = np.ones(1 if count is None else min(count, 1), np.bool_)
    return order, ordered, concat([start, not_equal(ordered[1:], ordered[:-1])], 0)


def _complex_order(x: Tensor) -> Any:
    """The positions that sort complex numbers by their real parts, and equal ones by the imaginary."""
    by_imag = order_of(imag(x), 0, descending=False)
    by_real = order_of(real(getitem(x, (by_imag,))), 0, descending=False)
    return getitem(by_imag, (by_real,))


def unique_counts(x: Any, /) -> UniqueCounts:
    """The different elements of ``x`` in order, and how many of each; see :func:`unique_all`.

    Raises:
        DTypeError: ``x`` is no array.

    >>> import dualflow.array_api as xp
    >>> [found.tolist() for found in xp.unique_counts(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The different elements of ``x`` in order, and for each of ``x`` which it is; see :func:`unique_all`.

    Raises:
        DTypeError: ``x`` is no array.

    >>> import dualflow.array_api as xp
    >>> [found.tolist() for found in xp.unique_inverse(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Array:
    """The different elements of ``x`` in order; every nan is one of its own.

    Raises:
        DTypeError: ``x`` is no array.

    >>> import dualflow.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    _, ordered, first = _grouped(tensor_of(x))
    return Array(boolean_mask(ordered, first))


make_entries(globals())
