"""Cumulative sums, and the kernels and op kinds of cumulative ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError
from dualflow.core.shape import normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import ALONG
from dualflow.ops.docstrings import SCAN, documented
from dualflow.ops.op_kinds import Reduce, Scan
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import shape_of, static_int

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
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
    """The cumulative results of ``ufunc`` along ``axis``; ``exclusive`` ones begin with ``start``."""
    before = (slice(None),) * axis
    backwards = (*before, slice(None, None, -1))
    source = x[backwards] if reverse else x
    if exclusive:
        moved = np.full(x.shape, start, x.dtype)
        moved[(*before, slice(1, None))] = source[(*before, slice(None, -1))]
        source = moved
    accumulations = ufunc.accumulate(source, axis, x.dtype)
    return accumulations[backwards] if reverse else accumulations


def running(join: Callable[[Any, Any, Any], Any], neutral: float, first: float) -> Scan:
    """The op kind of a cumulative ``join(m, x, y)`` from ``neutral``, or from ``first`` if exclusive."""

    def fold(start: float) -> Reduce:
        return Reduce(
            start=lambda m, dtype: (m.cast(start if dtype.is_floating else int(start), dtype),),
            step=lambda m, acc, x, index: (join(m, acc[0], x),),
            merge=lambda m, a, b: (join(m, a[0], b[0]),),
            finish=lambda m, acc: acc[0],
        )

    return Scan(fold(neutral), fold(first))


def _vjp(g: Any, out: Any, x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    """The sums of the cotangents in the other direction."""
    return cumsum(g, axis, exclusive, not reverse)


CUMSUM = register(
    Op(
        name="cumsum",
        doc="""Running sums along ``axis``.""",
        infer=_infer,
        kernel=_cumsum,
        kind=running(lambda m, x, y: x + y, -0.0, 0.0),  # -0.0 + x is x, also for -0.0
        batching_rule=ALONG,
        vjp=(_vjp,),
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


@documented(SCAN, takes="numbers other than bools", returns="the same dtype", neutral="0", or_gradient="")
def cumsum(
    x: TensorLike, axis: AxisLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running sums along ``axis``.

    >>> import dualflow as df
    >>> df.cumsum([1, 2, 3]).numpy(), df.cumsum([1, 2, 3], exclusive=True, reverse=True).numpy()
    (array([1, 3, 6], dtype=int32), array([5, 3, 0], dtype=int32))
    """
    where = normalize_axis(static_int(axis, "axis"), len(shape_of(x)))
    attrs = {"axis": where, "exclusive": bool(exclusive), "reverse": bool(reverse)}
    return dispatch.current().apply(CUMSUM, (x,), attrs)
