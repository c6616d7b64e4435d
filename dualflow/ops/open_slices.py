"""Slices whose ends are known at run time only."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import zero_array
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.conversion import cast
from dualflow.ops.op_kinds import Decompose
from dualflow.ops.record import REGISTRY, Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import dtype_of, shape_of
from dualflow.sizes.size_functions import slice_bounds

_BEYOND_END: Final = 1 << 62
"""A bound beyond the end of every axis."""


def _number(value: int) -> Domain:
    return Domain(-50, 50, "i", (), values=np.array(value, np.int64))


def _key(start: Any, stop: Any, axis: int, step: int) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, slice(int(start), int(stop), step))


def _infer(x: TensorSpec, start: TensorSpec, stop: TensorSpec, axis: int, step: int) -> TensorSpec:
    return TensorSpec.of(Shape([*x.shape[:axis], None, *x.shape[axis + 1 :]]), x.dtype)


def _entries(read: Any, start: Any, stop: Any, shape: Shape, axis: int, step: int) -> tuple[Any, ...]:
    """The indexing key of the slice, with bounds clipped to the axis."""
    (first,), (last,) = read(start), read(stop)
    begin, count = slice_bounds(first, last, step, shape[axis])
    (count,) = read.sizes([count])
    full_slices = tuple([(0, d, 1) for d in shape])
    return (*full_slices[:axis], (begin, begin + count * step, step), *full_slices[axis + 1 :])


def _slice(read: Any, x: Any, start: Any, stop: Any, axis: int, step: int) -> Any:
    key = _entries(read, start, stop, x.shape, axis, step)
    return dispatch.current().apply(REGISTRY["getitem"], (x,), {"key": key})


def _place_at_slice(read: Any, part: Any, start: Any, stop: Any, like: Any, axis: int, step: int) -> Any:
    key = _entries(read, start, stop, like.shape, axis, step)
    return dispatch.current().apply(REGISTRY["place"], (part,), {"key": key, "shape": Shape(like.shape)})


def _place(part: Any, start: Any, stop: Any, like: Any, axis: int, step: int) -> Any:
    out = zero_array(like.shape, part.dtype)
    out[_key(start, stop, axis, step)] = part
    return out


def _place_vjp(g: Any, out: Any, part: Any, start: Any, stop: Any, like: Any, axis: int, step: int) -> Any:
    return dispatch.current().apply(SLICE_BY, (g, start, stop), {"axis": axis, "step": step})


SLICE_BY = register(
    Op(
        name="slice_by",
        doc="""``x[start:stop:step]`` along ``axis``.""",
        infer=_infer,
        kernel=lambda x, start, stop, axis, step: x[_key(start, stop, axis, step)],
        kind=Decompose(_slice),
        vjp=(
            lambda g, out, x, start, stop, axis, step: dispatch.current().apply(
                PLACE_BY, (g, start, stop, x), {"axis": axis, "step": step}
            ),
            None,
            None,
        ),
        strings=True,
        samples=tuple(
            Sample(
                (Domain(-50, 50, "fib", (4, 5)), _number(start), _number(stop)), {"axis": axis, "step": step}
            )
            for start, stop, axis, step in (
                (1, 3, 0, 1),
                (-4, 9, 1, 2),
                (3, 1, 0, 1),
                (7, -_BEYOND_END, 1, -2),
            )
        ),
    )
)

PLACE_BY: Op = register(
    Op(
        name="place_by",
        doc="""Zeros of the shape of ``like`` with ``part`` at ``[start:stop:step]`` along ``axis``.""",
        infer=lambda part, start, stop, like, axis, step: TensorSpec.of(like.shape, part.dtype),
        kernel=_place,
        kind=Decompose(_place_at_slice),
        vjp=(_place_vjp, None, None, None),
        strings=True,
        samples=(
            Sample(
                (Domain(-50, 50, "fi", (2, 5)), _number(1), _number(3), Domain(-50, 50, "f", (4, 5))),
                {"axis": 0, "step": 1},
            ),
        ),
    )
)


def _bound(end: Any, default: int) -> Any:
    if end is None:
        return np.array(default, np.int64)
    if len(shape_of(end)) or not dtype_of(end).is_integer:
        raise DTypeError(f"a slice's bound is an integer, not {end!r}; cast it with df.cast.")
    return cast(end, int64)


def slice_by(x: Any, start: Any, stop: Any, axis: int, step: int) -> Any:
    """``x[start:stop:step]`` along ``axis``; a bound of None is the end of the axis.

    Raises:
        DTypeError: a bound that is no integer.
    """
    first, last = (0, _BEYOND_END) if step > 0 else (_BEYOND_END, -_BEYOND_END)
    ends = [_bound(start, first), _bound(stop, last)]
    return dispatch.current().apply(SLICE_BY, (x, *ends), {"axis": axis, "step": step})
