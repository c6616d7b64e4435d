"""Powers of 2."""

from __future__ import annotations

import math

import numpy as np

from dualflow.ops.elementwise import as_real_float, elementwise
from dualflow.ops.samples import numbers

exp2 = elementwise(
    "exp2",
    """2 to the power ``x``.""",
    example=("df.numpy.exp2([3.0])", "[8.0]"),
    dtype=as_real_float,
    eager=lambda x: np.exp2(x),  # the ufunc itself would take complex numbers
    code=lambda m, x: m.exp2(x),
    vjp=lambda g, out, x: g * out * math.log(2.0),
    samples=numbers(-5, 5),
    cost=10,
)
