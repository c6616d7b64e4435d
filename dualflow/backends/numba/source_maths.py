"""The scalar ops as Python source for Numba.

Every number has an explicit dtype, since Numba's own rules would widen: ``int32 + int32`` is int64 there, and
``float32 * 0.5`` is float64.
"""

from __future__ import annotations

from collections.abc import Callable

from dualflow.backends.numba.source_lines import Lines, SourceValue, type_name
from dualflow.backends.numba.support import Support
from dualflow.core.dtypes import DType, bool_
from dualflow.scalar import ScalarOp, evaluate
from dualflow.scalar.maths import definition
from dualflow.scalar.text_maths import UNSIGNED, TextMaths, of_floats, wrapped_integer


def _arithmetic(symbol: str) -> Callable[[SourceMaths, SourceValue, SourceValue], SourceValue]:
    def method(self: SourceMaths, x: SourceValue, y: SourceValue) -> SourceValue:
        return self.wrapped(x.dtype, f"{x.text} {symbol} {y.text}")

    return method


def _reassociated(
    symbol: str, primitive: str
) -> Callable[[SourceMaths, SourceValue, SourceValue], SourceValue]:
    """A method for a sum or product that LLVM may reorder between lanes, if they carry the first operand."""

    def method(self: SourceMaths, x: SourceValue, y: SourceValue) -> SourceValue:
        if x.reorderable and x.dtype.is_floating:
            return self.called(self.support.primitive(primitive), x, y)
        return self.wrapped(x.dtype, f"{x.text} {symbol} {y.text}")

    return method


class SourceMaths(TextMaths[SourceValue]):
    """The namespace of scalar ops whose results are lines of Python.

    Attributes:
        lines: where the lines are added.
        support: the functions that they call.
    """

    def __init__(self, lines: Lines, support: Support) -> None:
        super().__init__()
        self.lines, self.support = lines, support

    # Lines

    def expression(self, dtype: DType, text: str) -> SourceValue:
        name = self.lines.name()
        self.lines.add(f"{name} = {text}")
        return SourceValue(name, dtype)

    def wrapped(self, dtype: DType, text: str) -> SourceValue:
        """The result of arithmetic in its own dtype: Numba widens narrow integers."""
        narrow = dtype.is_integer and dtype.size < 8
        return self.expression(dtype, f"{type_name(dtype)}({text})" if narrow else text)

    def native(self, name: str, *operands: SourceValue) -> SourceValue:
        """The result of an intrinsic of LLVM, of the first operand's dtype."""
        return self.called(self.support.instruction(name, len(operands)), *operands)

    def constant(self, number: float, dtype: DType) -> SourceValue:
        if dtype.is_bool:
            return SourceValue("True" if number else "False", dtype)
        if dtype.is_floating:
            return SourceValue(f"{type_name(dtype)}({float(number)!r})", dtype)
        return SourceValue(f"{type_name(dtype)}({wrapped_integer(number, dtype)})", dtype)

    # Arithmetic

    add, multiply = _reassociated("+", "plus"), _reassociated("*", "times")
    subtract, divide = _arithmetic("-"), _arithmetic("/")
    bitwise_and, bitwise_or, bitwise_xor = _arithmetic("&"), _arithmetic("|"), _arithmetic("^")
    left_shift, right_shift = _arithmetic("<<"), _arithmetic(">>")

    def negative(self, x: SourceValue) -> SourceValue:
        return self.wrapped(x.dtype, f"-{x.text}")

    def invert(self, x: SourceValue) -> SourceValue:
        if x.dtype.is_bool:
            return self.expression(bool_, f"not {x.text}")
        return self.bitwise_xor(x, self.constant(-1, x.dtype))

    def abs(self, x: SourceValue) -> SourceValue:
        return x if x.dtype.kind in "ub" else self.wrapped(x.dtype, f"abs({x.text})")

    def quotient(self, x: SourceValue, y: SourceValue) -> SourceValue:
        return self.wrapped(x.dtype, f"{self.support.primitive('quotient')}({x.text}, {y.text})")

    def remainder(self, x: SourceValue, y: SourceValue) -> SourceValue:
        return self.wrapped(x.dtype, f"{self.support.primitive('remainder')}({x.text}, {y.text})")

    def maximum(self, x: SourceValue, y: SourceValue) -> SourceValue:
        """The larger operand; NaN if either is NaN."""
        return self._extreme("maximum", self.greater, self.bitwise_or, x, y)

    def minimum(self, x: SourceValue, y: SourceValue) -> SourceValue:
        """The smaller operand; NaN if either is NaN."""
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
            return self.native(name, x, y)
        chosen = self.where(beyond(x, y), x, y)
        return self.where(self.isnan(x), x, chosen) if x.dtype.is_floating else chosen

    floor, ceil, trunc = of_floats("floor"), of_floats("ceil"), of_floats("trunc")
    round, sqrt, copysign = of_floats("roundeven"), of_floats("sqrt"), of_floats("copysign")
    fma = multiply_add = of_floats("fma")

    # Selection and conversion

    def where(self, condition: SourceValue, x: SourceValue, y: SourceValue) -> SourceValue:
        name = self.support.primitive("select")
        return self.called(name, condition, x, y, dtype=x.dtype)

    def reinterpreted(self, x: SourceValue, dtype: DType) -> SourceValue:
        return self.expression(dtype, f"{type_name(x.dtype)}({x.text}).view({type_name(dtype)})")

    def converted(self, x: SourceValue, dtype: DType) -> SourceValue:
        return self.called(type_name(dtype), x, dtype=dtype)

    def saturated(self, x: SourceValue, dtype: DType) -> SourceValue:
        return self.called(self.support.primitive(f"saturated_{type_name(dtype)}"), x, dtype=dtype)

    def integer_power(self, x: SourceValue, y: SourceValue) -> SourceValue:
        name = f"pow_{type_name(x.dtype)}"
        if not self.support.has(name):
            self._define_integer_power(name, x.dtype)
        return self.called(name, x, y)

    def definition_name(self, op: ScalarOp, dtype: DType) -> str:
        name = f"{op.value}_{type_name(dtype)}"
        if not self.support.has(name):
            self._define(name, op, dtype)
        return name

    def _define(self, name: str, op: ScalarOp, dtype: DType) -> None:
        """Write a helper function for ``op`` from its scalar definition; NumPy's function is the fallback."""
        traced = definition(op, dtype)
        names = "xy"[: len(traced.function.inputs)]
        lines = self.support.function(name, names)
        operands = [SourceValue(n, dtype) for n in names]
        value, *conditions = evaluate(traced.function, SourceMaths(lines, self.support), operands)
        if traced.fallback is not None:
            with lines.block(f"if {conditions[0].text}:"):
                lines.add(f"return np.{traced.fallback}({', '.join(names)})")
        lines.add(f"return {value.text}")

    def _define_integer_power(self, name: str, dtype: DType) -> None:
        """Write ``x**y`` for integers, by repeated squaring; `y` is read as unsigned."""
        lines = self.support.function(name, "xy")
        m = SourceMaths(lines, self.support)
        unsigned = UNSIGNED[dtype.size]
        result = SourceValue("r", dtype)
        square = SourceValue("s", dtype)
        remaining = SourceValue("n", unsigned)
        lines.add(f"r, s, n = {m.constant(1, dtype).text}, x, {type_name(unsigned)}(y)")
        with lines.block(f"while n != {m.constant(0, unsigned).text}:"):
            odd = m.cast(m.bitwise_and(remaining, m.constant(1, unsigned)), bool_)
            product = m.where(odd, m.multiply(result, square), result)
            squared, half = m.multiply(square, square), m.right_shift(remaining, m.constant(1, unsigned))
            lines.add(f"r, s, n = {product.text}, {squared.text}, {half.text}")
        lines.add("return r")
