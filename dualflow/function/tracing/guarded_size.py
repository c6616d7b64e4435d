"""Dynamic sizes of a trace, as numbers of the Python code that is traced.

``x.shape[0]`` in such a trace is a :class:`GuardedSize`: an int to Python, with the value of the call that is
traced, and an integer scalar to ops, with the value of the call that runs. Sums, products and the like of
sizes are such sizes again. A comparison, and a use that needs an int (``range``, ``int``, an index), records
a guard: the trace serves the calls for whose sizes the outcome is the same. PyTorch's ``SymInt`` is similar.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from numbers import Number
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.shape import UNKNOWN_RANK, Dim, Shape
from dualflow.function.tracing.guarded_float import ARITHMETIC, GuardedFloat
from dualflow.function.tracing.guarded_number import GuardedNumber, is_array
from dualflow.ops.conversion import cast
from dualflow.ops.tensor import Tensor
from dualflow.sizes.abstract_size import AbstractSizeScope
from dualflow.sizes.symbolic_sizes import SymInt

_LARGEST_POWER: Final = 4
_STRICT: Final = (operator.lt, operator.gt)
_LESS_FIRST: Final = (operator.lt, operator.ge)
"""The relations that are ``x < y`` or its negation; the others are ``y < x`` or its negation."""


class GuardedSize(GuardedNumber):
    """A dynamic size of a tensor in a trace; see the module.

    Args:
        size: the size, as an expression in the sizes of the trace's arguments.
        scope: the sizes of the trace.
    """

    __slots__ = ("_size",)

    def __init__(self, size: SymInt, scope: AbstractSizeScope) -> None:
        super().__init__(scope)
        self._size = size

    @property  # type: ignore[misc]  # isinstance(n, int) is True, as for other sizes
    def __class__(self) -> type:
        return int

    @property
    def number(self) -> int:
        """The size as an int; adds a guard, so that the trace serves only calls of this size."""
        return self._scope.exact(self._size)

    def fix(self) -> None:
        self._scope.exact(self._size, of_op=True)

    def recorded(self, dtype: DType | None) -> Any:
        """The size as a scalar of the trace; of int32 by default, or of int64 if it is larger."""
        tensor = self._scope.tensor(self._size)
        return tensor if dtype is None or tensor.dtype is dtype else cast(tensor, dtype)

    def __index__(self) -> int:  # type: ignore[override]  # the base refuses
        return self.number

    __floor__ = __ceil__ = __index__

    def __bool__(self) -> bool:  # type: ignore[override]
        return not self._scope.equal(self._size, 0)

    # comparisons

    __hash__ = GuardedNumber.__hash__

    def __eq__(self, other: object) -> Any:
        size = self._size_of(other)
        if size is not None:
            return self._scope.equal(self._size, size)
        return Tensor.__eq__(self, other) if is_array(other) else self._exactly_equal(other)

    def __ne__(self, other: object) -> Any:
        size = self._size_of(other)
        if size is not None:
            return not self._scope.equal(self._size, size)
        return Tensor.__ne__(self, other) if is_array(other) else not self._exactly_equal(other)

    def _exactly_equal(self, other: Any) -> bool:
        return isinstance(other, Number) and bool(operator.eq(self.number, other))

    def __lt__(self, other: Any) -> Any:
        return self._compared(operator.lt, other, Tensor.__lt__)

    def __gt__(self, other: Any) -> Any:
        return self._compared(operator.gt, other, Tensor.__gt__)

    def __le__(self, other: Any) -> Any:
        return self._compared(operator.le, other, Tensor.__le__)

    def __ge__(self, other: Any) -> Any:
        return self._compared(operator.ge, other, Tensor.__ge__)

    def _compared(self, relation: Callable[[Any, Any], Any], other: Any, method: Callable[..., Any]) -> Any:
        """This size compared with ``other`` by ``relation``; with a tensor or an array by ``method``."""
        size = self._size_of(other)
        if size is None:
            return method(self, other) if is_array(other) else _exactly(relation, self, other)
        x, y = (self._size, size) if relation in _LESS_FIRST else (size, self._size)
        return self._scope.less(x, y) if relation in _STRICT else not self._scope.less(x, y)

    # arithmetic

    def __neg__(self) -> Any:
        return guarded(-self._size, self._scope)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and 0 < other <= _LARGEST_POWER:
            power: Any = self
            for _ in range(other - 1):
                power = power * self
            return power
        return Tensor.__pow__(self, other) if is_array(other) else _exactly(operator.pow, self, other)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def _size_of(self, other: object) -> int | None:
        """``other`` as a size that is compared or combined with this one; None if it is none."""
        if type(other) is int:
            return other
        if isinstance(other, np.integer):
            return int(other)
        if type(other) is GuardedSize:
            return other._size if other._scope is self._scope else other.number
        return None

    def _combined(self, function: Callable[[int, int], int], other: object, method: Any, swap: bool) -> Any:
        """``function`` of this size and ``other``; with ``swap`` ``other`` is its first operand."""
        size = self._size_of(other)
        if size is not None:
            operands = (size, self._size) if swap else (self._size, size)
            if function in _DIVISIONS and self._scope.equal(operands[1], 0):
                function(int(other) if swap else self.number, 0)  # type: ignore[call-overload]  # raises
            return guarded(function(*operands), self._scope)
        if is_array(other):
            return method(self, other)
        if type(other) is GuardedFloat:
            return NotImplemented
        if type(other) is float and function in ARITHMETIC:
            return GuardedFloat(function, (other, self) if swap else (self, other), self._scope)
        return _exactly(function, other, self) if swap else _exactly(function, self, other)

    def __truediv__(self, other: Any) -> Any:
        size = self._size_of(other)
        if size is not None or type(other) is float:
            if self._scope.equal(size, 0) if size is not None else not other:
                return self.number / other  # raises
            return GuardedFloat(operator.truediv, (self, other), self._scope)
        if type(other) is GuardedFloat:
            return NotImplemented
        return Tensor.__truediv__(self, other) if is_array(other) else self.number / other

    def __rtruediv__(self, other: Any) -> Any:
        size = self._size_of(other)
        if size is not None or type(other) is float:
            if self._scope.equal(self._size, 0):
                return other / self.number  # raises
            return GuardedFloat(operator.truediv, (other, self), self._scope)
        return Tensor.__rtruediv__(self, other) if is_array(other) else other / self.number


def _operator(function: Callable[[Any, Any], Any], name: str, *, swap: bool) -> Callable[[Any, Any], Any]:
    """The method ``name``, which applies ``function`` to a size and another value."""
    method = getattr(Tensor, name)

    def combined(self: GuardedSize, other: Any) -> Any:
        return self._combined(function, other, method, swap)

    return combined


def _exact_operator(
    function: Callable[[Any, Any], Any], name: str, *, swap: bool
) -> Callable[[Any, Any], Any]:
    """The method ``name`` of ints, which has no expression: a guard fixes the size."""
    method = getattr(Tensor, name, None)

    def exact(self: GuardedSize, other: Any) -> Any:
        if method is not None and is_array(other):
            return method(self, other)
        return _exactly(function, other, self) if swap else _exactly(function, self, other)

    return exact


_DIVISIONS: Final = (operator.floordiv, operator.mod)
for _function in (operator.add, operator.sub, operator.mul, *_DIVISIONS):
    for _name, _swap in ((f"__{_function.__name__}__", False), (f"__r{_function.__name__}__", True)):
        setattr(GuardedSize, _name, _operator(_function, _name, swap=_swap))
for _name, _function, _swap in (
    ("__rpow__", operator.pow, True),
    ("__lshift__", operator.lshift, False),
    ("__rlshift__", operator.lshift, True),
    ("__rshift__", operator.rshift, False),
    ("__rrshift__", operator.rshift, True),
    ("__and__", operator.and_, False),
    ("__rand__", operator.and_, True),
    ("__or__", operator.or_, False),
    ("__ror__", operator.or_, True),
    ("__xor__", operator.xor, False),
    ("__rxor__", operator.xor, True),
):
    setattr(GuardedSize, _name, _exact_operator(_function, _name, swap=_swap))


class GuardedShape(Shape):
    """The shape of a tensor whose dynamic sizes are of :class:`GuardedSize`."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        item = tuple.__getitem__(self, key)
        return GuardedShape(item) if isinstance(key, slice) else item

    def __eq__(self, other: object) -> bool:
        return other is not UNKNOWN_RANK and super().__eq__(other)

    __hash__ = Shape.__hash__

    def __add__(self, other: Iterable[Dim]) -> GuardedShape:  # type: ignore[override]  # lists join too, as in TensorFlow
        return GuardedShape((*self, *other))

    def __radd__(self, other: Iterable[Dim]) -> GuardedShape:
        return GuardedShape((*other, *self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Shape, (tuple([None if d is None else int(d) for d in self]),)


def guarded(size: int, scope: AbstractSizeScope) -> Any:
    """``size`` for Python code: an int, or a guarded size if it is an expression."""
    return GuardedSize(size, scope) if isinstance(size, SymInt) else size


def _exactly(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """``function`` of two values, of which guarded sizes are fixed to their numbers."""
    x, y = (v.number if type(v) is GuardedSize else v for v in (x, y))
    return function(x, y)
