"""``Instructions``: the scalar ops over emitted values that are one or a few instructions."""

from __future__ import annotations

import operator
from typing import Final

from dualflow.backends.llvm.text import BOOL, Builder, EmittedValue, Type
from dualflow.core.dtypes import DType
from dualflow.core.errors import DTypeError

Operand = EmittedValue | float
_INFINITY: Final = float("inf")


class Instructions:
    """Scalar ops over values of any number of lanes, appended to the emitter of their operands.

    Numbers among the operands become constants; ``builder`` emits constants without an operand.
    """

    def __init__(self, builder: Builder | None = None) -> None:
        self._builder = builder

    # Operators

    add, subtract = staticmethod(operator.add), staticmethod(operator.sub)
    multiply, divide = staticmethod(operator.mul), staticmethod(operator.truediv)
    negative, invert = staticmethod(operator.neg), staticmethod(operator.invert)
    bitwise_and, bitwise_or = staticmethod(operator.and_), staticmethod(operator.or_)
    bitwise_xor = staticmethod(operator.xor)
    left_shift, right_shift = staticmethod(operator.lshift), staticmethod(operator.rshift)
    less, less_equal = staticmethod(operator.lt), staticmethod(operator.le)
    greater, greater_equal = staticmethod(operator.gt), staticmethod(operator.ge)
    quotient = staticmethod(EmittedValue.quotient)
    remainder = staticmethod(EmittedValue.remainder)

    def sqrt(self, x: EmittedValue) -> EmittedValue:
        """Correctly rounded square root."""
        number = as_float(x)
        return number.emitter.intrinsic("llvm.sqrt", number)

    # One or a few instructions

    def abs(self, x: EmittedValue) -> EmittedValue:
        """Magnitude; the smallest integer wraps to itself."""
        return abs(x)

    def sign(self, x: EmittedValue) -> EmittedValue:
        """-1, 0 or 1; NaN for NaN."""
        signed = (x > 0).select(1, x.eq(0).select(0, x))
        return signed if x.type.kind == "u" else (x < 0).select(-1, signed)

    def copysign(self, x: Operand, y: Operand) -> EmittedValue:
        """The magnitude of ``x`` with the sign of ``y``."""
        magnitude, sign = values(x, y)
        return magnitude.emitter.intrinsic("llvm.copysign", magnitude, sign)

    def floor(self, x: EmittedValue) -> EmittedValue:
        """The largest integer that isn't above ``x``."""
        return x.emitter.intrinsic("llvm.floor", x) if x.type.kind == "f" else x

    def ceil(self, x: EmittedValue) -> EmittedValue:
        """The smallest integer that isn't below ``x``."""
        return x.emitter.intrinsic("llvm.ceil", x) if x.type.kind == "f" else x

    def trunc(self, x: EmittedValue) -> EmittedValue:
        """``x`` rounded to an integer towards zero."""
        return x.emitter.intrinsic("llvm.trunc", x) if x.type.kind == "f" else x

    def round(self, x: EmittedValue) -> EmittedValue:
        """The nearest integer; ties round to even."""
        return x.emitter.intrinsic("llvm.roundeven", x) if x.type.kind == "f" else x

    def maximum(self, x: Operand, y: Operand) -> EmittedValue:
        """The larger operand; NaN if either is NaN."""
        x, y = values(x, y)
        if x.type.kind == "b":
            return x | y
        larger = (x > y).select(x, y)
        return x.ne(x).select(x, larger) if x.type.kind == "f" else larger

    def minimum(self, x: Operand, y: Operand) -> EmittedValue:
        """The smaller operand; NaN if either is NaN."""
        x, y = values(x, y)
        if x.type.kind == "b":
            return x & y
        smaller = (x < y).select(x, y)
        return x.ne(x).select(x, smaller) if x.type.kind == "f" else smaller

    def fma(self, x: Operand, y: Operand, z: Operand) -> EmittedValue:
        """``x * y + z``, rounded once."""
        x, y, z = values(x, y, z)
        return x.fma(y, z)

    # Complex numbers: elements as memory holds them, and their parts

    def real(self, x: EmittedValue) -> EmittedValue:
        """The real part."""
        return x.parts()[0]

    def imag(self, x: EmittedValue) -> EmittedValue:
        """The imaginary part."""
        return x.parts()[1]

    def complex(self, re: EmittedValue, im: EmittedValue) -> EmittedValue:
        """The complex number of these parts."""
        re, im = values(re, im)
        return re.interleave(im)

    # Conditionals and comparisons

    def where(self, condition: EmittedValue, x: Operand, y: Operand) -> EmittedValue:
        """``x`` where the condition holds, ``y`` elsewhere."""
        return condition.cast(BOOL.vector(condition.type.lanes)).select(x, y)

    def equal(self, x: Operand, y: Operand) -> EmittedValue:
        """Whether equal; NaN equals nothing."""
        x, y = values(x, y)
        return x.eq(y)

    def not_equal(self, x: Operand, y: Operand) -> EmittedValue:
        """Whether unequal."""
        x, y = values(x, y)
        return x.ne(y)

    def isnan(self, x: EmittedValue) -> EmittedValue:
        """Whether not a number."""
        return x.ne(x)

    def isinf(self, x: EmittedValue) -> EmittedValue:
        """Whether infinite."""
        return abs(x).eq(_INFINITY) if x.type.kind == "f" else x.ne(x)

    def isfinite(self, x: EmittedValue) -> EmittedValue:
        """Whether neither infinite nor NaN."""
        return abs(x) < _INFINITY if x.type.kind == "f" else x.eq(x)

    def cast(self, x: EmittedValue, target: DType) -> EmittedValue:
        """The same number in another dtype, as ``EmittedValue.cast``."""
        return x.cast(Type.of_dtype(target.dtype, x.type.lanes))

    def bitcast(self, x: EmittedValue, target: DType) -> EmittedValue:
        """The same bits as a number of another dtype."""
        return x.bitcast(Type.of_dtype(target.dtype, x.type.lanes))

    def constant(self, number: float, dtype: DType) -> EmittedValue:
        """A number of a dtype."""
        assert self._builder is not None, "constants are emitted by a builder"
        return self._builder.constant(Type.of_dtype(dtype.dtype), number)


def values(*operands: Operand) -> list[EmittedValue]:
    """Operands as values of equal lanes, numbers as constants."""
    emitted = [x for x in operands if isinstance(x, EmittedValue)]
    widest = max(emitted, key=lambda x: x.type.lanes)
    constants = widest.emitter.constant
    return [
        x.splat(widest.type.lanes) if isinstance(x, EmittedValue) else constants(widest.type, x)
        for x in operands
    ]


def as_float(x: EmittedValue) -> EmittedValue:
    """The operand of a float function."""
    if x.type.kind != "f":
        raise DTypeError(f"a function of floats got {x.type}: cast it to a float dtype first")
    return x
