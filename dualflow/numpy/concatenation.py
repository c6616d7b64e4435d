"""Tensors joined along an axis."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.manipulation import at_least
from dualflow.numpy.operands import flat, promote_together, reject_unsupported, tensor
from dualflow.ops import joining
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike


def _as_list(arrays: Any) -> list[Any]:
    """The tensors to join: the items of a sequence, or the slices of a tensor along axis 0."""
    if isinstance(arrays, list | tuple):
        return list(arrays)
    x = tensor(arrays)
    if not x.shape:
        raise DTypeError("A sequence of tensors is required, not one number.")
    return list(joining.unstack(x))


def concatenate(
    arrays: Sequence[TensorLike],
    /,
    axis: AxisLike | None = 0,
    out: None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> Tensor:
    """Tensors joined along an existing axis.

    Args:
        arrays: a list of tensors, or a tensor whose first axis is that of the list.
        axis: the axis; None to flatten the tensors first.
        dtype: the dtype; the common dtype by default.
        casting: ignored: dtypes promote as in NumPy 2.

    Returns:
        A tensor whose size along ``axis`` is the sum of the sizes, in ``dtype``.

    Raises:
        InvalidArgumentError: there are no tensors, one has no axes, or sizes differ along another axis.
        DTypeError: ``arrays`` is a number.

    >>> import dualflow as df
    >>> df.numpy.concatenate([[1, 2], [3.0]]).numpy()
    array([1., 2., 3.])
    """
    reject_unsupported("concatenate", out=out)
    parts = promote_together(*[tensor(x) for x in _as_list(arrays)], dtype=dtype)
    if axis is None:
        return joining.concat([flat(x) for x in parts], 0)
    return joining.concat(parts, axis)


concat = concatenate


def stack(
    arrays: Sequence[TensorLike],
    axis: int = 0,
    out: None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> Tensor:
    """Tensors of one shape joined along a new axis.

    Args:
        arrays: a list of tensors, or a tensor whose first axis is that of the list.
        axis: the position of the new axis in the result.
        dtype: the dtype; the common dtype by default.
        casting: ignored: dtypes promote as in NumPy 2.

    Returns:
        A tensor with the shape of each and the new axis, in ``dtype``.

    Raises:
        InvalidArgumentError: there are no tensors, or shapes differ.
        DTypeError: ``arrays`` is a number.

    >>> import dualflow as df
    >>> df.numpy.stack([[1, 2], [3, 4]], axis=1).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    reject_unsupported("stack", out=out)
    return joining.stack(promote_together(*[tensor(x) for x in _as_list(arrays)], dtype=dtype), axis)


def unstack(x: TensorLike, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of ``x`` along ``axis``, without it; the inverse of :func:`stack`.

    Args:
        x: numbers of one axis or more.

    Returns:
        A tuple of as many tensors as the size of ``axis``, in the dtype of ``x``.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    return tuple(joining.unstack(tensor(x), axis=axis))


def vstack(
    tup: Sequence[TensorLike], *, dtype: DTypeLike | None = None, casting: str = "same_kind"
) -> Tensor:
    """Tensors joined along the first axis; vectors count as rows.

    Args:
        tup: a list of tensors, or a tensor whose first axis is that of the list.
        dtype: the dtype; the common dtype by default.
        casting: ignored: dtypes promote as in NumPy 2.

    Returns:
        A tensor of two axes or more, in ``dtype``.

    Raises:
        InvalidArgumentError: there are no tensors, or sizes differ along another axis.
        DTypeError: ``tup`` is a number.

    >>> import dualflow as df
    >>> df.numpy.vstack([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    return concatenate([at_least(x, 2) for x in _as_list(tup)], 0, dtype=dtype)


def hstack(
    tup: Sequence[TensorLike], *, dtype: DTypeLike | None = None, casting: str = "same_kind"
) -> Tensor:
    """Tensors joined along the second axis; vectors along the first one.

    Args:
        tup: a list of tensors, or a tensor whose first axis is that of the list.
        dtype: the dtype; the common dtype by default.
        casting: ignored: dtypes promote as in NumPy 2.

    Returns:
        A tensor with the axes of the tensors, in ``dtype``.

    Raises:
        InvalidArgumentError: there are no tensors, or sizes differ along another axis.
        DTypeError: ``tup`` is a number.

    >>> import dualflow as df
    >>> df.numpy.hstack([[1, 2], [3, 4]]).numpy()
    array([1, 2, 3, 4])
    """
    parts = [at_least(x, 1) for x in _as_list(tup)]
    return concatenate(parts, 0 if parts and len(parts[0].shape) == 1 else 1, dtype=dtype)


def dstack(tup: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the third axis; see :func:`atleast_3d`.

    Args:
        tup: a list of tensors, or a tensor whose first axis is that of the list.

    Returns:
        A tensor of three axes or more, and the common dtype.

    Raises:
        InvalidArgumentError: there are no tensors, or sizes differ along another axis.
        DTypeError: ``tup`` is a number.

    >>> import dualflow as df
    >>> df.numpy.dstack([[1, 2], [3, 4]]).numpy().tolist()
    [[[1, 3], [2, 4]]]
    """
    return concatenate([at_least(x, 3) for x in _as_list(tup)], 2)


def column_stack(tup: Sequence[TensorLike]) -> Tensor:
    """Vectors joined as the columns of a matrix; matrices are joined along the second axis.

    Args:
        tup: a list of vectors or matrices, or a tensor whose first axis is that of the list.

    Returns:
        A matrix of the common dtype.

    Raises:
        InvalidArgumentError: there are no tensors, or numbers of rows differ.
        DTypeError: ``tup`` is a number.

    >>> import dualflow as df
    >>> df.numpy.column_stack([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    parts = [at_least(x, 1) for x in _as_list(tup)]
    return concatenate([x[:, None] if len(x.shape) == 1 else x for x in parts], 1)


def append(arr: TensorLike, values: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """``arr`` and ``values`` joined along ``axis``.

    Args:
        values: numbers with the axes of ``arr``.
        axis: the axis; by default both are flattened.

    Returns:
        A tensor of the common dtype.

    Raises:
        InvalidArgumentError: sizes differ along another axis.

    >>> import dualflow as df
    >>> df.numpy.append([1, 2], [3]).numpy()
    array([1, 2, 3])
    """
    return concatenate([arr, values], axis)


def block(arrays: Sequence[TensorLike]) -> Tensor:
    """Nested lists of blocks joined into one tensor.

    The innermost lists are joined along the last axis, the next ones along the axis before, and so on.

    Args:
        arrays: a tensor, or lists of lists of one depth of them.

    Returns:
        A tensor with as many axes as the lists are deep or more, and the common dtype.

    Raises:
        InvalidArgumentError: sizes differ along another axis.
        DTypeError: a block can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.block([[df.numpy.eye(2), df.numpy.ones((2, 1))]]).shape
    (2, 3)
    """

    def depth(value: Any) -> int:
        return 1 + builtins.max(map(depth, value), default=0) if isinstance(value, list) else 0

    def leaves(value: Any) -> list[Any]:
        return [x for v in value for x in leaves(v)] if isinstance(value, list) else [value]

    levels = depth(arrays)
    rank = builtins.max([levels, *[len(tensor(x).shape) for x in leaves(arrays)]])

    def join(value: Any, level: int) -> Any:
        if isinstance(value, list):
            return concatenate([join(v, level + 1) for v in value], level - levels)
        x = tensor(value)
        return x[(None,) * (rank - len(x.shape))]

    return join(arrays, 0)


complete_docstrings(globals())
make_entries(globals())
