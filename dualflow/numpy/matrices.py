"""Matrices of a pattern, grids of coordinates, and numbers from buffers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import check_size
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import operands
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import numpy_dtype, numpy_result, reject_unsupported, tensor, to
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.comparison import equal, less_equal
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.creation import ones_like as tensor_ones_like
from dualflow.ops.creation import zeros as tensor_zeros
from dualflow.ops.joining import stack
from dualflow.ops.positions import iota
from dualflow.ops.static import ints_or_symbolic, static_int
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualflow.core.argument_types import DTypeLike, IntLike, SupportsDLPack, TensorLike
    from dualflow.core.dispatch import AbstractVariable


def eye(
    N: IntLike,
    M: IntLike | None = None,
    k: IntLike = 0,
    dtype: DTypeLike = float,
    order: str = "C",
    *,
    device: object = None,
    like: object = None,
) -> Tensor:
    """A matrix with ones on the diagonal ``k``, and zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; ``N`` by default.
        k: the diagonal: 0 is the main one, positive ones are above it.
        dtype: the dtype; float64 by default.

    Returns:
        A matrix of shape (N, M), in ``dtype``.

    Raises:
        InvalidArgumentError: ``N`` or ``M`` is negative.

    >>> import dualflow as df
    >>> df.numpy.eye(2, 3, k=1).numpy().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    reject_unsupported("eye", like=like)
    rows, columns = ints_or_symbolic([N, N if M is None else M], "N")
    if type(rows) is type(columns) is int:
        check_size((rows, columns))
        return convert_to_tensor(np.eye(rows, columns, static_int(k, "k"), numpy_dtype(dtype)))
    return to(equal(_diagonals(rows, columns), static_int(k, "k")), numpy_dtype(dtype))


def _diagonals(rows: Any, columns: Any) -> Any:
    """The number of the diagonal of each element of a matrix, whose sizes may be known at run time only."""
    return iota((1, columns), 1, int64) - iota((rows, 1), 0, int64)


def identity(n: IntLike, dtype: DTypeLike | None = None, *, like: object = None) -> Tensor:
    """The identity matrix of ``n`` rows.

    Args:
        n: the number of rows.
        dtype: the dtype; float64 by default.

    Returns:
        A matrix of shape (n, n), in ``dtype``.

    Raises:
        InvalidArgumentError: ``n`` is negative.

    >>> import dualflow as df
    >>> df.numpy.identity(2).numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype or float, like=like)


def tri(
    N: IntLike, M: IntLike | None = None, k: IntLike = 0, dtype: DTypeLike = float, *, like: object = None
) -> Tensor:
    """A matrix with ones on and below the diagonal ``k``, and zeros above.

    Args:
        N: the number of rows; a negative one counts as 0.
        M: the number of columns, likewise; ``N`` by default.
        k: the diagonal: 0 is the main one, positive ones are above it.
        dtype: the dtype; float64 by default.

    Returns:
        A matrix of shape (N, M), in ``dtype``.

    >>> import dualflow as df
    >>> df.numpy.tri(2, 3, dtype=int).numpy().tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    reject_unsupported("tri", like=like)
    rows, columns = ints_or_symbolic([N, N if M is None else M], "N")
    if type(rows) is type(columns) is int:
        return convert_to_tensor(np.tri(rows, columns, static_int(k, "k"), numpy_dtype(dtype)))
    return to(less_equal(_diagonals(rows, columns), static_int(k, "k")), numpy_dtype(dtype))


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid: a tensor for each of the vectors.

    Args:
        *xi: vectors; a number counts as one of size 1.
        copy: ignored: tensors don't change.
        sparse: whether to leave the other axes at size 1.
        indexing: "xy", where the first vector varies along the second axis, or "ij".

    Returns:
        A tuple of as many tensors as vectors, each with an axis for each vector, and the common dtype of its
        vector.

    Raises:
        InvalidArgumentError: ``indexing`` is another word.

    >>> import dualflow as df
    >>> x, y = df.numpy.meshgrid([1, 2, 3], [4, 5])
    >>> x.shape, y.numpy().tolist()
    ((2, 3), [[4, 4, 4], [5, 5, 5]])
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"meshgrid's indexing is 'xy' or 'ij', not {indexing!r}.")
    vectors = [operands.flat(tensor(x)) for x in xi]
    count = len(vectors)
    swap = {0: 1, 1: 0} if indexing == "xy" and count > 1 else {}
    coordinates = [
        reshape(v, [-1 if a == swap.get(i, i) else 1 for a in range(count)]) for i, v in enumerate(vectors)
    ]
    return tuple(coordinates) if sparse else tuple(operands.broadcast_together(*coordinates))


def indices(dimensions: TensorLike, dtype: DTypeLike = int, sparse: bool = False) -> Any:
    """The indices of all elements of a shape.

    Args:
        dimensions: the shape, a list of integers.
        dtype: the dtype; int64 by default.
        sparse: whether to return a tuple of tensors with one long axis each, which broadcast.

    Returns:
        A tensor of shape ``(rank, *dimensions)``: one for each axis.
        With ``sparse``, a tuple of as many tensors.

    Raises:
        InvalidArgumentError: a size is negative.

    >>> import dualflow as df
    >>> df.numpy.indices((2, 2)).numpy().tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    sizes, kind = ints_or_symbolic(dimensions, "dimensions"), numpy_dtype(dtype)
    if any(type(size) is not int for size in sizes):
        lines = [[n if i == axis else 1 for i, n in enumerate(sizes)] for axis in range(len(sizes))]
        grids = [to(iota(lines[axis] if sparse else sizes, axis, int64), kind) for axis in range(len(sizes))]
        return tuple(grids) if sparse else stack(grids, 0)
    check_size(sizes)
    if sparse:
        return tuple(convert_to_tensor(x) for x in np.indices(sizes, kind, sparse=True))
    return convert_to_tensor(np.indices(sizes, kind))


def fromfunction(
    function: Callable[..., Any],
    shape: Sequence[int],
    *,
    dtype: DTypeLike = float,
    like: object = None,
    **kwargs: Any,
) -> Any:
    """``function`` of the indices of all elements of a shape, a tensor for each axis.

    Args:
        function: a function of as many tensors as axes.
        shape: the shape, a list of integers.
        dtype: the dtype of the indices; float64 by default.
        **kwargs: named arguments of ``function``.

    Returns:
        The result of ``function``.

    Raises:
        InvalidArgumentError: a size is negative.

    >>> import dualflow as df
    >>> df.numpy.fromfunction(lambda i, j: i + j, (2, 2)).numpy().tolist()
    [[0.0, 1.0], [1.0, 2.0]]
    """
    reject_unsupported("fromfunction", like=like)
    grid = indices(shape, dtype)
    return function(*[grid[axis] for axis in range(len(ints_or_symbolic(shape, "shape")))], **kwargs)


def vander(x: TensorLike, N: IntLike | None = None, increasing: bool = False) -> Tensor:
    """A Vandermonde matrix: the powers of each element of a vector in a row.

    Args:
        x: a vector of numbers.
        N: the number of columns; the size of ``x`` by default.
        increasing: whether the powers ascend from 0; they descend otherwise.

    Returns:
        A matrix of shape (x.size, N), and the dtype of ``x``, 64 bits for integers.

    Raises:
        InvalidArgumentError: ``x`` is not a vector.

    >>> import dualflow as df
    >>> df.numpy.vander([1, 2, 3]).numpy().tolist()
    [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    """
    v = tensor(x)
    if len(v.shape) != 1:
        raise InvalidArgumentError(f"vander takes a vector, not shape {v.shape}.")
    size = static_int(v.shape[0], "the size of the vector")
    count = size if N is None else static_int(N, "N")
    if v.dtype.is_integer or v.dtype.is_bool:
        v = to(v, np.int64 if v.dtype.kind in "bi" or v.dtype.size < 8 else np.uint64)
    exponents = np.arange(count) if increasing else np.arange(count)[::-1]
    rows = [tensor_ones_like(v)]
    for _ in range(count - 1):
        rows.append(rows[-1] * v)
    if not count:
        return tensor_zeros([size, 0], v.dtype)
    return transpose(convert_to_tensor([rows[e] for e in exponents]))


def from_dlpack(
    x: SupportsDLPack | AbstractVariable, /, *, device: object = None, copy: bool | None = None
) -> Tensor:
    """The elements of another library's array, through DLPack.

    Args:
        x: an object with ``__dlpack__`` and ``__dlpack_device__``.
        copy: ignored: tensors don't change.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        DTypeError: ``x`` has no ``__dlpack__``, or a dtype that tensors don't have.
        InvalidArgumentError: the elements are not in the processor's memory.

    >>> import dualflow as df
    >>> import numpy
    >>> df.numpy.from_dlpack(numpy.arange(3)).numpy()
    array([0, 1, 2])
    """
    if isinstance(x, TENSORS):
        return tensor(x)
    if not hasattr(x, "__dlpack__"):
        raise DTypeError(f"from_dlpack takes an array with __dlpack__, not {x!r}; use asarray for others.")
    return tensor(numpy_result(lambda: np.from_dlpack(x), "copy the array to the processor's memory"))


def frombuffer(
    buffer: bytes | bytearray | memoryview,
    dtype: DTypeLike = float,
    count: int = -1,
    offset: int = 0,
    *,
    like: object = None,
) -> Tensor:
    """The bytes of ``buffer`` as a vector of numbers.

    Args:
        buffer: bytes, or an object with the buffer protocol.
        dtype: the dtype of the numbers; float64 by default.
        count: how many numbers; -1 for all by default.
        offset: the byte of the first number.

    Returns:
        A vector of ``count`` elements of the dtype.

    Raises:
        InvalidArgumentError: ``buffer`` is too short, or its size is no multiple of the dtype's.
        DTypeError: ``buffer`` has no bytes.

    >>> import dualflow as df
    >>> df.numpy.frombuffer(bytes([1, 0, 2, 0]), "int16").numpy()
    array([1, 2], dtype=int16)
    """
    reject_unsupported("frombuffer", like=like)
    kind = numpy_dtype(dtype)
    remedy = f"{kind.name} has {kind.itemsize} bytes: pass dtype, count and offset that fit the buffer"
    return tensor(numpy_result(lambda: np.frombuffer(buffer, kind, count, offset), remedy))


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1, *, like: object = None) -> Tensor:
    """The numbers of an iterable as a vector.

    Args:
        iter: an iterable of numbers.
        dtype: the dtype.
        count: how many numbers to take; -1 for all by default.

    Returns:
        A vector of the dtype.

    Raises:
        InvalidArgumentError: ``iter`` has fewer than ``count`` numbers, or elements of another kind.
        DTypeError: ``like`` is passed, or ``dtype`` is no dtype that tensors have.

    >>> import dualflow as df
    >>> df.numpy.fromiter((i * i for i in range(3)), int).numpy()
    array([0, 1, 4])
    """
    reject_unsupported("fromiter", like=like)
    kind = numpy_dtype(dtype)
    numbers = list(iter if count < 0 else islice(iter, count))
    return tensor(
        numpy_result(lambda: np.fromiter(numbers, kind, count), f"pass {kind.name} numbers, or count=-1")
    )


complete_docstrings(globals())
make_entries(globals())
