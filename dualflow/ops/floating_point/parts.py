"""The sign of a float and its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.ops.arithmetic import sign
from dualflow.ops.comparison import less
from dualflow.ops.creation import ones_like
from dualflow.ops.elementwise import BinaryFunction, as_real_float, elementwise
from dualflow.ops.samples import Domain

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

_SIGNED = Domain(-50, 50, "f", kinks=(0.0,))

copysign: BinaryFunction = elementwise(
    "copysign",
    """The magnitude of ``x`` with the sign of ``y``, also that of zeros and nan.""",
    example=("df.array_api.copysign(df.constant([1.0, 2.0]), df.constant([-0.0, 3.0]))", "[-1.0, 2.0]"),
    dtype=as_real_float,
    eager=np.copysign,
    code=lambda m, x, y: m.copysign(x, y),
    vjp=(lambda g, out, x, y: g * sign(x) * copysign(ones_like(y), y), None),
    samples=(_SIGNED, _SIGNED),
)


def signbit(x: Any, name: str | None = None) -> Tensor:
    """Whether the sign of a real float is minus, also that of zeros and nan.

    >>> import dualflow as df
    >>> signbit(df.constant([-1.0, -0.0, 0.0])).numpy().tolist()
    [True, True, False]
    """
    return less(copysign(ones_like(x), x), 0)


def _nextafter(m: Any, x: Any, y: Any) -> Any:
    """Rump, Zimmermann, Boldo, Melquiond: Computing Predecessor and Successor in Rounding to Nearest."""
    info = np.finfo(m.dtype(x).dtype)
    unit, least = float(info.eps) / 2, float(info.smallest_subnormal)
    phi = unit * (1 + 2 * unit)
    size, up = m.abs(x), x < y
    wide = phi * size
    scaled = x * (1 / unit)
    apart = phi * m.abs(scaled)
    normal = m.where(up, x + wide, x - wide)
    small = m.where(up, scaled + apart, scaled - apart) * unit
    smallest = m.where(up, x + least, x - least)
    found = m.where(size >= least / (2 * unit * unit), normal, m.where(size < least / unit, smallest, small))
    found = m.where(m.isinf(x), m.copysign(float(info.max), x), found)
    found = m.where(m.equal(found, 0), m.copysign(found, x), found)
    return m.where(m.equal(x, y), y, m.where(m.isnan(x) | m.isnan(y), x + y, found))


nextafter = elementwise(
    "nextafter",
    """The float that follows ``x`` on the way to ``y``; ``y`` where they are equal.""",
    example=("df.math.nextafter([1.0], [2.0])", "[1.0000001192092896]"),
    dtype=as_real_float,
    eager=np.nextafter,
    code=_nextafter,
    vjp=(lambda g, out, x, y: g, lambda g, out, x, y: g * 0),
    samples=(_SIGNED, _SIGNED),
    cost=20,
)
