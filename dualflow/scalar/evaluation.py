"""Running a scalar function over values of any kind: NumPy arrays, or values that write code."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from dualflow.scalar.ir import ScalarFunction, ScalarOp

V = TypeVar("V")
_OPERATORS: Final[dict[ScalarOp, Callable[..., Any]]] = {
    ScalarOp.ADD: operator.add,
    ScalarOp.SUBTRACT: operator.sub,
    ScalarOp.MULTIPLY: operator.mul,
    ScalarOp.DIVIDE: operator.truediv,
    ScalarOp.NEGATE: operator.neg,
    ScalarOp.AND: operator.and_,
    ScalarOp.OR: operator.or_,
    ScalarOp.XOR: operator.xor,
    ScalarOp.NOT: operator.invert,
    ScalarOp.SHIFT_LEFT: operator.lshift,
    ScalarOp.SHIFT_RIGHT: operator.rshift,
    ScalarOp.LESS: operator.lt,
    ScalarOp.LESS_EQUAL: operator.le,
    ScalarOp.GREATER: operator.gt,
    ScalarOp.GREATER_EQUAL: operator.ge,
}
_CONSTANT, _CAST, _INDEX, _CHECK = ScalarOp.CONSTANT, ScalarOp.CAST, ScalarOp.INDEX, ScalarOp.CHECK
_BITCAST = ScalarOp.BITCAST


def evaluate(function: ScalarFunction, m: Any, operands: Sequence[V]) -> list[V]:
    """The results of ``function`` for ``operands``.

    Args:
        function: the function.
        m: a namespace with a method for each op that Python has no operator for, by the op's value:
            ``m.exp(x)``, ``m.where(condition, x, y)``; and ``m.constant(number, dtype)``,
            ``m.cast(x, dtype)``, ``m.bitcast(x, dtype)``, ``m.index(axis)``, ``m.check(ok, message)``.
        operands: a value for each input, of its dtype.

    >>> import numpy as np
    >>> from dualflow.core.dtypes import float64
    >>> from dualflow.ops import maths_reference
    >>> from dualflow.scalar import trace
    >>> evaluate(trace(lambda m, x, y: m.maximum(x, y) / 2, (float64, float64)), maths_reference, [3.0, 5.0])
    [np.float64(2.5)]
    """
    values: list[Any] = [*operands]
    for op, dtype, numbers, attribute in function.instructions:
        compute = _OPERATORS.get(op)
        if compute is not None:
            value = compute(*[values[n] for n in numbers])
        elif op is _CONSTANT:
            value = m.constant(attribute, dtype)
        elif op is _CAST or op is _BITCAST:
            value = getattr(m, op.value)(values[numbers[0]], dtype)
        elif op is _INDEX:
            value = m.index(attribute)
        elif op is _CHECK:
            value = m.check(values[numbers[0]], attribute)
        else:
            value = getattr(m, op.value)(*[values[n] for n in numbers])
        values.append(value)
    return [values[n] for n in function.results]
