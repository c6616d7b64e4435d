"""Evaluation of scalar functions over values of any kind: NumPy arrays, or values that emit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from dualflow.scalar.ir import ScalarFunction, ScalarOp

V = TypeVar("V")
_TO_DTYPE: Final = frozenset({ScalarOp.CAST, ScalarOp.BITCAST})


def evaluate(function: ScalarFunction, m: Any, operands: Sequence[V]) -> list[V]:
    """The results of ``function`` for ``operands``.

    Args:
        function: the scalar function.
        m: a namespace with a method for each op, by the op's value: ``m.add(x, y)``, ``m.exp(x)``,
            ``m.where(condition, x, y)``, ``m.cast(x, dtype)``, ``m.bitcast(x, dtype)``,
            ``m.constant(number, dtype)``, ``m.index(axis)``, ``m.check(ok, message)``.
        operands: a value for each input, of its dtype.

    >>> from dualflow.core.dtypes import float64
    >>> from dualflow.ops import maths_reference
    >>> from dualflow.scalar import trace
    >>> evaluate(trace(lambda m, x, y: m.maximum(x, y) / 2, (float64, float64)), maths_reference, [3.0, 5.0])
    [np.float64(2.5)]
    """
    values: list[Any] = [*operands]
    for op, dtype, numbers, attribute in function.instructions:
        method = getattr(m, op._value_)
        arguments = [values[number] for number in numbers]
        if op is ScalarOp.CONSTANT:
            values.append(method(attribute, dtype))
        elif op in _TO_DTYPE:
            values.append(method(*arguments, dtype))
        elif attribute is not None:
            values.append(method(*arguments, attribute))
        else:
            values.append(method(*arguments))
    return [values[number] for number in function.results]
