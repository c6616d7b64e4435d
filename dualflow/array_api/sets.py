"""The distinct elements of an array, found by sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.array_api.array import Array, tensor_of
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import distinct
from dualflow.numpy.distinct import DistinctAll, DistinctCounts, DistinctInverse
from dualflow.numpy.docstrings import complete_docstrings

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray


def unique_all(x: AnyArray, /) -> DistinctAll[Array]:
    """The distinct elements of ``x``, sorted, with their first positions, inverse indices and counts.

    Every nan is an element of its own.

    Returns:
        A named tuple of ``values``, ``indices``, ``inverse_indices`` and ``counts``; the last three are
        int64.

    >>> import dualflow.array_api as xp
    >>> [part.tolist() for part in xp.unique_all(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    return DistinctAll(*map(Array, distinct.unique_all(tensor_of(x))))


def unique_counts(x: AnyArray, /) -> DistinctCounts[Array]:
    """The distinct elements of ``x``, sorted, and how often each occurs; see :func:`unique_all`.

    Returns:
        A named tuple of ``values`` and ``counts``.

    >>> import dualflow.array_api as xp
    >>> [part.tolist() for part in xp.unique_counts(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    return DistinctCounts(*map(Array, distinct.unique_counts(tensor_of(x))))


def unique_inverse(x: AnyArray, /) -> DistinctInverse[Array]:
    """The distinct elements of ``x``, sorted, and the index of each element among them.

    Returns:
        A named tuple of ``values`` and ``inverse_indices``.

    >>> import dualflow.array_api as xp
    >>> [part.tolist() for part in xp.unique_inverse(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    return DistinctInverse(*map(Array, distinct.unique_inverse(tensor_of(x))))


def unique_values(x: AnyArray, /) -> Array:
    """The distinct elements of ``x``, sorted; each nan is one of its own.

    Returns:
        A vector of the dtype of ``x``, whose size depends on the elements.

    >>> import dualflow.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    return Array(distinct.unique_values(tensor_of(x)))


complete_docstrings(
    globals(),
    "is no array",
    x="an array of any shape.",
)
make_entries(globals())
