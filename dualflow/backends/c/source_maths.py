"""The scalar ops as C source."""

from __future__ import annotations

from collections.abc import Callable

from dualflow.backends.c.source_lines import CLines, CValue, c_type, literal, type_name
from dualflow.backends.c.support import CSupport
from dualflow.core.dtypes import DType, bool_, complex64, complex128, float32, float64
from dualflow.scalar import ScalarOp, evaluate
from dualflow.scalar.maths import definition
from dualflow.scalar.text_maths import UNSIGNED, TextMaths, of_floats


def _arithmetic(symbol: str) -> Callable[[CMaths, CValue, CValue], CValue]:
    def method(self: CMaths, x: CValue, y: CValue) -> CValue:
        return self.wrapped(x.dtype, symbol, x, y)

    return method


def _bitwise(symbol: str) -> Callable[[CMaths, CValue, CValue], CValue]:
    def method(self: CMaths, x: CValue, y: CValue) -> CValue:
        text = f"{x.text} {symbol} {y.text}"
        return self.expression(x.dtype, f"({c_type(x.dtype)})({text})" if x.dtype.size < 4 else text)

    return method


class CMaths(TextMaths[CValue]):
    """The namespace of scalar ops whose results are C lines.

    Attributes:
        lines: where the lines are added.
        support: the functions that they call.
    """

    def __init__(self, lines: CLines, support: CSupport) -> None:
        super().__init__()
        self.lines, self.support = lines, support

    # Lines

    def expression(self, dtype: DType, text: str) -> CValue:
        return self.lines.declare(dtype, text)

    def wrapped(self, dtype: DType, symbol: str, x: CValue, y: CValue) -> CValue:
        """The result of arithmetic; integers are computed unsigned, since signed integers of C can't wrap."""
        text = f"{x.text} {symbol} {y.text}"
        if not dtype.is_integer:
            return self.expression(dtype, text)
        if dtype.is_unsigned and dtype.size >= 4:
            return self.expression(dtype, text)
        unsigned = c_type(UNSIGNED[max(dtype.size, 4)])
        return self.expression(
            dtype, f"({c_type(dtype)})(({unsigned}){x.text} {symbol} ({unsigned}){y.text})"
        )

    def native(self, name: str, *operands: CValue) -> CValue:
        """A call of a function of ``math.h``, of the variant for the dtype of the first operand."""
        suffix = "f" if operands[0].dtype.size == 4 else ""
        return self.called(name + suffix, *operands)

    def constant(self, number: float, dtype: DType) -> CValue:
        if dtype.is_complex:
            self.support.primitive(f"complex_{type_name(dtype)}")
        return CValue(literal(number, dtype), dtype)

    # Arithmetic

    add, subtract, multiply = _arithmetic("+"), _arithmetic("-"), _arithmetic("*")
    divide = _arithmetic("/")
    bitwise_and, bitwise_or, bitwise_xor = _bitwise("&"), _bitwise("|"), _bitwise("^")

    def left_shift(self, x: CValue, y: CValue) -> CValue:
        """The bits shifted left; the shift count is taken modulo the number of bits."""
        unsigned = c_type(UNSIGNED[max(x.dtype.size, 4)])
        return self.expression(
            x.dtype, f"({c_type(x.dtype)})(({unsigned}){x.text} << {self._distance(x, y)})"
        )

    def right_shift(self, x: CValue, y: CValue) -> CValue:
        """The bits shifted right, with copies of the sign; the shift count is taken modulo the width."""
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
            return self.native("fabs", x)
        return self.where(self.less(x, self.constant(0, x.dtype)), self.negative(x), x)

    def quotient(self, x: CValue, y: CValue) -> CValue:
        return self.expression(x.dtype, f"({c_type(x.dtype)})({x.text} / {y.text})")

    def remainder(self, x: CValue, y: CValue) -> CValue:
        return self.expression(x.dtype, f"({c_type(x.dtype)})({x.text} % {y.text})")

    def maximum(self, x: CValue, y: CValue) -> CValue:
        """The larger operand; NaN if either is NaN."""
        return self._extreme("maximum", "|", x, y)

    def minimum(self, x: CValue, y: CValue) -> CValue:
        """The smaller operand; NaN if either is NaN."""
        return self._extreme("minimum", "&", x, y)

    def _extreme(self, name: str, of_bools: str, x: CValue, y: CValue) -> CValue:
        if x.dtype.is_bool:
            return self.expression(bool_, f"{x.text} {of_bools} {y.text}")
        return self.called(self.support.primitive(f"{name}_{type_name(x.dtype)}"), x, y)

    floor, ceil, trunc = of_floats("floor"), of_floats("ceil"), of_floats("trunc")
    round, fma = of_floats("rint"), of_floats("fma")
    sqrt, copysign = of_floats("sqrt"), of_floats("copysign")

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

    def reinterpreted(self, x: CValue, dtype: DType) -> CValue:
        return self.called(self.support.bits(x.dtype, dtype), x, dtype=dtype)

    def converted(self, x: CValue, dtype: DType) -> CValue:
        return self.expression(dtype, f"({c_type(dtype)}){x.text}")

    def saturated(self, x: CValue, dtype: DType) -> CValue:
        return self.called(self.support.saturated(x.dtype, dtype), x, dtype=dtype)

    def integer_power(self, x: CValue, y: CValue) -> CValue:
        return self.called(self.support.integer_power(x.dtype, UNSIGNED[max(x.dtype.size, 4)]), x, y)

    def definition_name(self, op: ScalarOp, dtype: DType) -> str:
        name = f"df_{op.value}_{type_name(dtype)}"
        if not self.support.has(name):
            self._define(name, op, dtype)
        return name

    def _define(self, name: str, op: ScalarOp, dtype: DType) -> None:
        """Write the C function of a scalar op's definition; its fallback is the function of C's library."""
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
