"""Trigonometric and hyperbolic functions and their inverses; angles in radians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dualflow.ops.arithmetic import square
from dualflow.ops.elementwise import UnaryFunction, as_float, as_real_float, elementwise
from dualflow.ops.powers import rsqrt
from dualflow.ops.samples import Domain, numbers, reals

Rule = Callable[..., Any]


def _register(
    name: str, doc: str, ufunc: np.ufunc, code: Rule, vjp: Rule, domain: Domain, at: float, result: float
) -> UnaryFunction:
    return elementwise(
        name,
        doc,
        dtype=as_float,
        eager=ufunc,
        code=code,
        vjp=vjp,
        samples=domain,
        cost=15,
        example=(f"df.{name}([{at}])", f"[{result}]"),
    )


sin = _register(
    "sin", "Sine.", np.sin, lambda m, x: m.sin(x), lambda g, out, x: g * cos(x), numbers(-10, 10), 0.0, 0.0
)
cos: UnaryFunction = _register(
    "cos", "Cosine.", np.cos, lambda m, x: m.cos(x), lambda g, out, x: -g * sin(x), numbers(-10, 10), 0.0, 1.0
)
tan = _register(
    "tan",
    "Tangent.",
    np.tan,
    lambda m, x: m.tan(x),
    lambda g, out, x: g * (1 + out * out),
    reals(-1.3, 1.3),
    0.0,
    0.0,
)
asin = _register(
    "asin",
    "The angle in [-pi/2, pi/2] whose sine is ``x``; nan outside [-1, 1].",
    np.arcsin,
    lambda m, x: m.asin(x),
    lambda g, out, x: g * rsqrt(1 - square(x)),
    reals(-0.95, 0.95),
    0.0,
    0.0,
)
acos = _register(
    "acos",
    "The angle in [0, pi] whose cosine is ``x``; nan outside [-1, 1].",
    np.arccos,
    lambda m, x: m.acos(x),
    lambda g, out, x: -g * rsqrt(1 - square(x)),
    reals(-0.95, 0.95),
    1.0,
    0.0,
)
atan = _register(
    "atan",
    "The angle in (-pi/2, pi/2) whose tangent is ``x``.",
    np.arctan,
    lambda m, x: m.atan(x),
    lambda g, out, x: g / (1 + square(x)),
    numbers(-10, 10),
    0.0,
    0.0,
)
sinh = _register(
    "sinh",
    "Hyperbolic sine.",
    np.sinh,
    lambda m, x: m.sinh(x),
    lambda g, out, x: g * cosh(x),
    numbers(-5, 5),
    0.0,
    0.0,
)
cosh: UnaryFunction = _register(
    "cosh",
    "Hyperbolic cosine.",
    np.cosh,
    lambda m, x: m.cosh(x),
    lambda g, out, x: g * sinh(x),
    numbers(-5, 5),
    0.0,
    1.0,
)
tanh = _register(
    "tanh",
    "Hyperbolic tangent.",
    np.tanh,
    lambda m, x: m.tanh(x),
    lambda g, out, x: g * (1 - out * out),
    numbers(-5, 5),
    0.0,
    0.0,
)
asinh = _register(
    "asinh",
    "Inverse of ``sinh``.",
    np.arcsinh,
    lambda m, x: m.asinh(x),
    lambda g, out, x: g * rsqrt(square(x) + 1),
    numbers(-10, 10),
    0.0,
    0.0,
)
acosh = _register(
    "acosh",
    "Inverse of ``cosh``; nan below 1.",
    np.arccosh,
    lambda m, x: m.acosh(x),
    lambda g, out, x: g * rsqrt(x - 1) * rsqrt(x + 1),  # not of the product: nan below 1
    numbers(2, 10),
    1.0,
    0.0,
)
atanh = _register(
    "atanh",
    "Inverse of ``tanh``; nan outside [-1, 1].",
    np.arctanh,
    lambda m, x: m.atanh(x),
    lambda g, out, x: g / (1 - square(x)),
    reals(-0.95, 0.95),
    0.0,
    0.0,
)

atan2 = elementwise(
    "atan2",
    """The angle in [-pi, pi] of the point with ordinate ``y`` and abscissa ``x``: ``atan2(y, x)``.""",
    example=("df.atan2([0.0, 0.0], [1.0, 2.0])", "[0.0, 0.0]"),
    dtype=as_real_float,
    eager=np.arctan2,
    code=lambda m, y, x: m.atan2(y, x),
    vjp=(
        lambda g, out, y, x: g * x / (square(x) + square(y)),
        lambda g, out, y, x: -g * y / (square(x) + square(y)),
    ),
    samples=(numbers(1, 10), numbers(1, 10)),
    cost=20,
    inputs="y, x",
)
