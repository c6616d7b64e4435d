"""Rounding to integers, in the input's own dtype. The slope is zero, and no gradient flows."""

from __future__ import annotations

import numpy as np

from dualflow.ops.elementwise import elementwise, ordered, real
from dualflow.ops.samples import numbers

floor = elementwise(
    "floor",
    """The largest integer not above ``x``.""",
    example=("df.floor([1.5, -1.5])", "[1.0, -2.0]"),
    dtype=ordered,
    eager=np.floor,
    code=lambda m, x: m.floor(x) if m.dtype(x).is_floating else x,
    samples=numbers(-50, 50),
)

ceil = elementwise(
    "ceil",
    """The smallest integer not below ``x``.""",
    example=("df.math.ceil([1.5, -1.5])", "[2.0, -1.0]"),
    dtype=ordered,
    eager=np.ceil,
    code=lambda m, x: m.ceil(x) if m.dtype(x).is_floating else x,
    samples=numbers(-50, 50),
)

trunc = elementwise(
    "trunc",
    """The integer part of ``x``.""",
    example=("df.math.trunc([1.5, -1.5])", "[1.0, -1.0]"),
    dtype=ordered,
    eager=np.trunc,
    code=lambda m, x: m.trunc(x) if m.dtype(x).is_floating else x,
    samples=numbers(-50, 50),
)

round = elementwise(
    "round",
    """The nearest integer; halves go to the even one.""",
    example=("df.round([0.5, 1.5, 2.4])", "[0.0, 2.0, 2.0]"),
    dtype=real,
    eager=np.ndarray.round,
    code=lambda m, x: m.round(x) if m.dtype(x).is_floating else x,
    samples=numbers(-50, 50),
)
