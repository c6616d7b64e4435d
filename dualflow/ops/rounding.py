"""Rounding to integers, in the input's own dtype. The slope is zero, and no gradient flows."""

from __future__ import annotations

import numpy as np

from dualflow.ops.elementwise import elementwise, real
from dualflow.ops.samples import numbers

floor = elementwise(
    "floor",
    """The largest integer not above ``x``.""",
    dtype=real,
    eager=np.floor,
    code=lambda m, x: m.floor(x),
    samples=numbers(-50, 50),
)

ceil = elementwise(
    "ceil",
    """The smallest integer not below ``x``.""",
    dtype=real,
    eager=np.ceil,
    code=lambda m, x: m.ceil(x),
    samples=numbers(-50, 50),
)

trunc = elementwise(
    "trunc",
    """The integer part of ``x``.""",
    dtype=real,
    eager=np.trunc,
    code=lambda m, x: m.trunc(x),
    samples=numbers(-50, 50),
)

round = elementwise(
    "round",
    """The nearest integer; halves go to the even one.""",
    dtype=real,
    eager=np.ndarray.round,
    code=lambda m, x: m.round(x),
    samples=numbers(-50, 50),
)
