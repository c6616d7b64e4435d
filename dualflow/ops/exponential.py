"""Exponentials, logarithms and the sigmoid family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dualflow.ops import maths_reference
from dualflow.ops.arithmetic import negative
from dualflow.ops.elementwise import as_float, as_real_float, elementwise
from dualflow.ops.samples import numbers

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

exp = elementwise(
    "exp",
    """e to the power ``x``.""",
    example=("df.exp([0.0])", "[1.0]"),
    dtype=as_float,
    eager=np.exp,
    code=lambda m, x: m.exp(x),
    vjp=lambda g, out, x: g * out,
    samples=numbers(-5, 5),
    cost=10,
)

expm1 = elementwise(
    "expm1",
    """``exp(x) - 1``, exact near 0.""",
    example=("df.math.expm1([0.0])", "[0.0]"),
    dtype=as_float,
    eager=np.expm1,
    code=lambda m, x: m.expm1(x),
    vjp=lambda g, out, x: g * exp(x),  # out + 1 is 0 far below 0
    samples=numbers(-5, 5),
    cost=12,
)

log1p = elementwise(
    "log1p",
    """``log(1 + x)``, exact near 0.""",
    example=("df.math.log1p([0.0])", "[0.0]"),
    dtype=as_float,
    eager=np.log1p,
    code=lambda m, x: m.log1p(x),
    vjp=lambda g, out, x: g / (x + 1),
    samples=numbers(0, 50),
    cost=12,
)

sigmoid = elementwise(
    "sigmoid",
    """``1 / (1 + exp(-x))``.""",
    example=("df.sigmoid([0.0, -1e9])", "[0.5, 0.0]"),
    dtype=as_real_float,
    eager=maths_reference.sigmoid,
    code=lambda m, x: m.sigmoid(x),
    vjp=lambda g, out, x: g * out * (1 - out),
    samples=numbers(-20, 20),
    cost=12,
)

softplus = elementwise(
    "softplus",
    """``log(1 + exp(x))``, without overflow.""",
    example=("df.math.softplus([-1e9, 1e9])", "[0.0, 1000000000.0]"),
    inputs="features",
    dtype=as_real_float,
    code=lambda m, x: m.log1p(m.exp(-m.abs(x))) + m.maximum(x, 0),
    vjp=lambda g, out, x: g * sigmoid(x),
    samples=numbers(-20, 20),
    cost=24,
)

logaddexp = elementwise(
    "logaddexp",
    """``log(exp(x) + exp(y))``, without overflow.""",
    example=("df.math.logaddexp([-1e9], [3.0])", "[3.0]"),
    dtype=as_real_float,
    eager=np.logaddexp,
    code=lambda m, x, y: m.logaddexp(x, y),
    vjp=(lambda g, out, x, y: g * sigmoid(x - y), lambda g, out, x, y: g * sigmoid(y - x)),
    samples=(numbers(-20, 20), numbers(-20, 20)),
    cost=25,
)


def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """``log(sigmoid(x))``, without overflow.

    Args:
        x: real numbers of any shape; integers become float32.

    Returns:
        A tensor with the shape and dtype of ``x``; float32 for integers.

    Raises:
        DTypeError: ``x`` holds complex numbers or strings.

    >>> import dualflow as df
    >>> df.math.log_sigmoid([-1e9, 1e9]).numpy().tolist()
    [-1000000000.0, -0.0]
    """
    return negative(softplus(negative(x)))
