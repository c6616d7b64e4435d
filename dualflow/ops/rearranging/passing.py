"""Tensors that are passed on as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.ops.conversion import identity
from dualflow.ops.static import several

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def tuple(tensors: Sequence[Any], control_inputs: Any = None, name: str | None = None) -> list[Any]:
    """The tensors themselves; what is None stays. Ops run in the order in which they are written.

    >>> import dualflow as df
    >>> df.tuple([df.constant(1), None])[0].numpy()
    np.int32(1)
    """
    return [None if x is None else identity(x) for x in several(tensors, "tensors")]


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """The tensor itself: what doesn't change is found out by the compiler.

    >>> import dualflow as df
    >>> df.guarantee_const(3).numpy()
    np.int32(3)
    """
    return identity(input)
