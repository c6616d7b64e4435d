"""Products and quotients that are 0 where the first operand is 0, also if the other is inf or nan."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.ops.comparison import not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.elementwise import BinaryFunction, as_float, elementwise
from dualflow.ops.samples import reals


def _zero_at_zero(product: Any) -> Any:
    """The NumPy kernel ``product(x, y)``, and 0 where ``x`` is 0."""
    return lambda x, y: np.where(x == 0, x.dtype.type(0), product(x, y))


def _is_nonzero(x: Any) -> Any:
    """1 where ``x`` is not 0, else 0, in the dtype of ``x``: a first operand that keeps gradients 0 at 0."""
    return cast(not_equal(x, 0), x.dtype)


xlogy: BinaryFunction = elementwise(
    "xlogy",
    """``x * log(y)``, and 0 where ``x`` is 0. There the gradient for ``x`` is 0, too.""",
    example=("df.math.xlogy([0.0, 2.0], [0.0, 1.0])", "[0.0, 0.0]"),
    dtype=as_float,
    eager=_zero_at_zero(lambda x, y: x * np.log(y)),
    code=lambda m, x, y: m.where(m.equal(x, 0), 0, x * m.log(y)),
    vjp=(lambda g, out, x, y: g * xlogy(_is_nonzero(x), y), lambda g, out, x, y: g * xdivy(x, y)),
    samples=(reals(-50, 50, kinks=(0.0,)), reals(1, 50)),
    cost=11,
)

xlog1py: BinaryFunction = elementwise(
    "xlog1py",
    """``x * log(1 + y)``, and 0 where ``x`` is 0. There the gradient for ``x`` is 0, too.""",
    example=("df.math.xlog1py([0.0, 2.0], [-1.0, 0.0])", "[0.0, 0.0]"),
    dtype=as_float,
    eager=_zero_at_zero(lambda x, y: x * np.log1p(y)),
    code=lambda m, x, y: m.where(m.equal(x, 0), 0, x * m.log1p(y)),
    vjp=(lambda g, out, x, y: g * xlog1py(_is_nonzero(x), y), lambda g, out, x, y: g * xdivy(x, y + 1)),
    samples=(reals(-50, 50, kinks=(0.0,)), reals(0, 50)),
    cost=13,
)

xdivy: BinaryFunction = elementwise(
    "xdivy",
    """``x / y``, and 0 where ``x`` is 0. There the gradient for ``x`` is 0, too.""",
    example=("df.math.xdivy([0.0, 2.0], [0.0, 4.0])", "[0.0, 0.5]"),
    dtype=as_float,
    eager=_zero_at_zero(lambda x, y: x / y),
    code=lambda m, x, y: m.where(m.equal(x, 0), 0, x / y),
    vjp=(lambda g, out, x, y: g * xdivy(_is_nonzero(x), y), lambda g, out, x, y: -g * xdivy(out, y)),
    samples=(reals(-50, 50, kinks=(0.0,)), reals(1, 50)),
    cost=5,
)
