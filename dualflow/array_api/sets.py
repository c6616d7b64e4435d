"""What is different among the elements of an array: sorted, and compared with the neighbours."""

from __future__ import annotations

from typing import Any

from dualflow.array_api.array import Array, tensor_of
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import distinct
from dualflow.numpy.distinct import DistinctAll, DistinctCounts, DistinctInverse


def unique_all(x: Any, /) -> DistinctAll[Array]:
    """The different elements of ``x`` in order, where they are, and how many of each.

    Every nan is an element of its own.

    Returns:
        A named tuple of ``values``, ``indices`` of their first occurrences in the flattened array,
        ``inverse_indices``, of the shape of ``x``, that make it of the values, and ``counts``.

    >>> import dualflow.array_api as xp
    >>> [part.tolist() for part in xp.unique_all(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    return DistinctAll(*map(Array, distinct.unique_all(tensor_of(x))))


def unique_counts(x: Any, /) -> DistinctCounts[Array]:
    """The different elements of ``x`` in order, and how many of each; see :func:`unique_all`.

    >>> import dualflow.array_api as xp
    >>> [part.tolist() for part in xp.unique_counts(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    return DistinctCounts(*map(Array, distinct.unique_counts(tensor_of(x))))


def unique_inverse(x: Any, /) -> DistinctInverse[Array]:
    """The different elements of ``x`` in order, and for each of ``x`` which it is; see :func:`unique_all`.

    >>> import dualflow.array_api as xp
    >>> [part.tolist() for part in xp.unique_inverse(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    return DistinctInverse(*map(Array, distinct.unique_inverse(tensor_of(x))))


def unique_values(x: Any, /) -> Array:
    """The different elements of ``x`` in order; every nan is one of its own.

    >>> import dualflow.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    return Array(distinct.unique_values(tensor_of(x)))


make_entries(globals())
