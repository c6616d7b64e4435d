"""Products and lengths of vectors, and the conjugate transpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.conversion import cast
from dualflow.ops.joining import stack
from dualflow.ops.linear_algebra.norms import norm
from dualflow.ops.record import promote_together
from dualflow.ops.statistics import as_float

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """``matrix`` with its last two axes swapped, and conjugated.

    Args:
        matrix: numbers of shape ``(..., m, n)``.

    Returns:
        A tensor of shape ``(..., n, m)`` with the dtype of ``matrix``.

    Raises:
        InvalidArgumentError: ``matrix`` has fewer than two axes.

    >>> import dualflow as df
    >>> df.linalg.adjoint([[1 + 1j, 2], [3, 4]]).numpy().tolist()
    [[(1-1j), (3-0j)], [(2-0j), (4-0j)]]
    """
    return matrix_transpose(matrix, conjugate=True)


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """The cross product of vectors of three elements, along the last axis.

    Args:
        a: numbers, of shape ``(..., 3)``.
        b: numbers, of shape ``(..., 3)``; the leading axes broadcast.

    Returns:
        A tensor of shape ``(..., 3)`` with the common dtype.

    Raises:
        InvalidArgumentError: vectors of another size.
        DTypeError: bools.

    >>> import dualflow as df
    >>> df.linalg.cross([1, 0, 0], [0, 1, 0]).numpy().tolist()
    [0, 0, 1]
    """
    a, b = promote_together(a, b)
    if a.dtype.is_bool:
        raise DTypeError("cross takes numbers, not bools; convert the input with df.cast.")
    if any(not len(x.shape) or x.shape[-1] not in (3, None) for x in (a, b)):
        raise InvalidArgumentError(
            f"cross takes vectors of 3 elements, but the shapes are {a.shape} and {b.shape}."
        )
    (a0, a1, a2), (b0, b1, b2) = ([x[..., i] for i in (0, 1, 2)] for x in (a, b))
    return stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1)


def normalize(
    tensor: TensorLike, ord: str = "euclidean", axis: AxisLike | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """``tensor`` divided by its norm, and the norm.

    Args:
        tensor: floats or complex numbers of any shape; integers become float32.
        ord: which norm; see :func:`norm`.
        axis: the axis of vectors, or two of matrices; by default all elements are one vector.

    Returns:
        The quotient, nan where the norm is 0, and the norm in the same dtype, with the axes that it joins
        kept as size 1.

    Raises:
        InvalidArgumentError: ``ord`` is unknown, or there are more than two axes.

    >>> import dualflow as df
    >>> unit, length = df.linalg.normalize([3.0, 4.0])
    >>> unit.numpy().tolist(), length.numpy().tolist()
    ([0.6000000238418579, 0.800000011920929], [5.0])
    """
    x = as_float(tensor)
    length = cast(norm(x, ord, axis, keepdims=True), x.dtype)
    return x / length, length
