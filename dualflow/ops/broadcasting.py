"""Broadcasting and sums over axes: each is the gradient of the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, broadcast, check_size, normalize_axes
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.batching_rules import BatchingRule
from dualflow.ops.docstrings import REDUCTION, documented
from dualflow.ops.elementwise import anything, elementwise
from dualflow.ops.op_kinds import OperandAttributes, Reduce, View
from dualflow.ops.operand_attributes import apply_sized
from dualflow.ops.record import REGISTRY, Op, register
from dualflow.ops.samples import Domain, Sample, numbers, real_numbers
from dualflow.ops.static import ints, ints_or_symbolic, partial_shape, shape_of
from dualflow.ops.summation import total

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _broadcast_infer(x: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    check_size(shape)
    target, sizes = Shape(shape), list(x.shape)
    for axis in range(-min(len(sizes), len(target)), 0):
        if target[axis] is None:
            sizes[axis] = 1  # compared at run time
    shape_now = Shape(sizes)
    if broadcast([shape_now, target]) != target:
        raise InvalidArgumentError(
            f"shape {shape_now} does not broadcast to {target}: sizes must be equal or 1; reshape it first."
        )
    return TensorSpec.of(target, x.dtype)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    """``x`` broadcast to ``shape``: a copy if small, which is faster than np.broadcast_to, else a view."""
    if not x.ndim:
        return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    if math.prod(shape) > _MAX_COPIED:
        return np.broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


_MAX_COPIED = 1 << 14

BROADCAST_TO = register(
    Op(
        name="broadcast_to",
        doc="""``x`` repeated along axes of size 1 and new leading axes.""",
        infer=_broadcast_infer,
        kernel=_spread,
        kind=View(lambda x, shape: np.broadcast_to(x, shape)),
        batching_rule=BatchingRule(sizes=("shape",), broadcasts=True),
        vjp=(lambda g, out, x, shape: sum_like(g, x),),
        operand_attributes=OperandAttributes(sizes=("shape",)),
        samples=(
            Sample((real_numbers(3),), {"shape": (2, 3)}),
            Sample((real_numbers(2, 1, 3),), {"shape": (4, 2, 5, 3)}),
            Sample((real_numbers(),), {"shape": (2, 2)}),
        ),
    )
)


def broadcast_to(input: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """``input`` repeated along its axes of size 1, and along new leading axes, up to ``shape``.

    Args:
        input: a tensor of any shape and dtype.
        shape: the shape of the result; sizes may be tensors that are known at run time only.

    Returns:
        A tensor of shape ``shape`` with the dtype of ``input``.

    Raises:
        InvalidArgumentError: ``input`` does not broadcast to ``shape``, or a size is negative.
        DTypeError: ``shape`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.broadcast_to([1, 2], [2, 2]).numpy().tolist()
    [[1, 2], [1, 2]]
    """
    sizes = Shape(partial_shape(shape))
    if sizes.is_static:
        return dispatch.current().apply(BROADCAST_TO, (input,), {"shape": sizes})
    return apply_sized(BROADCAST_TO, (input,), {"shape": ints_or_symbolic(shape, "shape")})


def sum_like(x: Any, like: Any) -> Tensor:
    """``x`` summed to the shape of ``like``: over the axes along which ``like`` broadcasts to ``x``."""
    shape = like.shape
    if shape.is_static:
        return sum_to(x, shape)
    return dispatch.current().apply(REGISTRY["sum_like"], (x, like), {})


def sum_to(x: Any, shape: Shape) -> Tensor:
    """``x`` summed to ``shape``: over the axes along which ``shape`` broadcasts to the shape of ``x``.

    A dynamic size is assumed not to be 1.
    """
    old_shape = x.shape
    extra = len(old_shape) - len(shape)
    kept = (
        tuple([extra + a for a, size in enumerate(shape) if size == 1 != old_shape[extra + a]])
        if 1 in shape
        else ()
    )
    engine = dispatch.current()
    if kept:
        x = engine.apply(REDUCE_SUM, (x,), {"axis": kept, "keepdims": True})
    return engine.apply(REDUCE_SUM, (x,), {"axis": tuple(range(extra)), "keepdims": False}) if extra else x


broadcast_like = elementwise(
    "broadcast_like",
    """``x`` repeated to the shape of ``like`` (with which it broadcasts), whose values are not used.""",
    dtype=anything,
    eager=lambda x, like: _spread(x, np.broadcast(x, like).shape),
    code=lambda m, x, like: x,
    vjp=(lambda g, out, x, like: g, None),
    samples=(Domain(-50, 50, "fib"), Domain(-50, 50, "fib")),
)


# reduce_sum


def reduced(shape: Shape, axis: tuple[int, ...], keepdims: bool) -> Shape:
    """``shape`` after a reduction over ``axis``."""
    if keepdims:
        return Shape(1 if a in axis else d for a, d in enumerate(shape))
    return Shape(d for a, d in enumerate(shape) if a not in axis)


def reduction_axes(x: Any, axis: Any) -> tuple[int, ...]:
    """The canonical ``axis`` attribute of a reduction of ``x``: all axes for None."""
    return axes_of_rank(len(shape_of(x)), axis)


def axes_of_rank(rank: int, axis: Any) -> tuple[int, ...]:
    """The canonical ``axis`` attribute of a reduction of a tensor with ``rank`` axes: all axes for None."""
    if axis is None:
        return tuple(range(rank))
    if type(axis) is int and -rank <= axis < rank:
        return (axis % rank,)
    return normalize_axes(ints(axis, "axis"), rank)


def spread(g: Any, x: Any, axis: tuple[int, ...], keepdims: bool) -> Tensor:
    """``g``, which has the shape of a reduction of ``x``, broadcast to the shape of ``x``."""
    shape = x.shape
    if not keepdims and 0 < len(axis) < len(shape):
        g = expand_dims(g, axis)
    if shape.is_static:
        return dispatch.current().apply(BROADCAST_TO, (g,), {"shape": shape})
    return broadcast_like(g, x)


def _sum_infer(x: TensorSpec, axis: tuple[int, ...], keepdims: bool) -> TensorSpec:
    if x.dtype.kind == "b":
        raise DTypeError("takes numbers, not bools; count the true ones with df.math.count_nonzero.")
    return TensorSpec.of(reduced(x.shape, axis, keepdims), x.dtype)


REDUCE_SUM = register(
    Op(
        name="reduce_sum",
        doc="""The sum over the given axes.""",
        infer=_sum_infer,
        kernel=total,
        kind=Reduce(
            start=lambda m, dtype: (m.cast(0, dtype),),
            step=lambda m, acc, x, index: (acc[0] + x,),
            merge=lambda m, a, b: (a[0] + b[0],),
            finish=lambda m, acc: acc[0],
            rounds=True,
        ),
        vjp=(lambda g, out, x, axis, keepdims: spread(g, x, axis, keepdims),),
        samples=(
            Sample((numbers(-50, 50, shape=(3, 4)),), {"axis": (0, 1), "keepdims": False}),
            Sample((numbers(-50, 50, shape=(3, 4)),), {"axis": (0,), "keepdims": False}),
            Sample((numbers(-50, 50, shape=(2, 3, 4)),), {"axis": (1, 2), "keepdims": True}),
            Sample((numbers(-50, 50, shape=(2, 3, 4)),), {"axis": (0, 2), "keepdims": False}),
            Sample((numbers(-50, 50, shape=(0, 4)),), {"axis": (0,), "keepdims": False}),
            Sample((numbers(40, 50, shape=(300, 3)),), {"axis": (0,), "keepdims": False}),
        ),
    )
)


@documented(REDUCTION, input="input_tensor", takes="numbers other than bools", returns="the same dtype")
def reduce_sum(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The sum over ``axis``, by default over all axes; 0 if there are no elements.

    >>> import dualflow as df
    >>> df.reduce_sum([[1, 2], [3, 4]], axis=0).numpy()
    array([4, 6], dtype=int32)
    """
    axes = reduction_axes(input_tensor, axis)
    return dispatch.current().apply(REDUCE_SUM, (input_tensor,), {"axis": axes, "keepdims": bool(keepdims)})
