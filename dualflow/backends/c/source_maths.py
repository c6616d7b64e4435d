"""The scalar ops as C source. Each result has a name of its own, so that nothing is computed twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dualflow.backends.c.support import CSupport
from dualflow.backends.c.values import CLines, CValue, c_type, literal, type_name
from dualflow.core.dtypes import (
    DType,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from dualflow.scalar import ScalarOp, evaluate
from dualflow.scalar.maths import definition, has_fallback

UNSIGNED: Final = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
"""The unsigned dtype of each size, in whose arithmetic integers wrap."""


def _arithmetic(symbol: str) -> Callable[[CMaths, CValue, CValue], CValue]:
    def method(self: CMaths, x: CValue, y: CValue) -> CValue:
        return self.wrapped(x.dtype, symbol, x, y)

    return method


def _bitwise(symbol: str) -> Callable[[CMaths, CValue, CValue], CValue]:
    def method(self: CMaths, x: CValue, y: CValue) -> CValue:
        text = f"{x.text} {symbol} {y.text}"
        return self.expression(x.dtype, f"({c_type(x.dtype)})({text})" if x.dtype.size < 4 else text)

    return method


def _comparison(symbol: str) -> Callable[[CMaths, CValue, CValue], CValue]:
    def method(self: CMaths, x: CValue, y: CValue) -> CValue:
        return self.expression(bool_, f"{x.text} {symbol} {y.text}")

    return method


def _of_floats(name: str) -> Callable[..., CValue]:
    """A method that calls a function of C's library for floats, and returns integers unchanged."""

    def method(self: CMaths, x: CValue, *others: CValue) -> CValue:
        return self.library(name, x, *others) if x.dtype.is_floating else x

    return method


def _defined(op: ScalarOp) -> Callable[..., CValue]:
    def method(self: CMaths, *operands: CValue) -> CValue:
        return self.defined(op, *operands)

    return method


class CMaths:
    """The namespace of scalar ops whose results are C lines.

    Attributes:
        lines: where the lines are added.
        support: the functions that they call.
        fallback_conditions: if it is a list, ops with a guarded definition omit the fallback, and append the
            condition under which it is needed.
    """

    def __init__(self, lines: CLines, support: CSupport) -> None:
        self.lines, self.support = lines, support
        self.fallback_conditions: list[CValue] | None = None

    # Lines

    def expression(self, dtype: DType, text: str) -> CValue:
        """A new value with a name of its own."""
        return self.lines.declare(dtype, text)

    def wrapped(self, dtype: DType, symbol: str, x: CValue, y: CValue) -> CValue:
        """The result of arithmetic; integers are computed without a sign, since signed ones may overflow."""
        text = f"{x.text} {symbol} {y.text}"
        if not dtype.is_integer:
            return self.expression(dtype, text)
        if dtype.is_unsigned and dtype.size >= 4:
            return self.expression(dtype, text)
        unsigned = c_type(UNSIGNED[max(dtype.size, 4)])
        return self.expression(
            dtype, f"({c_type(dtype)})(({unsigned}){x.text} {symbol} ({unsigned}){y.text})"
        )

    def library(self, name: str, *operands: CValue) -> CValue:
        """The result of a function of ``math.h``, of the first operand's dtype."""
        suffix = "f" if operands[0].dtype.size == 4 else ""
        return self.called(name + suffix, *operands)

    def called(self, name: str, *operands: CValue, dtype: DType | None = None) -> CValue:
        """The result of a call, of ``dtype`` or the first operand's."""
        text = f"{name}({', '.join([x.text for x in operands])})"
        return self.expression(dtype or operands[0].dtype, text)

    def constant(self, number: float, dtype: DType) -> CValue:
        """A constant: floats round to nearest, integers wrap."""
        if dtype.is_complex:
            self.support.primitive(f"complex_{type_name(dtype)}")
        return CValue(literal(number, dtype), dtype)

    # Arithmetic

    add, subtract, multiply = _arithmetic("+"), _arithmetic("-"), _arithmetic("*")
    divide = _arithmetic("/")
    bitwise_and, bitwise_or, bitwise_xor = _bitwise("&"), _bitwise("|"), _bitwise("^")
    less, less_equal, equal = _comparison("<"), _comparison("<="), _comparison("==")
    greater, greater_equal, not_equal = _comparison(">"), _comparison(">="), _comparison("!=")

    def left_shift(self, x: CValue, y: CValue) -> CValue:
        """Zeros shifted in; the distance is read modulo the number of bits."""
        unsigned = c_type(UNSIGNED[max(x.dtype.size, 4)])
        return self.expression(
            x.dtype, f"({c_type(x.dtype)})(({unsigned}){x.text} << {self._distance(x, y)})"
        )

    def right_shift(self, x: CValue, y: CValue) -> CValue:
        """Copies of the sign shifted in; the distance is read modulo the number of bits."""
        return self.expression(x.dtype, f"({c_type(x.dtype)})({x.text} >> {self._distance(x, y)})")

    def _distance(self, x: CValue, y: CValue) -> str:
        return y.text if y.text.isdecimal() else f"({y.text} & {8 * x.dtype.size - 1})"

    def negative(self, x: CValue) -> CValue:
        if x.dtype.is_integer:
            return self.wrapped(x.dtype, "-", self.constant(0, x.dtype), x)
        return self.expression(x.dtype, f"-{x.text}")

    def invert(self, x: CValue) -> CValue:
        return self.expression(x.dtype, f"!{x.text}" if x.dtype.is_bool else f"({c_type(x.dtype)})~{x.text}")

    def abs(self, x: CValue) -> CValue:
        if x.dtype.kind in "ub":
            return x
        if x.dtype.is_floating:
            return self.library("fabs", x)
        return self.where(self.less(x, self.constant(0, x.dtype)), self.negative(x), x)

    def sign(self, x: CValue) -> CValue:
        zero, one = self.constant(0, x.dtype), self.constant(1, x.dtype)
        above = self.greater(x, zero)
        signed = self.where(above, one, self.where(self.equal(x, zero), zero, x))
        if x.dtype.is_unsigned:
            return signed
        return self.where(self.less(x, zero), self.constant(-1, x.dtype), signed)

    def quotient(self, x: CValue, y: CValue) -> CValue:
        return self.expression(x.dtype, f"({c_type(x.dtype)})({x.text} / {y.text})")

    def remainder(self, x: CValue, y: CValue) -> CValue:
        return self.expression(x.dtype, f"({c_type(x.dtype)})({x.text} % {y.text})")

    def maximum(self, x: CValue, y: CValue) -> CValue:
        """The larger; NaN where either is."""
        return self._extreme("maximum", "|", x, y)

    def minimum(self, x: CValue, y: CValue) -> CValue:
        """The smaller; NaN where either is."""
        return self._extreme("minimum", "&", x, y)

    def _extreme(self, name: str, of_bools: str, x: CValue, y: CValue) -> CValue:
        if x.dtype.is_bool:
            return self.expression(bool_, f"{x.text} {of_bools} {y.text}")
        return self.called(self.support.primitive(f"{name}_{type_name(x.dtype)}"), x, y)

    floor, ceil, trunc = _of_floats("floor"), _of_floats("ceil"), _of_floats("trunc")
    round, fma = _of_floats("rint"), _of_floats("fma")
    sqrt, copysign = _of_floats("sqrt"), _of_floats("copysign")

    def multiply_add(self, x: CValue, y: CValue, z: CValue) -> CValue:
        """``x * y + z``, rounded once by processors that have an instruction for it."""
        return self.called(self.support.primitive(f"multiply_add_{type_name(x.dtype)}"), x, y, z)

    # Complex numbers

    def real(self, x: CValue) -> CValue:
        """The real part."""
        return self._part("creal", x)

    def imag(self, x: CValue) -> CValue:
        """The imaginary part."""
        return self._part("cimag", x)

    def _part(self, name: str, x: CValue) -> CValue:
        single = x.dtype is complex64
        return self.called(name + "f" * single, x, dtype=float32 if single else float64)

    def complex(self, re: CValue, im: CValue) -> CValue:
        """The complex number of two parts."""
        dtype = complex64 if re.dtype.size == 4 else complex128
        return self.called(self.support.primitive(f"complex_{type_name(dtype)}"), re, im, dtype=dtype)

    # Selection and conversion

    def where(self, condition: CValue, x: CValue, y: CValue) -> CValue:
        return self.expression(x.dtype, f"{condition.text} ? {x.text} : {y.text}")

    def isnan(self, x: CValue) -> CValue:
        return self.not_equal(x, x) if x.dtype.is_floating else self.constant(0, bool_)

    def isinf(self, x: CValue) -> CValue:
        if not x.dtype.is_floating:
            return self.constant(0, bool_)
        return self.equal(self.abs(x), self.constant(float("inf"), x.dtype))

    def isfinite(self, x: CValue) -> CValue:
        if not x.dtype.is_floating:
            return self.constant(1, bool_)
        return self.less(self.abs(x), self.constant(float("inf"), x.dtype))

    def bitcast(self, x: CValue, dtype: DType) -> CValue:
        """The same bits as a number of another dtype of the same size."""
        if not x.dtype.is_floating and not dtype.is_floating:
            return self._converted(x, dtype)
        return self.called(self.support.bits(x.dtype, dtype), x, dtype=dtype)

    def cast(self, x: CValue, dtype: DType) -> CValue:
        """The same number in another dtype; a float out of range is the nearest integer, NaN is 0."""
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

    def _converted(self, x: CValue, dtype: DType) -> CValue:
        return self.expression(dtype, f"({c_type(dtype)}){x.text}")

    def _saturated(self, x: CValue, dtype: DType) -> CValue:
        return self.called(self.support.saturated(x.dtype, dtype), x, dtype=dtype)

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

    def pow(self, x: CValue, y: CValue) -> CValue:
        """``x**y``: of floats as C's pow, of integers wrapping, where `y` is not negative."""
        if x.dtype.is_floating:
            return self.defined(ScalarOp.POW, x, y)
        return self.called(self.support.integer_power(x.dtype, UNSIGNED[max(x.dtype.size, 4)]), x, y)

    def defined(self, op: ScalarOp, *operands: CValue) -> CValue:
        """A call of the definition of ``op``, or its code if ``fallback_conditions`` is a list."""
        dtype = operands[0].dtype
        if self.fallback_conditions is not None and has_fallback(op, dtype):
            value, *conditions = evaluate(definition(op, dtype).function, self, operands)
            self.fallback_conditions += conditions
            return value
        name = f"df_{op.value}_{type_name(dtype)}"
        if not self.support.has(name):
            self._define(name, op, dtype)
        return self.called(name, *operands)

    def _define(self, name: str, op: ScalarOp, dtype: DType) -> None:
        """Write the function of a definition; the fallback is C's function."""
        traced = definition(op, dtype)
        names = "xy"[: len(traced.function.inputs)]
        lines, operands = CLines(), [CValue(n, dtype) for n in names]
        value, *conditions = evaluate(traced.function, CMaths(lines, self.support), operands)
        if traced.fallback is not None:
            suffix = "f" if dtype.size == 4 else ""
            with lines.block(f"if ({conditions[0].text})"):
                lines.add(f"return {traced.fallback}{suffix}({', '.join(names)});")
        lines.add(f"return {value.text};")
        self.support.function(name, dtype, names, lines)
