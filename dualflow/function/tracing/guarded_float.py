"""Python floats computed from dynamic sizes of a trace: ``1.0 / x.shape[0]``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, float32, float64
from dualflow.function.tracing.guarded_number import GuardedNumber, is_array
from dualflow.ops.arithmetic import add, divide, multiply, subtract
from dualflow.ops.conversion import cast
from dualflow.ops.tensor import Tensor
from dualflow.sizes.abstract_size import AbstractSize, AbstractSizeScope

ARITHMETIC: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    operator.add: add,
    operator.sub: subtract,
    operator.mul: multiply,
    operator.truediv: divide,
}
"""The op on float64 scalars that rounds as the operator of Python's floats does."""


class GuardedFloat(GuardedNumber):
    """A float computed from dynamic sizes: reading it as a Python float adds guards; ops record a scalar.

    Args:
        function: the operator, a key of :data:`ARITHMETIC`.
        operands: numbers, guarded sizes and guarded floats.
        scope: the sizes of the trace.
    """

    __slots__ = ("_function", "_operands", "_recorded")

    def __init__(
        self, function: Callable[..., Any], operands: tuple[Any, Any], scope: AbstractSizeScope
    ) -> None:
        super().__init__(scope)
        self._function = function
        self._operands = operands
        self._recorded: Any = None

    @property  # type: ignore[misc]  # isinstance(x, float) is True, as for other floats
    def __class__(self) -> type:
        return float

    @property
    def number(self) -> float:
        """The float's value in the traced call; the trace then serves only calls of its sizes."""
        return float(self._function(*[float(x) for x in self._operands]))

    def recorded(self, dtype: DType | None) -> Any:
        """The float as a scalar of the trace, rounded from float64 once; of float32 by default."""
        if self._recorded is None:
            operands = [x.with_dtype(float64) if isinstance(x, AbstractSize) else x for x in self._operands]
            with self._scope.recording():
                self._recorded = ARITHMETIC[self._function](*operands)
        return self._recorded if dtype is float64 else cast(self._recorded, dtype or float32)

    def __bool__(self) -> bool:  # type: ignore[override]
        return bool(self.number)

    def __neg__(self) -> Any:
        return GuardedFloat(operator.mul, (self, -1.0), self._scope)

    def __abs__(self) -> Any:
        return abs(self.number)


def _method(function: Callable[..., Any], name: str, *, swap: bool) -> Callable[[Any, Any], Any]:
    """The method ``name`` of guarded floats, which applies ``function``."""
    on_tensors = getattr(Tensor, name)

    def method(self: GuardedFloat, other: Any) -> Any:
        if is_array(other):
            return on_tensors(self, other)
        if function in ARITHMETIC and isinstance(other, int | float) and not isinstance(other, np.generic):
            pair: tuple[Any, Any] = (other, self) if swap else (self, other)
            if type(other) is bool or (function is operator.truediv and (swap or not other)):
                return function(float(pair[0]), float(pair[1]))
            return GuardedFloat(function, pair, self._scope)
        return function(other, self.number) if swap else function(self.number, other)

    return method


for _function in (*ARITHMETIC, operator.floordiv, operator.mod, operator.pow):
    for _name, _swap in ((f"__{_function.__name__}__", False), (f"__r{_function.__name__}__", True)):
        setattr(GuardedFloat, _name, _method(_function, _name, swap=_swap))
for _function in (operator.lt, operator.gt, operator.le, operator.ge, operator.eq, operator.ne):
    _name = f"__{_function.__name__}__"
    setattr(GuardedFloat, _name, _method(_function, _name, swap=False))
