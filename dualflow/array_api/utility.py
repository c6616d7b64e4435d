"""The standard's utility functions: all, any and diff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.array_api.array import Array, tensor_of
from dualflow.array_api.axes import axes_of, axis_of
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import calculus
from dualflow.numpy.axis_reductions import as_bool
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.ops.reduction import reduce_all, reduce_any

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray, AxisLike


def all(x: AnyArray, /, *, axis: AxisLike | None = None, keepdims: bool = False) -> Array:
    """Whether all elements over ``axis`` are true (not 0); True for no elements.

    Returns:
        A bool array with the shape of ``x`` without the reduced axes.

    >>> import dualflow.array_api as xp
    >>> xp.all(xp.asarray([[True, False], [True, True]]), axis=1).tolist()
    [False, True]
    """
    holds = as_bool(tensor_of(x))
    return Array(reduce_all(holds, axes_of(axis, len(holds.shape)), keepdims))


def any(x: AnyArray, /, *, axis: AxisLike | None = None, keepdims: bool = False) -> Array:
    """Whether any element over ``axis`` is true (not 0); False for no elements.

    Returns:
        A bool array with the shape of ``x`` without the reduced axes.

    >>> import dualflow.array_api as xp
    >>> xp.any(xp.asarray([[True, False], [False, False]]), axis=1).tolist()
    [True, False]
    """
    holds = as_bool(tensor_of(x))
    return Array(reduce_any(holds, axes_of(axis, len(holds.shape)), keepdims))


def diff(
    x: AnyArray,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: AnyArray | None = None,
    append: AnyArray | None = None,
) -> Array:
    """The ``n``-th differences of neighbouring elements along ``axis``.

    Args:
        x: numbers of one axis or more.
        axis: along which the neighbours are.
        n: how often; 0 for ``x`` itself.
        prepend: an array to put before ``x`` along the axis.
        append: an array to put after it.

    Returns:
        An array with the shape of ``x``, ``n`` smaller along ``axis``, and the common dtype of ``x`` and the
        added arrays.

    Raises:
        InvalidArgumentError: ``n`` is negative.

    >>> import dualflow.array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    tensor = tensor_of(x)
    along = axis_of(axis, len(tensor.shape))
    before, after = (None if edge is None else tensor_of(edge) for edge in (prepend, append))
    return Array(calculus.diff(tensor, n, along, before, after))


complete_docstrings(
    globals(),
    "is no array",
    x="an array of any shape.",
    axis="the axes to reduce, an integer or a tuple; all by default.",
)
make_entries(globals())
