"""Base class of ``GuardedSize`` and ``GuardedFloat``: Python numbers computed from dynamic sizes."""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.dtypes import DType
from dualflow.core.locks import imported
from dualflow.core.numpy_protocols import OVERRIDES, NumPyProtocol
from dualflow.core.shape import SCALAR, Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.sizes.abstract_size import AbstractSize, AbstractSizeScope

if TYPE_CHECKING:
    from dualflow.graph.ir import Value

_INTEGERS: Final = (int, np.integer)
_OPERATORS: Final = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
"""The operator of Python's ints that a NumPy scalar on its left calls as a NumPy function."""


def is_array(x: object) -> bool:
    """Whether an operator of a guarded number with ``x`` is an op on tensors."""
    return hasattr(x, "dtype") and not isinstance(x, AbstractSize | np.generic)


def _universal_function(number: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """A NumPy function of a guarded number: an op if tensors or arrays are among its ``inputs``.

    Otherwise it returns a number, as for a Python number: a tensor of float64 would make results float64.
    """
    if method != "__call__" or any(map(is_array, inputs)):
        overrides = imported(OVERRIDES.value)
        return overrides.universal_function(ufunc, method, inputs, options, sys._getframe(1))
    if not options and ufunc in _OPERATORS and all(isinstance(x, _INTEGERS) for x in inputs):
        return _OPERATORS[ufunc](*[int(x) if isinstance(x, np.integer) else x for x in inputs])
    return ufunc(*[x.number if isinstance(x, GuardedNumber) else x for x in inputs], **options)


class GuardedNumber(SymbolicTensor, AbstractSize):
    """A Python number with the value of the traced call, and for ops a scalar with the value of each call.

    A use that needs the Python number records guards that fix the sizes from which it is computed. Python
    code may keep it after the trace has ended: then ops take the Python number too.

    Args:
        scope: the sizes of the trace.
    """

    __slots__ = ("_scope",)
    __array_ufunc__ = NumPyProtocol(_universal_function)

    def __init__(self, scope: AbstractSizeScope) -> None:
        self._scope = scope

    @property
    def number(self) -> Any:
        """The number in the traced call, which serves only calls with this number."""
        raise NotImplementedError

    def recorded(self, dtype: DType | None) -> Any:
        """The number as a scalar of the trace; of the dtype that it has by default if ``dtype`` is None."""
        raise NotImplementedError

    @property
    def _value(self) -> Value:  # type: ignore[override]  # the scalar is recorded when an op needs it
        value: Value = self.as_tensor()._value
        return value

    @property
    def _tracer(self) -> Any:  # type: ignore[override]  # as _value
        return self._scope.tracer

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # as for all symbolic tensors
        return SCALAR

    @property
    def dtype(self) -> DType:  # type: ignore[override]  # as shape
        dtype: DType = self.as_tensor().dtype
        return dtype

    @property
    def spec(self) -> TensorSpec:  # type: ignore[override]  # as shape
        return TensorSpec.of(SCALAR, self.dtype)

    @property
    def is_constant(self) -> bool:
        """Whether the trace has ended."""
        return self._scope.closed

    def as_tensor(self) -> Any:
        """The number as a scalar of the dtype that it has by default."""
        return self._constant(None) if self.is_constant else self.recorded(None)

    def with_dtype(self, dtype: DType) -> Any:
        """The number as a scalar of ``dtype``."""
        return self._constant(dtype) if self.is_constant else self.recorded(dtype)

    def _constant(self, dtype: DType | None) -> Any:
        return dispatch.current().constant(as_array(self.number, dtype))

    def static_value(self) -> Any:
        """The number as an array once the trace has ended, else None."""
        return as_array(self.number) if self.is_constant else None

    def python_value(self) -> Any:
        return as_array(self.number)

    def __float__(self) -> float:  # type: ignore[override]  # the base refuses
        return float(self.number)

    def __int__(self) -> int:  # type: ignore[override]
        return int(self.number)

    __trunc__ = __int__

    def __complex__(self) -> complex:  # type: ignore[override]
        return complex(self.number)

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.number, ndigits)

    def __hash__(self) -> int:  # type: ignore[override]  # tensors have none
        return hash(self.number)

    def __str__(self) -> str:
        return str(self.number)

    def __repr__(self) -> str:
        return repr(self.number)

    def __format__(self, spec: str) -> str:
        return format(self.number, spec)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.number, dtype)

    def __getattr__(self, name: str) -> Any:
        """An attribute of the number, such as ``bit_length``."""
        return getattr(self.number, name)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self.number), (self.number,)

    def __len__(self) -> int:
        return len(self.number)  # raises the error of the number

    def __iter__(self) -> Any:
        return iter(self.number)  # as __len__
