"""Whether elements hold, and by how much neighbours differ."""

from __future__ import annotations

from typing import Any

from dualflow.array_api.array import Array, tensor_of
from dualflow.array_api.axes import axes_of, axis_of
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.ops import reduction
from dualflow.ops.comparison import not_equal
from dualflow.ops.joining import concat


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Whether all elements hold, or are not 0, over ``axis``: one, several or all; True for none.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: an axis named twice.

    >>> import dualflow.array_api as xp
    >>> xp.all(xp.asarray([[True, False], [True, True]]), axis=1).tolist()
    [False, True]
    """
    return _truth(reduction.reduce_all, x, axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Whether any element holds, or is not 0, over ``axis``: one, several or all; False for none.

    Raises:
        OutOfRangeError: an axis that ``x`` doesn't have.
        InvalidArgumentError: an axis named twice.

    >>> import dualflow.array_api as xp
    >>> xp.any(xp.asarray([[True, False], [False, False]]), axis=1).tolist()
    [True, False]
    """
    return _truth(reduction.reduce_any, x, axis, keepdims)


def _truth(function: Any, x: Any, axis: Any, keepdims: bool) -> Array:
    tensor = tensor_of(x)
    held = tensor if tensor.dtype.is_bool else not_equal(tensor, 0)
    return Array(function(held, axes_of(axis, len(held.shape)), keepdims))


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Array:
    """The differences of neighbours along ``axis``, ``n`` times over.

    Args:
        x: numbers of one axis or more.
        axis: along which the neighbours are.
        n: how often; 0 for ``x`` itself.
        prepend: an array to put before ``x`` along the axis.
        append: an array to put after it.

    Raises:
        InvalidArgumentError: ``n`` is negative.
        OutOfRangeError: an axis that ``x`` doesn't have.

    >>> import dualflow.array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    if n < 0:
        raise InvalidArgumentError(f"diff takes differences 0 times or more, not {n}.")
    found: Any = tensor_of(x)
    along = axis_of(axis, len(found.shape))
    if n:
        parts = [tensor_of(p) for p in (prepend, Array(found), append) if p is not None]
        found = concat(parts, along)
    before = (slice(None),) * along
    for _ in range(n):
        later, earlier = found[(*before, slice(1, None))], found[(*before, slice(None, -1))]
        found = not_equal(later, earlier) if found.dtype.is_bool else later - earlier
    return Array(found)


make_entries(globals())
