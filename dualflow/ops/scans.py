"""Running sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError
from dualflow.core.shape import normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.forms import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.rows import ALONG
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import shape_of, static_int

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def _infer(x: TensorSpec, axis: int, exclusive: bool, reverse: bool) -> TensorSpec:
    if x.dtype.kind == "b":
        raise DTypeError("takes numbers, not bools; convert the input with df.cast.")
    return x


def _cumsum(x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    if x.dtype.kind == "b":
        raise TypeError("cumsum takes numbers")
    return accumulated(np.add, 0, x, axis, exclusive, reverse)


def accumulated(ufunc: np.ufunc, start: float, x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    """The running results of ``ufunc`` along ``axis``; ``start`` is the first of ``exclusive`` ones."""
    way = (slice(None),) * axis + (slice(None, None, -1),)
    source = x[way] if reverse else x
    found = ufunc.accumulate(source, axis, x.dtype)
    if exclusive and x.shape[axis]:
        before = (slice(None),) * axis
        moved = np.full_like(found, start)
        moved[(*before, slice(1, None))] = found[(*before, slice(None, -1))]
        found = moved
    return found[way] if reverse else found


CUMSUM = register(
    Op(
        name="cumsum",
        doc="""Running sums along ``axis``.""",
        infer=_infer,
        kernel=_cumsum,
        form=Opaque("each element depends on the one before it"),
        rows=ALONG,
        vjp=(lambda g, out, x, axis, exclusive, reverse: cumsum(g, axis, exclusive, not reverse),),
        samples=tuple(
            Sample(
                (Domain(-50, 50, "fi", (3, 4)),), {"axis": axis, "exclusive": exclusive, "reverse": reverse}
            )
            for axis in (0, 1)
            for exclusive in (False, True)
            for reverse in (False, True)
        ),
    )
)


def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running sums along ``axis``.

    Args:
        x: numbers of one axis or more.
        axis: the axis along which to add up.
        exclusive: leave out the element itself: the first sum is 0.
        reverse: add up from the end.
        name: ignored; as in TensorFlow.

    >>> import dualflow as df
    >>> df.cumsum([1, 2, 3]).numpy(), df.cumsum([1, 2, 3], exclusive=True, reverse=True).numpy()
    (array([1, 3, 6], dtype=int32), array([5, 3, 0], dtype=int32))
    """
    where = normalize_axis(static_int(axis, "axis"), len(shape_of(x)))
    attrs = {"axis": where, "exclusive": bool(exclusive), "reverse": bool(reverse)}
    return dispatch.current().apply(CUMSUM, (x,), attrs)
