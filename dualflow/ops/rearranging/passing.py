"""Functions that return their tensor unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.ops.conversion import identity

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def guarantee_const(input: TensorLike, name: str | None = None) -> Tensor:
    """The tensor itself; the compiler detects constants without it.

    Args:
        input: a tensor of any shape and dtype.

    Returns:
        A tensor with the shape and dtype of ``input``.

    Raises:
        DTypeError: ``input`` can't become a tensor.

    >>> import dualflow as df
    >>> df.guarantee_const(3).numpy()
    np.int32(3)
    """
    return identity(input)
