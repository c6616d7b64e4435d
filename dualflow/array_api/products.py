"""Products and quotients whose rules are the standard's own."""

from __future__ import annotations

from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops import contraction
from dualflow.ops.arithmetic import divide, floordiv
from dualflow.ops.arrangement import expand_dims, squeeze
from dualflow.ops.choice import where
from dualflow.ops.comparison import isinf
from dualflow.ops.conversion import stop_gradient
from dualflow.ops.record import agreed


def matrix_product(x: Any, y: Any) -> Any:
    """``x @ y``: a vector ``x`` counts as a row, a vector ``y`` as a column, and the result lacks their axes.

    Raises:
        InvalidArgumentError: a factor without axes, or inner sizes that differ.
    """
    ranks = [len(getattr(factor, "shape", ())) for factor in (x, y)]
    if 0 in ranks:
        raise InvalidArgumentError(
            "A matrix product takes arrays of one axis or more; multiply by a number with *."
        )
    rows = expand_dims(x, 0) if ranks[0] == 1 else x
    columns = expand_dims(y, 1) if ranks[1] == 1 else y
    found = contraction.matmul(rows, columns)
    dropped = ((-2,) if ranks[0] == 1 else ()) + ((-1,) if ranks[1] == 1 else ())
    return squeeze(found, dropped) if dropped else found


def floor_quotient(x: Any, y: Any) -> Any:
    """``x // y``, which for floats with an infinite operand is ``x / y``: inf, or a zero of either sign.

    NumPy and Python have nan and -1 there.
    """
    x, y = agreed(x, y)
    found = floordiv(x, y)
    if not x.dtype.is_floating:
        return found
    return where(isinf(x) | isinf(y), stop_gradient(divide(x, y)), found)
