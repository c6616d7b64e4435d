"""Choosing between values: ``where`` and clipping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import ALL, DType
from dualflow.core.errors import DTypeError
from dualflow.core.shape import broadcast
from dualflow.core.spec import TensorSpec
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import REGISTRY, Op, Promotion, register
from dualflow.ops.samples import Sample, booleans, numbers

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _infer(condition: TensorSpec, x: TensorSpec, y: TensorSpec) -> TensorSpec:
    if condition.dtype.kind != "b":
        raise DTypeError(
            f"the condition is of bools, not {condition.dtype.name}; write a comparison such as x > 0."
        )
    return TensorSpec.of(broadcast([condition.shape, x.shape, y.shape]), x.dtype)


def _where(condition: Any, x: Any, y: Any) -> Any:
    if condition.dtype.kind != "b":
        raise TypeError("the condition is of bools")
    return np.where(condition, x, y)


WHERE = register(
    Op(
        name="where",
        doc="""Elements of ``x`` where ``condition`` holds, of ``y`` elsewhere.""",
        infer=_infer,
        kernel=_where,
        kind=Elementwise(lambda m, condition, x, y: m.where(condition, x, y)),
        vjp=(
            None,
            lambda g, out, condition, x, y: masked(condition, g),
            lambda g, out, condition, x, y: unmasked(condition, g),
        ),
        promotion=Promotion.AFTER_FIRST,
        strings=True,
        samples=(Sample((booleans(), numbers(-50, 50), numbers(-50, 50))),),
    )
)


_ZEROS: dict[DType, np.ndarray[Any, Any]] = {t: np.zeros((), t.dtype) for t in ALL}


def masked(condition: Any, g: Any) -> Tensor:
    """``g`` where ``condition`` holds, 0 elsewhere."""
    zero = _ZEROS.get(g.dtype)
    engine = dispatch.current()
    if zero is None:
        return engine.apply(WHERE, (condition, g, np.zeros((), g.dtype.dtype)), {})
    return engine.run(WHERE, (engine.lift(condition), g, engine.constant(zero)), {})


def unmasked(condition: Any, g: Any) -> Tensor:
    """0 where ``condition`` holds, ``g`` elsewhere."""
    zero = _ZEROS.get(g.dtype)
    engine = dispatch.current()
    if zero is None:
        return engine.apply(WHERE, (condition, np.zeros((), g.dtype.dtype), g), {})
    return engine.run(WHERE, (engine.lift(condition), engine.constant(zero), g), {})


def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Elements of ``x`` where ``condition`` holds, of ``y`` elsewhere; or the positions where it holds.

    No gradient reaches the argument that was not selected. But where its derivative is infinite, the product
    with zero is nan: give the function a safe argument too, as in ``where(ok, log(where(ok, x, 1)), 0)``.

    Args:
        condition: bools, of any shape; numbers, too, if ``x`` and ``y`` are left out.
        x: the values where the condition is true, of any dtype.
        y: the values where it is false; the three shapes broadcast, and ``x`` and ``y`` promote to a common
            dtype.

    Returns:
        A tensor of the broadcast shape with the common dtype of ``x`` and ``y``. Without ``x`` and ``y``:
        int64 of shape ``(count, rank)``, the positions of the elements that are true or not 0, in order.

    Raises:
        DTypeError: ``condition`` is not of bools, or only one of ``x`` and ``y`` is given.
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.where([True, False], [1, 2], 0).numpy()
    array([1, 0], dtype=int32)
    >>> df.where([[True, False], [False, True]]).numpy().tolist()
    [[0, 0], [1, 1]]
    """
    if x is None and y is None:
        return dispatch.current().apply(REGISTRY["where_true"], (condition,), {})
    if x is None or y is None:
        raise DTypeError("where takes both x and y, or neither for the positions of the true elements.")
    return dispatch.current().apply(WHERE, (condition, x, y), {})
