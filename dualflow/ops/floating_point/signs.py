"""The sign of a float."""

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
    """Whether the sign bit of a real float is set, also for zeros and nan.

    >>> import dualflow as df
    >>> signbit(df.constant([-1.0, -0.0, 0.0])).numpy().tolist()
    [True, True, False]
    """
    return less(copysign(ones_like(x), x), 0)
