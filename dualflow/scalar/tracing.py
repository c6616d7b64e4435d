"""Traces a Python function of scalars into a scalar function, by calling it once with traced scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, bool_, complex64, complex128, float32, int64
from dualflow.core.errors import DTypeError
from dualflow.scalar.defined_ops import DefinedOps
from dualflow.scalar.ir import Instruction, ScalarFunction, ScalarOp, instruction_key, pruned

Number = bool | int | float | complex | np.generic
_NO_ATTRS: Final[Mapping[str, Any]] = MappingProxyType({})


class NotTraceable(DTypeError):
    """A function of scalars computes something for which the scalar IR has no instruction."""


class Traced:
    """A traced scalar: Python's operators on it record instructions.

    The other operand is a scalar of the same dtype, or a Python number, which becomes a constant of this
    dtype.
    """

    __slots__ = ("dtype", "m", "number")
    __array_ufunc__ = None  # a NumPy scalar on the left leaves the operation to this class

    def __init__(self, m: ScalarTracer, number: int, dtype: DType) -> None:
        self.m, self.number, self.dtype = m, number, dtype

    def __repr__(self) -> str:
        return f"v{self.number}: {self.dtype.name}"

    def __bool__(self) -> bool:
        raise NotTraceable(f"{self!r} has no truth value while a function is traced; use m.where.")

    def __add__(self, other: Traced | Number) -> Traced:
        return self.m.same(ScalarOp.ADD, self, other)

    def __radd__(self, other: Number) -> Traced:
        return self.m.same(ScalarOp.ADD, other, self)

    def __sub__(self, other: Traced | Number) -> Traced:
        return self.m.same(ScalarOp.SUBTRACT, self, other)

    def __rsub__(self, other: Number) -> Traced:
        return self.m.same(ScalarOp.SUBTRACT, other, self)

    def __mul__(self, other: Traced | Number) -> Traced:
        return self.m.same(ScalarOp.MULTIPLY, self, other)

    def __rmul__(self, other: Number) -> Traced:
        return self.m.same(ScalarOp.MULTIPLY, other, self)

    def __truediv__(self, other: Traced | Number) -> Traced:
        return self.m.same(ScalarOp.DIVIDE, self, other)

    def __rtruediv__(self, other: Number) -> Traced:
        return self.m.same(ScalarOp.DIVIDE, other, self)

    def __and__(self, other: Traced | Number) -> Traced:
        return self.m.same(ScalarOp.AND, self, other)

    def __or__(self, other: Traced | Number) -> Traced:
        return self.m.same(ScalarOp.OR, self, other)

    def __xor__(self, other: Traced | Number) -> Traced:
        return self.m.same(ScalarOp.XOR, self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Traced | Number) -> Traced:
        return self.m.same(ScalarOp.SHIFT_LEFT, self, other)

    def __rshift__(self, other: Traced | Number) -> Traced:
        return self.m.same(ScalarOp.SHIFT_RIGHT, self, other)

    def __lt__(self, other: Traced | Number) -> Traced:
        return self.m.comparison(ScalarOp.LESS, self, other)

    def __le__(self, other: Traced | Number) -> Traced:
        return self.m.comparison(ScalarOp.LESS_EQUAL, self, other)

    def __gt__(self, other: Traced | Number) -> Traced:
        return self.m.comparison(ScalarOp.GREATER, self, other)

    def __ge__(self, other: Traced | Number) -> Traced:
        return self.m.comparison(ScalarOp.GREATER_EQUAL, self, other)

    def __neg__(self) -> Traced:
        return self.m.same(ScalarOp.NEGATE, self)

    def __invert__(self) -> Traced:
        return self.m.same(ScalarOp.NOT, self)

    def __abs__(self) -> Traced:
        return self.m.same(ScalarOp.ABS, self)

    @property
    def bits(self) -> int:
        """The size of the dtype, in bits."""
        return 8 * self.dtype.size

    def eq(self, other: Traced | Number) -> Traced:
        """Equal; false where a float is NaN."""
        return self.m.comparison(ScalarOp.EQUAL, self, other)

    def ne(self, other: Traced | Number) -> Traced:
        """Not equal; true where a float is NaN."""
        return self.m.comparison(ScalarOp.NOT_EQUAL, self, other)

    def select(self, yes: Traced | Number, no: Traced | Number) -> Traced:
        """``yes`` where this condition holds, ``no`` elsewhere."""
        return self.m.where(self, yes, no)

    def fma(self, factor: Traced | Number, term: Traced | Number) -> Traced:
        """``self * factor + term``, rounded once."""
        return self.m.same(ScalarOp.FMA, self, factor, term)

    def cast(self, dtype: DType) -> Traced:
        """The same number in another dtype."""
        return self.m.cast(self, dtype)

    def bitcast(self, dtype: DType) -> Traced:
        """The same bits as a number of another dtype of the same size."""
        return self.m.bitcast(self, dtype)


def _unary(op: ScalarOp) -> Callable[[ScalarTracer, Any], Traced]:
    def method(self: ScalarTracer, x: Traced) -> Traced:
        return self.same(op, x)

    return method


def _binary(op: ScalarOp) -> Callable[[ScalarTracer, Any, Any], Traced]:
    def method(self: ScalarTracer, x: Traced | Number, y: Traced | Number) -> Traced:
        return self.same(op, x, y)

    return method


def _ternary(op: ScalarOp) -> Callable[[ScalarTracer, Any, Any, Any], Traced]:
    def method(self: ScalarTracer, x: Traced | Number, y: Traced | Number, z: Traced | Number) -> Traced:
        return self.same(op, x, y, z)

    return method


def _predicate(op: ScalarOp) -> Callable[[ScalarTracer, Any], Traced]:
    def method(self: ScalarTracer, x: Traced) -> Traced:
        return self.comparison(op, x)

    return method


def _comparison(op: ScalarOp) -> Callable[[ScalarTracer, Any, Any], Traced]:
    def method(self: ScalarTracer, x: Traced | Number, y: Traced | Number) -> Traced:
        return self.comparison(op, x, y)

    return method


class ScalarTracer(DefinedOps):
    """Traces a scalar function: a namespace of scalar ops whose methods record deduplicated instructions."""

    def __init__(self, inputs: Sequence[DType]) -> None:
        self.inputs = tuple(inputs)
        self.instructions: list[Instruction] = []
        self._numbers: dict[tuple[Any, ...], int] = {}

    def arguments(self) -> list[Traced]:
        """The inputs as traced scalars."""
        return [Traced(self, i, dtype) for i, dtype in enumerate(self.inputs)]

    def record(
        self, op: ScalarOp, dtype: DType, operands: tuple[int, ...] = (), attribute: Any = None
    ) -> Traced:
        """The result of an instruction, which is added unless an equal one exists."""
        instruction = Instruction(op, dtype, operands, attribute)
        key = instruction_key(instruction)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.inputs) + len(self.instructions)
            self.instructions.append(instruction)
        return Traced(self, number, dtype)

    def constant(self, number: Number, dtype: DType) -> Traced:
        """A constant of a dtype."""
        plain = number.item() if isinstance(number, np.generic) else number
        if dtype.is_floating and isinstance(plain, bool | int):
            plain = float(plain)
        return self.record(ScalarOp.CONSTANT, dtype, (), plain)

    def same(self, op: ScalarOp, *operands: Traced | Number) -> Traced:
        """Record an op whose operands and result have one dtype."""
        values = self._values(op, operands)
        return self.record(op, values[0].dtype, tuple([x.number for x in values]))

    defined = same

    def comparison(self, op: ScalarOp, *operands: Traced | Number) -> Traced:
        """Record an op whose operands have one dtype, and whose result is a bool."""
        return self.record(op, bool_, tuple([x.number for x in self._values(op, operands)]))

    def _values(self, op: ScalarOp, operands: Sequence[Traced | Number]) -> list[Traced]:
        dtypes = {x.dtype for x in operands if isinstance(x, Traced)}
        if len(dtypes) != 1:
            names = ", ".join(sorted(d.name for d in dtypes)) or "numbers alone"
            raise NotTraceable(
                f"{op.value} takes scalars of one dtype, not {names}; convert them with m.cast."
            )
        (dtype,) = dtypes
        return [x if isinstance(x, Traced) else self.constant(x, dtype) for x in operands]

    # Ops whose dtypes differ, or that have an attribute

    def dtype(self, x: Traced) -> DType:
        """The dtype of a scalar."""
        return x.dtype

    def cast(self, x: Traced | Number, dtype: DType) -> Traced:
        """The same number in another dtype."""
        if not isinstance(x, Traced):
            return self.constant(x, dtype)
        return x if x.dtype is dtype else self.record(ScalarOp.CAST, dtype, (x.number,))

    def bitcast(self, x: Traced, dtype: DType) -> Traced:
        """The same bits as a number of another dtype of the same size."""
        if x.dtype.size != dtype.size:
            raise NotTraceable(f"bitcast takes a dtype of the size of {x.dtype.name}, not {dtype.name}.")
        return x if x.dtype is dtype else self.record(ScalarOp.BITCAST, dtype, (x.number,))

    def where(self, condition: Traced, x: Traced | Number, y: Traced | Number) -> Traced:
        """``x`` where the condition holds, ``y`` elsewhere."""
        test = self.cast(condition, bool_)
        first, second = self._values(ScalarOp.SELECT, (x, y))
        return self.record(ScalarOp.SELECT, first.dtype, (test.number, first.number, second.number))

    def index(self, axis: int) -> Traced:
        """The element's position along an axis of the output, an int64."""
        return self.record(ScalarOp.INDEX, int64, (), axis)

    def check(self, ok: Traced, message: str) -> None:
        """Stop the program with ``message`` unless ``ok`` holds."""
        self.record(ScalarOp.CHECK, bool_, (ok.number,), message)

    def real(self, x: Traced) -> Traced:
        """The real part."""
        return self.record(ScalarOp.REAL, x.dtype.real, (x.number,))

    def imag(self, x: Traced) -> Traced:
        """The imaginary part."""
        return self.record(ScalarOp.IMAG, x.dtype.real, (x.number,))

    # Ops of operands of one dtype

    equal, not_equal = _comparison(ScalarOp.EQUAL), _comparison(ScalarOp.NOT_EQUAL)
    isnan, isinf, isfinite = map(_predicate, (ScalarOp.ISNAN, ScalarOp.ISINF, ScalarOp.ISFINITE))
    fma, multiply_add = _ternary(ScalarOp.FMA), _ternary(ScalarOp.MULTIPLY_ADD)
    add, subtract = _binary(ScalarOp.ADD), _binary(ScalarOp.SUBTRACT)
    multiply, divide = _binary(ScalarOp.MULTIPLY), _binary(ScalarOp.DIVIDE)
    bitwise_and, bitwise_or = _binary(ScalarOp.AND), _binary(ScalarOp.OR)
    bitwise_xor, invert, negative = _binary(ScalarOp.XOR), _unary(ScalarOp.NOT), _unary(ScalarOp.NEGATE)
    left_shift, right_shift = _binary(ScalarOp.SHIFT_LEFT), _binary(ScalarOp.SHIFT_RIGHT)
    less, less_equal = _comparison(ScalarOp.LESS), _comparison(ScalarOp.LESS_EQUAL)
    greater, greater_equal = _comparison(ScalarOp.GREATER), _comparison(ScalarOp.GREATER_EQUAL)
    quotient, remainder = _binary(ScalarOp.QUOTIENT), _binary(ScalarOp.REMAINDER)
    copysign, maximum, minimum = map(_binary, (ScalarOp.COPYSIGN, ScalarOp.MAXIMUM, ScalarOp.MINIMUM))
    abs, sign, sqrt = map(_unary, (ScalarOp.ABS, ScalarOp.SIGN, ScalarOp.SQRT))
    floor, ceil = map(_unary, (ScalarOp.FLOOR, ScalarOp.CEIL))
    trunc, round = map(_unary, (ScalarOp.TRUNC, ScalarOp.ROUND))

    def complex(self, re: Traced | Number, im: Traced | Number) -> Traced:
        """The complex number of two parts."""
        first, second = self._values(ScalarOp.COMPLEX, (re, im))
        dtype = complex64 if first.dtype is float32 else complex128
        return self.record(ScalarOp.COMPLEX, dtype, (first.number, second.number))


def trace(
    code: Callable[..., Any],
    inputs: Sequence[DType],
    results: Sequence[DType] | None = None,
    attrs: Mapping[str, Any] = _NO_ATTRS,
) -> ScalarFunction:
    """The scalar function that ``code`` computes.

    Args:
        code: ``code(m, *scalars, **attrs)`` returns a scalar or a tuple of scalars, computed by Python's
            operators and the functions of the namespace ``m``, which :class:`ScalarTracer` lists.
        inputs: the dtype of each scalar.
        results: the dtypes that the results are cast to. None leaves them as they are.
        attrs: further arguments of ``code``, which are constant in the function.

    Raises:
        NotTraceable: ``code`` computes something that has no instruction, or mixes dtypes.
    """
    m = ScalarTracer(inputs)
    returned = code(m, *m.arguments(), **attrs)
    values = returned if isinstance(returned, tuple) else (returned,)
    if results is not None:
        values = tuple([m.cast(x, dtype) for x, dtype in zip(values, results, strict=True)])
    for value in values:
        if not isinstance(value, Traced):
            raise NotTraceable(f"{value!r} is no scalar of a dtype; give the dtypes of the results.")
    return pruned(m.inputs, m.instructions, [value.number for value in values])
