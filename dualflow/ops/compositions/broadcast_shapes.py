"""The shape to which two shapes broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import promote
from dualflow.core.shape import Shape, as_shape, broadcast
from dualflow.core.tracebacks import entry
from dualflow.ops.checks import required
from dualflow.ops.choice import where
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones
from dualflow.ops.joining import concat
from dualflow.ops.reduction import reduce_all
from dualflow.ops.static import known_value

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


@entry
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> Shape:
    """The shape to which two broadcast that are known, or of which sizes are open.

    Raises:
        InvalidArgumentError: they don't broadcast.

    >>> import dualflow as df
    >>> df.broadcast_static_shape(df.TensorShape([1, 3]), df.TensorShape([2, 1]))
    (2, 3)
    """
    return broadcast([as_shape(shape_x), as_shape(shape_y)])


@entry
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape to which two broadcast, all three as tensors of integers.

    Raises:
        InvalidArgumentError: they don't broadcast.

    >>> import dualflow as df
    >>> df.broadcast_dynamic_shape([1, 3], [2, 1]).numpy()
    array([2, 3], dtype=int32)
    """
    x, y = convert_to_tensor(shape_x), convert_to_tensor(shape_y)
    dtype = promote(x.dtype, y.dtype)
    sizes = known_value(x), known_value(y)
    if sizes[0] is not None and sizes[1] is not None:
        return convert_to_tensor(list(broadcast([Shape(s.tolist()) for s in sizes if s is not None])), dtype)
    rank = max(x.shape[0], y.shape[0])
    x, y = (concat([ones([rank - s.shape[0]], dtype), cast(s, dtype)], 0) for s in (x, y))
    return required(
        where(x == 1, y, x),
        reduce_all((x == y) | (x == 1) | (y == 1)),
        "The shapes given to broadcast_dynamic_shape do not broadcast: sizes must be equal or 1, counted "
        "from the last axis.",
    )
