"""Identity matrices, triangles of matrices, and grids of coordinates."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from dualflow.array_api.array import Array, tensor_of
from dualflow.array_api.creation import dtype_or_default
from dualflow.core.device_names import check_device
from dualflow.core.dtypes import float64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import diagonals, matrices
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray, DTypeLike


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """A matrix with ones on one diagonal and zeros elsewhere.

    Args:
        n_rows: how many rows.
        n_cols: how many columns; as many as rows by default.
        k: which diagonal: 0 for the main one, above it positive.
        dtype: float64 by default.
        device: the CPU, which is the only device.

    Returns:
        A matrix of shape (n_rows, n_cols), and the dtype.

    Raises:
        InvalidArgumentError: the device is not the CPU.

    >>> import dualflow.array_api as xp
    >>> xp.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    check_device(device)
    return Array(matrices.eye(n_rows, n_cols, k, dtype_or_default(dtype, float64)))


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Array]:
    """The coordinates of the points of a grid, one array for each of the vectors.

    Args:
        *arrays: the coordinates along each axis, of one dtype.
        indexing: "xy", where the first vector runs along the columns, or "ij", where it runs along the rows.

    Returns:
        A list of as many arrays as vectors, each with an axis for each vector.

    Raises:
        InvalidArgumentError: ``indexing`` is unknown.

    >>> import dualflow.array_api as xp
    >>> [x.tolist() for x in xp.meshgrid(xp.asarray([1, 2]), xp.asarray([3, 4]))]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    return [Array(x) for x in matrices.meshgrid(*map(tensor_of, arrays), indexing=indexing)]


def _matrices(x: Any) -> Tensor:
    tensor = tensor_of(x)
    if len(tensor.shape) < 2:
        raise InvalidArgumentError(f"tril and triu take matrices, not an array of shape {tensor.shape}.")
    return tensor


def tril(x: AnyArray, /, *, k: int = 0) -> Array:
    """The matrices ``x`` with zeros above their diagonal ``k``.

    Args:
        x: an array of two axes or more.
        k: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        An array with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.tril(xp.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return Array(diagonals.tril(_matrices(x), operator.index(k)))


def triu(x: AnyArray, /, *, k: int = 0) -> Array:
    """The matrices ``x`` with zeros below their diagonal ``k``.

    Args:
        x: an array of two axes or more.
        k: the diagonal: 0 is the main one, positive ones are above it.

    Returns:
        An array with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: fewer than two axes.

    >>> import dualflow.array_api as xp
    >>> xp.triu(xp.ones((2, 2))).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return Array(diagonals.triu(_matrices(x), operator.index(k)))


complete_docstrings(
    globals(),
    "is no array",
    x="an array of any shape.",
    device="the CPU, which is the only device; None by default.",
)
make_entries(globals())
