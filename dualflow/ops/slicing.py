"""TensorFlow's ``slice``; see :mod:`dualflow.ops.indexing` for ``x[...]``."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.indexing import getitem
from dualflow.ops.static import ints

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, TensorLike
    from dualflow.ops.tensor import Tensor


def slice(input_: TensorLike, begin: IntsLike, size: IntsLike, name: str | None = None) -> Tensor:
    """The part of ``input_`` that starts at ``begin`` and has the sizes ``size``.

    Args:
        input_: a tensor of any dtype.
        begin: the first position on each axis, 0 or more.
        size: the size of the part on each axis; -1 for all after ``begin``.

    Returns:
        A tensor of the dtype of ``input_``.

    Raises:
        InvalidArgumentError: the part is not inside of ``input_``, or there isn't one number for each axis.
        DTypeError: ``begin`` or ``size`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [-1, 2]).numpy().tolist()
    [[2, 3], [5, 6]]
    """
    x = convert_to_tensor(input_)
    starts, sizes = ints(begin, "begin"), ints(size, "size")
    if not len(starts) == len(sizes) == len(x.shape):
        raise InvalidArgumentError(
            f"begin {begin} and size {size} must have one number for each axis of shape {x.shape}."
        )
    parts = []
    for start, length, axis_size in zip(starts, sizes, x.shape, strict=True):
        if start < 0 or length < -1 or (axis_size is not None and start + max(length, 0) > axis_size):
            raise InvalidArgumentError(
                f"begin {begin} and size {size} leave shape {x.shape}; a size of -1 takes what is left."
            )
        parts.append(builtins.slice(start, None if length < 0 else start + length))
    return getitem(x, tuple(parts))
