"""Floats that Python code computes from sizes that its trace leaves open: ``1.0 / x.shape[0]``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.abstract_size import AbstractSize, AbstractSizeScope
from dualflow.core.dtypes import DType, float32, float64
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.ops.arithmetic import add, divide, multiply, subtract
from dualflow.ops.conversion import cast
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.graph.ir import Value

ARITHMETIC: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    operator.add: add,
    operator.sub: subtract,
    operator.mul: multiply,
    operator.truediv: divide,
}
"""The op on float64 scalars that rounds as the operator of Python's floats does."""


class GuardedFloat(SymbolicTensor, AbstractSize):
    """A float computed from sizes: a float to Python, whose use fixes these sizes, and a scalar to ops.

    Args:
        function: the operator, a key of :data:`ARITHMETIC`.
        operands: numbers, guarded sizes and guarded floats.
        scope: the sizes of the trace.
    """

    __slots__ = ("_function", "_operands", "_recorded", "_scope")

    def __init__(
        self, function: Callable[..., Any], operands: tuple[Any, Any], scope: AbstractSizeScope
    ) -> None:
        self._function = function
        self._operands = operands
        self._scope = scope
        self._recorded: Any = None

    @property  # type: ignore[misc]  # isinstance(x, float) is True, as for other floats
    def __class__(self) -> type:
        return float

    @property
    def _value(self) -> Value:  # type: ignore[override]  # the scalar is recorded when an op needs it
        value: Value = self.as_tensor()._value
        return value

    @property
    def _tracer(self) -> Any:  # type: ignore[override]  # as _value
        return self._scope.tracer

    def as_tensor(self) -> Any:
        """The float as a scalar of float32, the default dtype of Python's floats."""
        return self.with_dtype(float32)

    def with_dtype(self, dtype: DType) -> Any:
        """The float as a scalar of ``dtype``, rounded from float64 once."""
        if self._recorded is None:
            operands = [x.with_dtype(float64) if isinstance(x, AbstractSize) else x for x in self._operands]
            with self._scope.recording():
                self._recorded = ARITHMETIC[self._function](*operands)
        return self._recorded if dtype is float64 else cast(self._recorded, dtype)

    # as a float

    def __float__(self) -> float:  # type: ignore[override]  # the base refuses
        return float(self._function(*[float(x) for x in self._operands]))

    def __int__(self) -> int:  # type: ignore[override]
        return int(float(self))

    __trunc__ = __int__

    def __complex__(self) -> complex:  # type: ignore[override]
        return complex(float(self))

    def __bool__(self) -> bool:  # type: ignore[override]
        return bool(float(self))

    def __hash__(self) -> int:  # type: ignore[override]  # tensors have none
        return hash(float(self))

    def __str__(self) -> str:
        return str(float(self))

    def __repr__(self) -> str:
        return repr(float(self))

    def __format__(self, spec: str) -> str:
        return format(float(self), spec)

    def __round__(self, ndigits: int | None = None) -> float:
        return round(float(self), ndigits)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(float(self), dtype)

    def __getattr__(self, name: str) -> Any:
        """An attribute of floats, such as ``is_integer``."""
        return getattr(float(self), name)

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)

    def __neg__(self) -> Any:
        return GuardedFloat(operator.mul, (self, -1.0), self._scope)

    def __abs__(self) -> Any:
        return abs(float(self))


def _method(function: Callable[..., Any], name: str, *, swap: bool) -> Callable[[Any, Any], Any]:
    """The method ``name`` of guarded floats, which applies ``function``."""
    on_tensors = getattr(Tensor, name)

    def method(self: GuardedFloat, other: Any) -> Any:
        if hasattr(other, "dtype") and not isinstance(other, AbstractSize):
            return on_tensors(self, other)
        if function in ARITHMETIC and isinstance(other, int | float):
            pair: tuple[Any, Any] = (other, self) if swap else (self, other)
            if type(other) is bool or (function is operator.truediv and (swap or not other)):
                return function(float(pair[0]), float(pair[1]))
            return GuardedFloat(function, pair, self._scope)
        return function(other, float(self)) if swap else function(float(self), other)

    return method


for _function in (*ARITHMETIC, operator.floordiv, operator.mod, operator.pow):
    for _name, _swap in ((f"__{_function.__name__}__", False), (f"__r{_function.__name__}__", True)):
        setattr(GuardedFloat, _name, _method(_function, _name, swap=_swap))
for _function in (operator.lt, operator.gt, operator.le, operator.ge, operator.eq, operator.ne):
    _name = f"__{_function.__name__}__"
    setattr(GuardedFloat, _name, _method(_function, _name, swap=False))
