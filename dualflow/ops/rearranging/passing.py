"""Functions that return their tensors unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.ops.conversion import identity
from dualflow.ops.static import tensor_list

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def tuple(
    tensors: Sequence[Any], control_inputs: Sequence[Any] | None = None, name: str | None = None
) -> list[Any]:
    """The tensors themselves; None stays None. Ops run in the order in which they are written.

    Args:
        tensors: a list of tensors or None.
        control_inputs: ignored: ops run in program order.

    Returns:
        A list of the tensors.

    Raises:
        DTypeError: an entry can't become a tensor.

    >>> import dualflow as df
    >>> df.tuple([df.constant(1), None])[0].numpy()
    np.int32(1)
    """
    return [None if x is None else identity(x) for x in tensor_list(tensors, "tensors")]


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
