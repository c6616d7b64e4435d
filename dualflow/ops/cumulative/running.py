"""Cumulative products and cumulative ``log(sum(exp))``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError
from dualflow.core.shape import normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import ALONG
from dualflow.ops.comparison import greater, isfinite
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.docstrings import SCAN, documented
from dualflow.ops.exponential import exp
from dualflow.ops.joining import split
from dualflow.ops.op_kinds import OpKind
from dualflow.ops.powers import log
from dualflow.ops.record import Op, Promotion, register
from dualflow.ops.repetition import pad
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.scans import accumulated, running
from dualflow.ops.selection import masked, where
from dualflow.ops.static import require_static_sizes, shape_of, static_int

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _running(
    name: str,
    doc: str,
    ufunc: np.ufunc,
    start: float,
    kinds: str,
    vjp: Callable[..., Any],
    kind: OpKind,
    domain: Domain,
    promotion: Promotion,
) -> Op:
    """The op record of a cumulative ``ufunc``; ``start`` is the first element of exclusive results."""

    def infer(x: TensorSpec, axis: int, exclusive: bool, reverse: bool) -> TensorSpec:
        if x.dtype.kind not in kinds:
            raise DTypeError(f"does not take {x.dtype.name}; convert the input with df.cast.")
        return x

    def kernel(x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
        if x.dtype.kind not in kinds:
            raise TypeError(f"{name} does not take {x.dtype}")
        return accumulated(ufunc, start, x, axis, exclusive, reverse)

    return register(
        Op(
            name=name,
            doc=doc,
            infer=infer,
            kernel=kernel,
            kind=kind,
            batching_rule=ALONG,
            vjp=(vjp,),
            promotion=promotion,
            samples=tuple(
                Sample((domain,), {"axis": axis, "exclusive": exclusive, "reverse": reverse})
                for axis, exclusive, reverse in ((0, False, False), (1, True, False), (1, False, True))
            ),
        )
    )


def _product_vjp(g: Any, out: Any, x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    """The cotangent of a cumulative product, without a division, which zeros would make nan.

    ``others`` is the product of all before ``i``. The sums follow ``s[i] = g[i] + x[i + 1] s[i + 1]``, which
    doubling solves: after each round a sum covers twice as many terms.
    """
    (size,) = require_static_sizes(x.shape, "the gradient of cumprod", [axis])
    direction = 1 if reverse else -1
    sums = _shifted(g, axis, direction) if exclusive else g
    factors = _shifted(x, axis, direction)
    reach = 1
    while reach < size:
        sums = sums + factors * _shifted(sums, axis, direction * reach)
        factors = factors * _shifted(factors, axis, direction * reach)
        reach *= 2
    return sums * cumprod(x, axis, True, reverse)


def _shifted(x: Any, axis: int, by: int) -> Any:
    """``x`` shifted by ``by`` along an axis of static size; zeros fill the start."""
    size, count = x.shape[axis], min(abs(by), x.shape[axis])
    parts = split(x, [size - count, count] if by > 0 else [count, size - count], axis=axis)
    padding = [[0, 0] for _ in x.shape]
    padding[axis] = [count, 0] if by > 0 else [0, count]
    return pad(parts[0] if by > 0 else parts[1], padding)


def _exponentials_vjp(g: Any, out: Any, x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    """``exp(x) * sum(g * exp(-out))``, summed in the other direction.

    Positive and negative ``g`` are summed separately, so that the sums have logarithms.
    """
    safe = where(isfinite(out), out, 0)

    def part(share: Any) -> Any:
        is_positive = greater(share, 0)
        terms = where(is_positive, log(where(is_positive, share, 1)) - safe, -math.inf)
        return exp(cumulative_logsumexp(terms, axis, exclusive, not reverse) + x)

    gradient = part(g) - part(-g)
    return masked(isfinite(x), gradient)


CUMPROD = _running(
    "cumprod",
    """Running products along ``axis``.""",
    np.multiply,
    1,
    "iufc",
    _product_vjp,
    running(lambda m, x, y: x * y, 1, 1),
    Domain(-2, 3, "fi", (3, 4)),
    Promotion.NONE,
)
CUMULATIVE_LOGSUMEXP = _running(
    "cumulative_logsumexp",
    """Running ``log(sum(exp(x)))`` along ``axis``.""",
    np.logaddexp,
    -math.inf,
    "f",
    _exponentials_vjp,
    running(lambda m, x, y: m.logaddexp(x, y), -math.inf, -math.inf),
    Domain(-5, 5, "f", (3, 4)),
    Promotion.FLOAT,
)


def _run(op: Op, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Any:
    where_axis = normalize_axis(static_int(axis, "axis"), len(shape_of(x)))
    attrs = {"axis": where_axis, "exclusive": bool(exclusive), "reverse": bool(reverse)}
    return dispatch.current().apply(op, (x,), attrs)


_SIZE = ", or a gradient is computed along an axis whose size is unknown in a trace"


@documented(SCAN, takes="numbers other than bools", returns="the same dtype", neutral="1", or_gradient=_SIZE)
def cumprod(
    x: TensorLike, axis: AxisLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running products along ``axis``.

    Its gradient doesn't divide, so zeros give no nan.

    >>> import dualflow as df
    >>> df.math.cumprod([2, 3, 4]).numpy(), df.math.cumprod([2, 3, 4], exclusive=True).numpy()
    (array([ 2,  6, 24], dtype=int32), array([1, 2, 6], dtype=int32))
    """
    return _run(CUMPROD, x, axis, exclusive, reverse)


@documented(
    SCAN, takes="real numbers", returns="the same dtype; float32 for integers", neutral="-inf", or_gradient=""
)
def cumulative_logsumexp(
    x: TensorLike, axis: AxisLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The logarithms of the running sums of ``exp(x)`` along ``axis``, without overflow.

    >>> import dualflow as df
    >>> df.math.cumulative_logsumexp([1000.0, 1000.0]).numpy().tolist()
    [1000.0, 1000.6931762695312]
    """
    return _run(CUMULATIVE_LOGSUMEXP, convert_to_tensor(x), axis, exclusive, reverse)
