"""Sums, products, quotients, powers and rounding."""

from __future__ import annotations

import numpy as np

from dualflow.ops.elementwise import as_quotient, elementwise, number, signed
from dualflow.ops.samples import numbers

add = elementwise(
    "add",
    """Sum of ``x`` and ``y``, elementwise: ``df.add(1, 2)`` is 3.""",
    dtype=number,
    eager=np.add,
    code=lambda m, x, y: x + y,
    vjp=(lambda g, out, x, y: g, lambda g, out, x, y: g),
    samples=(numbers(-50, 50), numbers(-50, 50)),
)

subtract = elementwise(
    "subtract",
    """Difference of ``x`` and ``y``, elementwise.""",
    dtype=signed,
    eager=np.subtract,
    code=lambda m, x, y: x - y,
    vjp=(lambda g, out, x, y: g, lambda g, out, x, y: -g),
    samples=(numbers(-50, 50), numbers(-50, 50)),
)

multiply = elementwise(
    "multiply",
    """Product of ``x`` and ``y``, elementwise.""",
    dtype=number,
    eager=np.multiply,
    code=lambda m, x, y: x * y,
    vjp=(lambda g, out, x, y: g * y, lambda g, out, x, y: g * x),
    samples=(numbers(-50, 50), numbers(-50, 50)),
)

divide = elementwise(
    "divide",
    """True quotient of ``x`` and ``y``; integers divide in float64 (float32 for those of up to 16 bits).""",
    dtype=as_quotient,
    eager=np.divide,
    code=lambda m, x, y: x / y,
    vjp=(lambda g, out, x, y: g / y, lambda g, out, x, y: -g * out / y),
    samples=(numbers(-50, 50), numbers(1, 50)),
    cost=4,
)

negative = elementwise(
    "negative",
    """``-x``.""",
    dtype=signed,
    eager=np.negative,
    code=lambda m, x: -x,
    vjp=lambda g, out, x: -g,
    samples=numbers(-50, 50),
)
