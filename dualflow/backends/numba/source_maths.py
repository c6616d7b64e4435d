"""The scalar ops as Python source for Numba.

Every number has an explicit dtype, since Numba's own rules would widen: ``int32 + int32`` is int64 there, and
``float32 * 0.5`` is float64. Each result has a name of its own, so that nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dualflow.backends.numba.source_lines import Lines, SourceValue, type_name
from dualflow.backends.numba.support import Support
from dualflow.core.dtypes import DType, bool_, int32, int64, uint8, uint16, uint32, uint64
from dualflow.core.errors import DTypeError
from dualflow.scalar import ScalarOp, evaluate
from dualflow.scalar.maths import definition, has_fallback

_UNSIGNED: Final = {1: uint8, 2: uint16, 4: uint32, 8: uint64}


def _arithmetic(symbol: str) -> Callable[[SourceMaths, SourceValue, SourceValue], SourceValue]:
    def method(self: SourceMaths, x: SourceValue, y: SourceValue) -> SourceValue:
        return self.wrapped(x.dtype, f"{x.text} {symbol} {y.text}")

    return method


def _comparison(symbol: str) -> Callable[[SourceMaths, SourceValue, SourceValue], SourceValue]:
    def method(self: SourceMaths, x: SourceValue, y: SourceValue) -> SourceValue:
        return self.expression(bool_, f"{x.text} {symbol} {y.text}")

    return method


def _reordered(symbol: str, primitive: str) -> Callable[[SourceMaths, SourceValue, SourceValue], SourceValue]:
    """A method for a sum or product that LLVM may reorder between lanes, if they carry the first operand."""

    def method(self: SourceMaths, x: SourceValue, y: SourceValue) -> SourceValue:
        if x.reorderable and x.dtype.is_floating:
            return self.expression(x.dtype, f"{self.support.primitive(primitive)}({x.text}, {y.text})")
        return self.wrapped(x.dtype, f"{x.text} {symbol} {y.text}")

    return method


def _instruction(name: str) -> Callable[..., SourceValue]:
    """A method that applies one machine instruction to floats, and returns integers unchanged."""

    def method(self: SourceMaths, x: SourceValue, *others: SourceValue) -> SourceValue:
        return self.instruction(name, x, *others) if x.dtype.is_floating else x

    return method


def _defined(op: ScalarOp) -> Callable[..., SourceValue]:
    def method(self: SourceMaths, *operands: SourceValue) -> SourceValue:
        return self.defined(op, *operands)

    return method


class SourceMaths:
    """The namespace of scalar ops whose results are lines of source.

    Attributes:
        lines: where the lines are added.
        support: the functions that they call.
        fallback_conditions: if it is a list, ops with a guarded definition omit the fallback, and append the
            condition under which it is needed.
    """

    def __init__(self, lines: Lines, support: Support) -> None:
        self.lines, self.support = lines, support
        self.fallback_conditions: list[SourceValue] | None = None

    # Lines

    def expression(self, dtype: DType, text: str) -> SourceValue:
        """A new value with a name of its own."""
        name = self.lines.name()
        self.lines.add(f"{name} = {text}")
        return SourceValue(name, dtype)

    def wrapped(self, dtype: DType, text: str) -> SourceValue:
        """The result of arithmetic, which Numba widens where integers are narrow."""
        narrow = dtype.is_integer and dtype.size < 8
        return self.expression(dtype, f"{type_name(dtype)}({text})" if narrow else text)

    def instruction(self, name: str, *operands: SourceValue) -> SourceValue:
        """The result of an intrinsic of LLVM, of the first operand's dtype."""
        bare = self.support.instruction(name, len(operands))
        return self.expression(operands[0].dtype, f"{bare}({', '.join([x.text for x in operands])})")

    def constant(self, number: float, dtype: DType) -> SourceValue:
        """A constant: floats round to nearest, integers wrap."""
        if dtype.is_bool:
            return SourceValue("True" if number else "False", dtype)
        if dtype.is_floating:
            return SourceValue(f"{type_name(dtype)}({float(number)!r})", dtype)
        if number != int(number):
            raise DTypeError(f"{number} is not an integer: cast the {dtype.name} to a float dtype first")
        size = 8 * dtype.size
        bits = int(number) & ((1 << size) - 1)
        negative = not dtype.is_unsigned and bits >> (size - 1)
        return SourceValue(f"{type_name(dtype)}({bits - (negative << size)})", dtype)

    # Arithmetic

    add, multiply = _reordered("+", "plus"), _reordered("*", "times")
    subtract, divide = _arithmetic("-"), _arithmetic("/")
    bitwise_and, bitwise_or, bitwise_xor = _arithmetic("&"), _arithmetic("|"), _arithmetic("^")
    left_shift, right_shift = _arithmetic("<<"), _arithmetic(">>")
    less, less_equal, equal = _comparison("<"), _comparison("<="), _comparison("==")
    greater, greater_equal, not_equal = _comparison(">"), _comparison(">="), _comparison("!=")

    def negative(self, x: SourceValue) -> SourceValue:
        return self.wrapped(x.dtype, f"-{x.text}")

    def invert(self, x: SourceValue) -> SourceValue:
        if x.dtype.is_bool:
            return self.expression(bool_, f"not {x.text}")
        return self.bitwise_xor(x, self.constant(-1, x.dtype))

    def abs(self, x: SourceValue) -> SourceValue:
        return x if x.dtype.kind in "ub" else self.wrapped(x.dtype, f"abs({x.text})")

    def sign(self, x: SourceValue) -> SourceValue:
        zero, one = self.constant(0, x.dtype), self.constant(1, x.dtype)
        above = self.greater(x, zero)
        signed = self.where(above, one, self.where(self.equal(x, zero), zero, x))
        if x.dtype.is_unsigned:
            return signed
        return self.where(self.less(x, zero), self.constant(-1, x.dtype), signed)

    def quotient(self, x: SourceValue, y: SourceValue) -> SourceValue:
        return self.wrapped(x.dtype, f"{self.support.primitive('quotient')}({x.text}, {y.text})")

    def remainder(self, x: SourceValue, y: SourceValue) -> SourceValue:
        return self.wrapped(x.dtype, f"{self.support.primitive('remainder')}({x.text}, {y.text})")

    def maximum(self, x: SourceValue, y: SourceValue) -> SourceValue:
        """The larger; NaN where either is."""
        return self._extreme("maximum", self.greater, self.bitwise_or, x, y)

    def minimum(self, x: SourceValue, y: SourceValue) -> SourceValue:
        """The smaller; NaN where either is."""
        return self._extreme("minimum", self.less, self.bitwise_and, x, y)

    def _extreme(
        self,
        name: str,
        beyond: Callable[[SourceValue, SourceValue], SourceValue],
        of_bools: Callable[[SourceValue, SourceValue], SourceValue],
        x: SourceValue,
        y: SourceValue,
    ) -> SourceValue:
        if x.dtype.is_bool:
            return of_bools(x, y)
        if x.reorderable and x.dtype.is_floating:
            return self.instruction(name, x, y)
        chosen = self.where(beyond(x, y), x, y)
        return self.where(self.isnan(x), x, chosen) if x.dtype.is_floating else chosen

    floor, ceil, trunc = _instruction("floor"), _instruction("ceil"), _instruction("trunc")
    round, sqrt, copysign = _instruction("roundeven"), _instruction("sqrt"), _instruction("copysign")
    fma = multiply_add = _instruction("fma")

    # Selection and conversion

    def where(self, condition: SourceValue, x: SourceValue, y: SourceValue) -> SourceValue:
        name = self.support.primitive("select")
        return self.expression(x.dtype, f"{name}({condition.text}, {x.text}, {y.text})")

    def isnan(self, x: SourceValue) -> SourceValue:
        return self.not_equal(x, x)

    def isinf(self, x: SourceValue) -> SourceValue:
        if not x.dtype.is_floating:
            return self.not_equal(x, x)
        return self.equal(self.abs(x), self.constant(float("inf"), x.dtype))

    def isfinite(self, x: SourceValue) -> SourceValue:
        if not x.dtype.is_floating:
            return self.equal(x, x)
        return self.less(self.abs(x), self.constant(float("inf"), x.dtype))

    def bitcast(self, x: SourceValue, dtype: DType) -> SourceValue:
        """The same bits under another dtype of the same size."""
        if not x.dtype.is_floating and not dtype.is_floating:
            return self._converted(x, dtype)
        return self.expression(dtype, f"{type_name(x.dtype)}({x.text}).view({type_name(dtype)})")

    def cast(self, x: SourceValue, dtype: DType) -> SourceValue:
        """The same number in another dtype; a float as an integer is the nearest end of the range, nan 0."""
        if x.dtype is dtype:
            return x
        if dtype.is_bool:
            return self.not_equal(x, self.constant(0, x.dtype))
        if not x.dtype.is_floating or dtype.is_floating:
            return self._converted(x, dtype)
        if dtype.size == 8 or dtype is int32:
            return self._saturated(x, dtype)
        wide = self._saturated(x, int32 if dtype.size < 4 else int64)
        low, high = (self.constant(end, wide.dtype) for end in (dtype.min, dtype.max))
        capped = self.where(self.greater(wide, high), high, wide)
        return self._converted(self.where(self.less(capped, low), low, capped), dtype)

    def _converted(self, x: SourceValue, dtype: DType) -> SourceValue:
        return self.expression(dtype, f"{type_name(dtype)}({x.text})")

    def _saturated(self, x: SourceValue, dtype: DType) -> SourceValue:
        name = self.support.primitive(f"saturated_{type_name(dtype)}")
        return self.expression(dtype, f"{name}({x.text})")

    # Functions that have a definition

    exp, exp2, expm1, sigmoid = map(_defined, (ScalarOp.EXP, ScalarOp.EXP2, ScalarOp.EXPM1, ScalarOp.SIGMOID))
    log, log2, log10, log1p = map(_defined, (ScalarOp.LOG, ScalarOp.LOG2, ScalarOp.LOG10, ScalarOp.LOG1P))
    sin, cos, tan = map(_defined, (ScalarOp.SIN, ScalarOp.COS, ScalarOp.TAN))
    asin, acos, atan = map(_defined, (ScalarOp.ASIN, ScalarOp.ACOS, ScalarOp.ATAN))
    sinh, cosh, tanh = map(_defined, (ScalarOp.SINH, ScalarOp.COSH, ScalarOp.TANH))
    asinh, acosh, atanh = map(_defined, (ScalarOp.ASINH, ScalarOp.ACOSH, ScalarOp.ATANH))
    erf, erfc, ndtr, rsqrt = map(_defined, (ScalarOp.ERF, ScalarOp.ERFC, ScalarOp.NDTR, ScalarOp.RSQRT))
    logaddexp, atan2, fmod = map(_defined, (ScalarOp.LOGADDEXP, ScalarOp.ATAN2, ScalarOp.FMOD))
    mod, floor_divide = map(_defined, (ScalarOp.MOD, ScalarOp.FLOOR_DIVIDE))

    def pow(self, x: SourceValue, y: SourceValue) -> SourceValue:
        """``x**y``: of floats as C's pow, of integers wrapping, where `y` is not negative."""
        if x.dtype.is_floating:
            return self.defined(ScalarOp.POW, x, y)
        name = f"pow_{type_name(x.dtype)}"
        if not self.support.has(name):
            self._integer_power(name, x.dtype)
        return self._called(name, (x, y))

    def defined(self, op: ScalarOp, *operands: SourceValue) -> SourceValue:
        """A call of the definition of ``op``, or its code if ``fallback_conditions`` is a list."""
        dtype = operands[0].dtype
        if self.fallback_conditions is not None and has_fallback(op, dtype):
            value, *conditions = evaluate(definition(op, dtype).function, self, operands)
            self.fallback_conditions += conditions
            return value
        name = f"{op.value}_{type_name(dtype)}"
        if not self.support.has(name):
            self._define(name, op, dtype)
        return self._called(name, operands)

    def _called(self, name: str, operands: Sequence[SourceValue]) -> SourceValue:
        return self.expression(operands[0].dtype, f"{name}({', '.join([x.text for x in operands])})")

    def _define(self, name: str, op: ScalarOp, dtype: DType) -> None:
        """Write the function of a definition; the fallback is NumPy, which calls the C function."""
        traced = definition(op, dtype)
        names = "xy"[: len(traced.function.inputs)]
        lines = self.support.function(name, names)
        operands = [SourceValue(n, dtype) for n in names]
        value, *conditions = evaluate(traced.function, SourceMaths(lines, self.support), operands)
        if traced.fallback is not None:
            with lines.block(f"if {conditions[0].text}:"):
                lines.add(f"return np.{traced.fallback}({', '.join(names)})")
        lines.add(f"return {value.text}")

    def _integer_power(self, name: str, dtype: DType) -> None:
        """Write ``x**y`` for integers, by repeated squaring; `y` is read as unsigned."""
        lines = self.support.function(name, "xy")
        m = SourceMaths(lines, self.support)
        unsigned = _UNSIGNED[dtype.size]
        result, square, remaining = (
            SourceValue("r", dtype),
            SourceValue("s", dtype),
            SourceValue("n", unsigned),
        )
        lines.add(f"r, s, n = {m.constant(1, dtype).text}, x, {type_name(unsigned)}(y)")
        with lines.block(f"while n != {m.constant(0, unsigned).text}:"):
            odd = m.cast(m.bitwise_and(remaining, m.constant(1, unsigned)), bool_)
            product = m.where(odd, m.multiply(result, square), result)
            squared, half = m.multiply(square, square), m.right_shift(remaining, m.constant(1, unsigned))
            lines.add(f"r, s, n = {product.text}, {squared.text}, {half.text}")
        lines.add("return r")
