"""Floats that are computed from sizes, such as the divisor of a mean: expressions in place of constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple


class SizeScalar(NamedTuple):
    """A float of a program for all sizes, which each call computes once: a scalar argument of kernels.

    Attributes:
        operation: the sum, difference, product, quotient or negation of scalars of the same dtype, as a
            function of NumPy; None for a size or a number.
        dtype: float32 or float64.
        operands: the operands; without an operation a size, which may be symbolic, or a number, a float.
    """

    operation: np.ufunc | None
    dtype: DType
    operands: tuple[Any, ...]

    def __repr__(self) -> str:
        if self.operation is None:
            return f"{self.dtype.name}({self.operands[0]!r})"
        return f"{self.operation.__name__}({', '.join(map(repr, self.operands))})"


def evaluate_scalar(scalar: SizeScalar) -> np.generic:
    """The value of ``scalar``, whose sizes are numbers.

    >>> from dualflow.core.dtypes import float32
    >>> n, one = SizeScalar(None, float32, (3,)), SizeScalar(None, float32, (1.0,))
    >>> evaluate_scalar(SizeScalar(np.divide, float32, (one, n)))
    np.float32(0.33333334)
    """
    if scalar.operation is None:
        number: np.generic = scalar.dtype.dtype.type(scalar.operands[0])
        return number
    with np.errstate(all="ignore"):
        result: np.generic = scalar.operation(*map(evaluate_scalar, scalar.operands))
    return result
