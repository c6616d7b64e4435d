"""Cumulative sums and products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.axis_reductions import (
    accumulate_axis,
    as_accumulation_dtype,
)
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import flat, reject_unsupported, tensor
from dualflow.ops import scans
from dualflow.ops.cumulative import running
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike


def _input_and_axis(a: Any, axis: Any, dtype: Any) -> tuple[Any, int]:
    """``a`` in the dtype to add in, and the axis counted from 0; the flat tensor for None."""
    x = as_accumulation_dtype(tensor(a), dtype)
    if axis is None or (not x.shape and axis in (0, -1)):
        return flat(x), 0
    return x, normalize_axis(axis, len(x.shape))


def cumsum(
    a: TensorLike, axis: AxisLike | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Tensor:
    """The cumulative sums along ``axis``.

    Args:
        axis: the axis; by default ``a`` is flattened.
        dtype: the dtype to add in; by default that of ``a``, 64 bits for integers and bools.

    Returns:
        A tensor of ``dtype`` with the shape of ``a``; without ``axis`` a vector of all elements.

    >>> import dualflow as df
    >>> df.numpy.cumsum([[1, 2], [3, 4]]).numpy()
    array([ 1,  3,  6, 10])
    """
    reject_unsupported("cumsum", out=out)
    return scans.cumsum(*_input_and_axis(a, axis, dtype))


def cumprod(
    a: TensorLike, axis: AxisLike | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Tensor:
    """The cumulative products along ``axis``.

    Args:
        axis: the axis; by default ``a`` is flattened.
        dtype: the dtype to multiply in; by default that of ``a``, 64 bits for integers and bools.

    Returns:
        A tensor of ``dtype`` with the shape of ``a``; without ``axis`` a vector of all elements.

    >>> import dualflow as df
    >>> df.numpy.cumprod([2, 3, 4]).numpy()
    array([ 2,  6, 24])
    """
    reject_unsupported("cumprod", out=out)
    return running.cumprod(*_input_and_axis(a, axis, dtype))


def cumulative_sum(
    x: TensorLike,
    /,
    *,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    include_initial: bool = False,
) -> Tensor:
    """The cumulative sums along ``axis``.

    Args:
        axis: the axis; by default the only one.
        dtype: the dtype to add in; by default that of ``x``, 64 bits for integers and bools.
        include_initial: whether to put 0 before the sums.

    Returns:
        A tensor with the shape of ``x``, one larger along ``axis`` with ``include_initial``, in ``dtype``.

    Raises:
        InvalidArgumentError: ``axis`` is None and ``x`` is not a vector.

    >>> import dualflow as df
    >>> df.numpy.cumulative_sum([1, 2, 3], include_initial=True).numpy()
    array([0, 1, 3, 6])
    """
    reject_unsupported("cumulative_sum", out=out)
    return accumulate_axis(*_input_and_only_axis(x, axis, dtype), "sum", include_initial)


def cumulative_prod(
    x: TensorLike,
    /,
    *,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    include_initial: bool = False,
) -> Tensor:
    """The cumulative products along ``axis``.

    Args:
        axis: the axis; by default the only one.
        dtype: the dtype to multiply in; by default that of ``x``, 64 bits for integers and bools.
        include_initial: whether to put 1 before the products.

    Returns:
        A tensor with the shape of ``x``, one larger along ``axis`` with ``include_initial``, in ``dtype``.

    Raises:
        InvalidArgumentError: ``axis`` is None and ``x`` is not a vector.

    >>> import dualflow as df
    >>> df.numpy.cumulative_prod([1, 2, 3]).numpy()
    array([1, 2, 6])
    """
    reject_unsupported("cumulative_prod", out=out)
    return accumulate_axis(*_input_and_only_axis(x, axis, dtype), "prod", include_initial)


def _input_and_only_axis(a: Any, axis: Any, dtype: Any) -> tuple[Any, int]:
    """As :func:`_input_and_axis`, but None is the axis of a vector, and an error for other tensors."""
    x = tensor(a)
    if axis is None and len(x.shape) != 1:
        raise InvalidArgumentError(
            f"An array of shape {x.shape} needs axis=: only vectors have a default axis."
        )
    return _input_and_axis(x, 0 if axis is None else axis, dtype)


complete_docstrings(globals())
make_entries(globals())
