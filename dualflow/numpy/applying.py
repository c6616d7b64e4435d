"""Python functions applied along axes and to elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.function.control.maps import map_fn
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import broadcast_together, promote_together, tensor
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.checks import required
from dualflow.ops.joining import concat, stack
from dualflow.ops.reduction import reduce_prod
from dualflow.ops.static import ints, static_int
from dualflow.ops.tensor import Tensor
from dualflow.ops.tensor_sizes import sizes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: TensorLike, *args: Any, **kwargs: Any
) -> Tensor:
    """``func1d`` applied to each vector along ``axis``; its results replace the vectors.

    Args:
        func1d: a function of a vector that returns a number or a tensor; all its results have one shape.
        axis: the axis of the vectors; a negative one counts from the end.
        *args: further arguments of ``func1d``.
        **kwargs: further named arguments of ``func1d``.

    Returns:
        A tensor with the shape of ``arr``, where the shape of a result of ``func1d`` replaces ``axis``, and
        the common dtype of the results.

    Raises:
        InvalidArgumentError: an axis other than ``axis`` has size 0.

    >>> import dualflow as df
    >>> df.numpy.apply_along_axis(df.numpy.max, 1, [[1, 5], [7, 2]]).numpy()
    array([5, 7])
    """
    x = tensor(arr)
    positive_axis = normalize_axis(axis, len(x.shape))
    other_axes = [i for i in range(len(x.shape)) if i != positive_axis]
    nothing = f"There is no vector along axis {axis} of shape {x.shape} to apply to."
    sizes = [x.shape[i] for i in other_axes]
    if 0 in sizes:
        raise InvalidArgumentError(nothing)
    moved = transpose(x, [*other_axes, positive_axis])
    moved_sizes, last = sizes_of(moved, int64), len(other_axes)
    rows = reshape(moved, concat([[-1], moved_sizes[last:]], 0))
    if None in sizes:
        rows = required(rows, reduce_prod(moved_sizes[:last]) > 0, nothing)
        results = map_fn(lambda row: tensor(func1d(row, *args, **kwargs)), rows)
    else:
        results = stack(
            promote_together(*[tensor(func1d(rows[i], *args, **kwargs)) for i in range(int(np.prod(sizes)))])
        )
    result = reshape(results, concat([moved_sizes[:last], sizes_of(results, int64)[1:]], 0))
    new = len(results.shape) - 1
    count = last + new
    inner = list(range(len(other_axes), len(other_axes) + new))
    outer = list(range(len(other_axes)))
    order = [*outer[:positive_axis], *inner, *outer[positive_axis:]]
    return transpose(result, order) if order != list(range(count)) else result


def apply_over_axes(func: Callable[..., Any], a: TensorLike, axes: AxisLike) -> Tensor:
    """``func(x, axis)`` applied for each of ``axes`` one after another; the axes are kept, with size 1.

    Args:
        func: a function of a tensor and an axis that keeps the axis or removes it.
        axes: an axis or a list of axes.

    Returns:
        A tensor with the axes of ``a``, and the dtype that ``func`` returns.

    Raises:
        InvalidArgumentError: an axis is out of range.

    >>> import dualflow as df
    >>> df.numpy.apply_over_axes(df.numpy.sum, [[1, 2], [3, 4]], [0, 1]).numpy()
    array([[10]])
    """
    x = tensor(a)
    for axis in ints(axes, "axes"):
        positive_axis = normalize_axis(axis, len(x.shape))
        reduced = tensor(func(x, positive_axis))
        x = reduced if len(reduced.shape) == len(x.shape) else expand_dims(reduced, positive_axis)
    return x


class vectorize:
    """A function of tensors that calls ``pyfunc``, a function of numbers, for each element; inputs broadcast.

    Args:
        pyfunc: a function of scalar tensors that returns a number or a scalar tensor.
        otypes: a list with the dtype of the result; by default the common dtype of the results.
        doc: the docstring; that of ``pyfunc`` by default.

    >>> import dualflow as df
    >>> df.numpy.vectorize(lambda x, y: x if x > y else y)([1, 5], 3).numpy()
    array([3, 5])
    """

    def __init__(
        self, pyfunc: Callable[..., Any], otypes: Sequence[DTypeLike] | None = None, doc: str | None = None
    ) -> None:
        self.pyfunc = pyfunc
        self.otypes = otypes
        self.__doc__ = pyfunc.__doc__ if doc is None else doc

    def __call__(self, *args: Any) -> Tensor:
        """The results, in the shape to which the arguments broadcast."""
        values = broadcast_together(*[tensor(x) for x in args])
        shape = values[0].shape
        rows = [reshape(x, [-1]) for x in values]
        count = static_int(shape.num_elements(), "the number of elements")
        if not count:
            raise InvalidArgumentError("vectorize has no element to call its function for.")
        results = [tensor(self.pyfunc(*[row[i] for row in rows])) for i in range(count)]
        dtype = None if self.otypes is None else self.otypes[0]
        return reshape(stack(promote_together(*results, dtype=dtype)), list(shape))


complete_docstrings(globals())
make_entries(globals())
