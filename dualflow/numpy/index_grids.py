"""Indices of the elements of a shape, a diagonal or a triangle."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.indexing import flatnonzero, indices_by_mode, integer_indices, nonzero
from dualflow.numpy.operands import tensor, to
from dualflow.ops.arithmetic import floordiv, mod
from dualflow.ops.arrangement import reshape
from dualflow.ops.checks import required
from dualflow.ops.comparison import logical_and
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import unstack
from dualflow.ops.reduction import reduce_all
from dualflow.ops.static import ints, static_int
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, IntLike, ShapeLike, TensorLike


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Vectors of indices, each along an axis of its own, for indexing with all their combinations.

    Args:
        *args: vectors of integers, or of bools for the indices of true elements.

    Returns:
        A tuple of tensors, with one axis for each vector; all of size 1 but the vector's own.

    Raises:
        InvalidArgumentError: an argument is not a vector.
        DTypeError: an argument can't become a tensor.

    >>> import dualflow as df
    >>> [x.shape for x in df.numpy.ix_([0, 1], [2, 3, 4])]
    [(2, 1), (1, 3)]
    """
    grid = []
    for i, vector in enumerate(args):
        x = tensor(vector)
        if len(x.shape) != 1:
            raise InvalidArgumentError(f"ix_ takes vectors, not shape {x.shape}.")
        indices = flatnonzero(x) if x.dtype.is_bool else to(x, np.int64) if not x.shape[0] else x
        grid.append(reshape(indices, [-1 if axis == i else 1 for axis in range(len(args))]))
    return tuple(grid)


def unravel_index(indices: TensorLike, shape: ShapeLike, order: str = "C") -> tuple[Tensor, ...]:
    """The indices along each axis of indices in the flattened shape.

    Args:
        indices: integers of any shape.
        shape: the shape, a list of integers.
        order: "C", where the last index varies fastest, or "F", where the first one does.

    Returns:
        A tuple of integer tensors with the shape of ``indices``, one for each axis.

    Raises:
        InvalidArgumentError: an index is out of range, or ``order`` is neither "C" nor "F".
        DTypeError: ``indices`` can't become a tensor.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.unravel_index([1, 5], (2, 3))]
    [[0, 1], [1, 2]]
    """
    sizes = ints(shape, "shape")
    positions = integer_indices(indices)
    total = int(np.prod(sizes))
    ok = reduce_all(logical_and(positions >= 0, positions < total))
    positions = required(positions, ok, f"An index is outside of shape {sizes}.")
    along_axes = []
    for size in reversed(sizes) if _order(order) == "C" else sizes:
        along_axes.append(mod(positions, builtins.max(size, 1)))
        positions = floordiv(positions, builtins.max(size, 1))
    return tuple(reversed(along_axes)) if order == "C" else tuple(along_axes)


def _order(order: str) -> str:
    if order not in ("C", "F"):
        raise InvalidArgumentError(f"order is 'C' or 'F', not {order!r}.")
    return order


def ravel_multi_index(
    multi_index: TensorLike, dims: AxisLike, mode: str = "raise", order: str = "C"
) -> Tensor:
    """The indices in the flattened shape of indices along each axis; the inverse of :func:`unravel_index`.

    Args:
        multi_index: a list of integer tensors, one for each axis.
        dims: the shape, a list of integers.
        mode: what to do with indices out of range: "raise", "wrap" or "clip", for all axes or a tuple for
            each.
        order: "C", where the last index varies fastest, or "F", where the first one does.

    Returns:
        An integer tensor with the shape of the indices.

    Raises:
        InvalidArgumentError: an index is out of range and ``mode`` is "raise", or ``mode`` or ``order`` is
            another word.
        DTypeError: ``multi_index`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.ravel_multi_index(([0, 1], [1, 2]), (2, 3)).numpy()
    array([1, 5])
    """
    sizes = ints(dims, "dims")
    modes = mode if isinstance(mode, tuple) else (mode,) * len(sizes)
    parts = list(multi_index) if isinstance(multi_index, list | tuple) else unstack(tensor(multi_index))
    steps = np.cumprod((1, *(sizes[:0:-1] if _order(order) == "C" else sizes[:-1])))
    flat_index: Any = 0
    for part, size, how, step in zip(
        parts, sizes, modes, steps[::-1] if order == "C" else steps, strict=True
    ):
        indices = integer_indices(part)
        if how == "raise":
            ok = reduce_all(logical_and(indices >= 0, indices < size))
            indices = required(indices, ok, f"An index is outside of an axis of size {size}.")
        flat_index = flat_index + (indices if how == "raise" else indices_by_mode(indices, size, how)) * int(
            step
        )
    return tensor(flat_index)


def diag_indices(n: IntLike, ndim: IntLike = 2) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of a tensor whose axes have one size.

    Args:
        n: the size of each axis.
        ndim: the number of axes.

    Returns:
        A tuple of ``ndim`` int64 vectors of ``n`` elements.

    Raises:
        DTypeError: ``n`` or ``ndim`` is no integer.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.diag_indices(3)]
    [[0, 1, 2], [0, 1, 2]]
    """
    return (convert_to_tensor(np.arange(static_int(n, "n"))),) * static_int(ndim, "ndim")


def diag_indices_from(arr: TensorLike) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of ``arr``, whose axes are of equal size.

    Args:
        arr: a tensor of two axes or more, all of one size.

    Returns:
        A tuple of int64 vectors, one for each axis.

    Raises:
        InvalidArgumentError: ``arr`` has fewer than two axes, or sizes that differ.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.diag_indices_from([[1, 2], [3, 4]])]
    [[0, 1], [0, 1]]
    """
    shape = tensor(arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise InvalidArgumentError(f"A diagonal is of two or more axes of one size, not of shape {shape}.")
    return diag_indices(shape[0], len(shape))


def _constants(arrays: Any) -> tuple[Tensor, ...]:
    return tuple(convert_to_tensor(x) for x in arrays)


def tril_indices(n: IntLike, k: IntLike = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """The indices of the elements on and below the diagonal ``k`` of an ``n`` by ``m`` matrix.

    Args:
        n: the number of rows.
        k: the diagonal: 0 is the main one, positive ones are above it.
        m: the number of columns; ``n`` by default.

    Returns:
        A pair of int64 vectors: rows and columns.

    Raises:
        DTypeError: ``n`` or ``k`` is no integer.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _constants(np.tril_indices(static_int(n, "n"), static_int(k, "k"), m))


def triu_indices(n: IntLike, k: IntLike = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """The indices of the elements on and above the diagonal ``k`` of an ``n`` by ``m`` matrix.

    Args:
        n: the number of rows.
        k: the diagonal: 0 is the main one, positive ones are above it.
        m: the number of columns; ``n`` by default.

    Returns:
        A pair of int64 vectors: rows and columns.

    Raises:
        DTypeError: ``n`` or ``k`` is no integer.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return _constants(np.triu_indices(static_int(n, "n"), static_int(k, "k"), m))


def _matrix_shape(arr: Any) -> Any:
    shape = tensor(arr).shape
    if len(shape) != 2:
        raise InvalidArgumentError(f"A matrix is required, not shape {shape}.")
    return shape


def tril_indices_from(arr: TensorLike, k: IntLike = 0) -> tuple[Tensor, ...]:
    """The indices of the elements on and below the diagonal ``k`` of the matrix ``arr``.

    Args:
        arr: a matrix.
        k: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        A pair of int64 vectors: rows and columns.

    Raises:
        InvalidArgumentError: ``arr`` is not a matrix.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.tril_indices_from([[1, 2], [3, 4]])]
    [[0, 1, 1], [0, 0, 1]]
    """
    rows, columns = _matrix_shape(arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: TensorLike, k: IntLike = 0) -> tuple[Tensor, ...]:
    """The indices of the elements on and above the diagonal ``k`` of the matrix ``arr``.

    Args:
        arr: a matrix.
        k: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        A pair of int64 vectors: rows and columns.

    Raises:
        InvalidArgumentError: ``arr`` is not a matrix.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.triu_indices_from([[1, 2], [3, 4]])]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = _matrix_shape(arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: IntLike, mask_func: Callable[..., Any], k: IntLike = 0) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements of ``mask_func`` of an ``n`` by ``n`` matrix of ones.

    Args:
        n: the number of rows.
        mask_func: a function of a matrix and ``k``, such as :func:`triu`.
        k: the second argument of ``mask_func``.

    Returns:
        A tuple of int64 vectors, one for each axis.

    Raises:
        ValueError: ``n`` is negative.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.numpy.mask_indices(2, df.numpy.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return nonzero(mask_func(convert_to_tensor(np.ones((n, n), np.int64)), k))


complete_docstrings(globals())
make_entries(globals())
