"""Reshapes cotangents to the shapes of their values, if these are known at run time only.

``SUM_LIKE`` sums a cotangent to the shape of a tensor that may have been broadcast; ``MATCHED`` checks one
that user code has computed. Neither emits code if the sizes are the same expressions.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import PER_ELEMENT
from dualflow.ops.broadcasting import BROADCAST_TO, broadcast_like, reduce_sum, sum_to
from dualflow.ops.comparison import equal
from dualflow.ops.op_kinds import Decompose, SizeReader
from dualflow.ops.record import REGISTRY, Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.selection import where
from dualflow.ops.summation import total
from dualflow.ops.tensor_sizes import size_as_tensor
from dualflow.sizes.size_functions import largest
from dualflow.sizes.symbolic_sizes import SymInt, UndecidedSize

_NOT_BACK: Final = "a cotangent of shape {0} doesn't sum back to shape {1}"


def _broadcasts(shape: Shape, target: Shape) -> bool:
    """Whether ``shape`` may broadcast to ``target``."""
    leading = len(target) - len(shape)
    return leading >= 0 and all(
        size in (1, None) or goal in (size, None) for size, goal in zip(shape, target[leading:], strict=True)
    )


def _sum_infer(flow: TensorSpec, like: TensorSpec) -> TensorSpec:
    if flow.dtype.kind == "b":
        raise DTypeError("takes numbers, not bools; count the true ones with df.math.count_nonzero.")
    if not _broadcasts(like.shape, flow.shape):
        raise InvalidArgumentError(f"{_NOT_BACK.format(flow.shape, like.shape)}.")
    return TensorSpec.of(like.shape, flow.dtype)


def _sum_kernel(flow: Any, like: Any) -> Any:
    if flow.dtype.kind == "b":
        raise DTypeError("sum_like takes numbers, not bools; count the true ones with df.math.count_nonzero.")
    leading = flow.ndim - like.ndim
    repeated = [leading + a for a, size in enumerate(like.shape) if size == 1 != flow.shape[leading + a]]
    axes = (*range(leading), *repeated)
    return total(flow, axes, False).reshape(like.shape) if axes else flow


def _summed(read: SizeReader, flow: Any, like: Any) -> Any:
    """``flow`` summed to the shape of ``like``; along axes of symbolic size, decided at run time."""
    shape = tuple(like.shape)
    flow = sum_to(flow, Shape(shape))
    for axis, size in enumerate(shape):
        if isinstance(size, SymInt) and size != flow.shape[axis]:
            flow = _not_empty(read, flow, axis, size)
            total_flow = reduce_sum(flow, axis, keepdims=True)
            target = (*flow.shape[:axis], size, *flow.shape[axis + 1 :])
            flow = where(
                equal(size_as_tensor(size), 1), total_flow, read.require_first(flow, target, _NOT_BACK)
            )
    return read.require_shape(flow, shape, _NOT_BACK)


def _not_empty(read: SizeReader, flow: Any, axis: int, size: int) -> Any:
    """``flow``, whose size along an axis may be 0 while ``size`` is 1, with a zero there in this case.

    Whether it is empty is a guard where the sizes of a call decide it, so that other calls copy nothing.
    """
    try:
        with read.deciding():
            is_empty = bool(flow.shape[axis] < 1)
    except UndecidedSize:
        is_empty = True
    if not is_empty:
        return flow
    paddings = [
        (0, largest(size - flow.shape[axis], 0)) if i == axis else (0, 0) for i in range(len(flow.shape))
    ]
    return dispatch.current().apply(REGISTRY["pad"], (flow,), {"paddings": tuple(paddings), "value": 0})


SUM_LIKE: Final = register(
    Op(
        name="sum_like",
        doc="""``flow`` summed to the shape of ``like``.""",
        infer=_sum_infer,
        kernel=_sum_kernel,
        kind=Decompose(_summed),
        batching_rule=PER_ELEMENT,
        vjp=(lambda g, out, flow, like: broadcast_like(g, flow), None),
        samples=(
            Sample((Domain(-50, 50, "f", (2, 3)), Domain(-50, 50, "f", (3,)))),
            Sample((Domain(-50, 50, "f", (2, 3)), Domain(-50, 50, "f", (2, 1)))),
            Sample((Domain(-50, 50, "f", (2, 3)), Domain(-50, 50, "f", (2, 3)))),
        ),
    )
)


def _matches(x: Shape, like: Shape, repeats: bool) -> bool:
    return _broadcasts(x, like) if repeats else x.is_compatible_with(like)


def _match_kernel(x: Any, like: Any, message: str, repeats: bool) -> Any:
    if not _matches(Shape(x.shape), Shape(like.shape), repeats):
        raise InvalidArgumentError(message.format(x.shape, like.shape))
    return np.broadcast_to(x, like.shape)


def _matched(read: SizeReader, x: Any, like: Any, message: str, repeats: bool) -> Any:
    shape = tuple(like.shape)
    if not repeats:
        return read.require_shape(x, shape, message)
    last = shape[len(shape) - len(x.shape) :]
    target = [1 if type(own) is int and own == 1 else size for own, size in zip(x.shape, last, strict=True)]
    fit = read.require_shape(x, target, message, repeats=True)
    return dispatch.current().apply(BROADCAST_TO, (fit,), {"shape": Shape(shape)})


MATCHED: Final = register(
    Op(
        name="checked_gradient",
        doc="""``x`` broadcast to the shape of ``like``; an error if that is not possible.""",
        infer=lambda x, like, message, repeats: TensorSpec.of(like.shape, x.dtype),
        kernel=_match_kernel,
        kind=Decompose(_matched),
        batching_rule=PER_ELEMENT,
        vjp=(
            lambda g, out, x, like, message, repeats: dispatch.current().apply(SUM_LIKE, (g, x), {}),
            None,
        ),
        samples=(
            Sample(
                (Domain(-50, 50, "f", (2, 3)), Domain(-50, 50, "f", (2, 3))),
                {"message": "{0} and {1}", "repeats": False},
            ),
            Sample(
                (Domain(-50, 50, "f", (2, 1)), Domain(-50, 50, "f", (2, 3))),
                {"message": "{0} and {1}", "repeats": True},
            ),
        ),
    )
)


def matched(x: Any, like: Any, message: str, *, repeats: bool = False) -> Any:
    """``x`` with the shape of ``like``, checked now where both shapes are known, else when the program runs.

    Args:
        x: a tensor.
        like: a tensor or variable.
        message: of the error; {0} and {1} are replaced by the shapes.
        repeats: whether ``x`` may broadcast to the shape.

    Raises:
        InvalidArgumentError: the shapes differ.
    """
    shape_now, shape = x.shape, like.shape
    if shape_now == shape and shape.is_static:
        return x
    if UNKNOWN_RANK not in (shape_now, shape) and not _matches(shape_now, shape, repeats):
        raise InvalidArgumentError(message.format(shape_now, shape))
    if shape_now.is_static and shape.is_static:
        return dispatch.current().apply(BROADCAST_TO, (x,), {"shape": shape})
    return dispatch.current().apply(MATCHED, (x, like), {"message": message, "repeats": repeats})
