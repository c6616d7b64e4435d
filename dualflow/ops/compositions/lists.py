"""Ops of lists of tensors, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int32
from dualflow.ops.conversion import identity
from dualflow.ops.joining import stack
from dualflow.ops.shapes import shape

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """The tensors themselves.

    >>> import dualflow as df
    >>> [x.numpy().item() for x in df.identity_n([1.5, 2])]
    [1.5, 2]
    """
    return [identity(x) for x in input]


def tuple(tensors: Sequence[Any], control_inputs: Any = None, name: str | None = None) -> list[Any]:
    """The tensors themselves; what is None stays. Ops run in the order in which they are written.

    >>> import dualflow as df
    >>> df.tuple([df.constant(1), None])[0].numpy()
    np.int32(1)
    """
    return [None if x is None else identity(x) for x in tensors]


def shape_n(input: Sequence[Any], out_type: Any = int32, name: str | None = None) -> list[Tensor]:
    """The shape of each tensor, as :func:`dualflow.shape`.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.shape_n([df.ones([2, 3]), df.ones([4])])]
    [[2, 3], [4]]
    """
    return [shape(x, out_type) for x in input]


def parallel_stack(values: Sequence[Any], name: str | None = None) -> Tensor:
    """Tensors of one shape as the rows of one: :func:`dualflow.stack` along axis 0.

    >>> import dualflow as df
    >>> df.parallel_stack([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    return stack(values)


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """The tensor itself: what doesn't change is found out by the compiler.

    >>> import dualflow as df
    >>> df.guarantee_const(3).numpy()
    np.int32(3)
    """
    return identity(input)
