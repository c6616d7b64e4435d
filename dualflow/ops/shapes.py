"""What a tensor's shape is, as a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import as_shape
from dualflow.ops.broadcasting import broadcast_like, reduce_sum
from dualflow.ops.conversion import identity
from dualflow.ops.measuring import SHAPE
from dualflow.ops.static import shape_of

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def shape(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """The sizes of ``input``, as a tensor of one axis: int32, or ``out_type``.

    >>> import dualflow as df
    >>> df.shape([[1, 2, 3]]).numpy()
    array([1, 3], dtype=int32)
    """
    dtype, sizes = as_dtype(out_type or int32), shape_of(input)
    if sizes.is_static:
        return dispatch.current().constant(np.array(sizes, dtype.dtype))
    return dispatch.current().apply(SHAPE, (input,), {"dtype": dtype})


def size(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """How many elements ``input`` has, as a scalar tensor: int32, or ``out_type``."""
    dtype, sizes = as_dtype(out_type or int32), shape_of(input)
    if sizes.is_static:
        return dispatch.current().constant(np.array(sizes.num_elements(), dtype.dtype))
    return reduce_sum(broadcast_like(dispatch.current().constant(np.array(1, dtype.dtype)), input))


def rank(input: Any, name: str | None = None) -> Tensor:
    """How many axes ``input`` has, as a scalar tensor."""
    return dispatch.current().constant(np.array(len(shape_of(input)), np.int32))


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """``x``, once its shape is known to be ``shape``, in which None stands for any size.

    Raises:
        InvalidArgumentError: another shape.

    >>> import dualflow as df
    >>> df.ensure_shape(df.zeros([2, 3]), [None, 3]).shape
    (2, 3)
    """
    found, wanted = shape_of(x), as_shape(shape)
    if len(found) != len(wanted) or any(
        a != b for a, b in zip(found, wanted, strict=True) if a is not None and b is not None
    ):
        raise InvalidArgumentError(f"a tensor of shape {found} should have shape {wanted}.")
    return identity(x)
