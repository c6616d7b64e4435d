"""Logarithms to the bases 2 and 10, and the length of the hypotenuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualflow.ops.elementwise import as_float, as_real_float, elementwise
from dualflow.ops.samples import numbers, reals
from dualflow.scalar.complex_pairs import hypotenuse


def _in_base(name: str) -> Any:
    """The element of a logarithm; a complex number has the natural one, scaled."""

    def element(m: Any, x: Any) -> Any:
        base = int(name.removeprefix("log"))
        return m.log(x) * (1 / math.log(base)) if m.dtype(x).is_complex else getattr(m, name)(x)

    element.__module__ = __name__
    return element


log2 = elementwise(
    "log2",
    """Logarithm to the base 2.""",
    example=("df.array_api.log2(df.constant([1.0, 8.0]))", "[0.0, 3.0]"),
    dtype=as_float,
    eager=np.log2,
    code=_in_base("log2"),
    vjp=lambda g, out, x: g / (x * math.log(2)),
    samples=numbers(1, 50),
    cost=10,
)

log10 = elementwise(
    "log10",
    """Logarithm to the base 10.""",
    example=("df.array_api.log10(df.constant([1.0, 10.0]))", "[0.0, 1.0]"),
    dtype=as_float,
    eager=np.log10,
    code=_in_base("log10"),
    vjp=lambda g, out, x: g / (x * math.log(10)),
    samples=numbers(1, 50),
    cost=12,
)


def _hypot(m: Any, x: Any, y: Any) -> Any:
    return hypotenuse(m, x, y)


hypot = elementwise(
    "hypot",
    """``sqrt(x ** 2 + y ** 2)``, without overflow; inf if either is, even if the other is nan.""",
    example=("df.array_api.hypot(df.constant([3.0]), df.constant([4.0]))", "[5.0]"),
    dtype=as_real_float,
    eager=np.hypot,
    code=_hypot,
    vjp=(lambda g, out, x, y: g * (x / out), lambda g, out, x, y: g * (y / out)),
    samples=(reals(0.5, 50), reals(-50, -0.5)),
    cost=12,
)
