"""Scalar functions as ONNX nodes: one rule for each op of the scalar IR covers all elementwise ops.

ONNX's elementwise ops broadcast, so a scalar instruction becomes a node on whole tensors. Functions that ONNX
lacks are composed of a few nodes, accurate to some units in the last place, or of their definitions in
:mod:`dualflow.scalar.maths`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dualflow.backends.onnx.element_types import dtype_named, element_type, runtime_dtype
from dualflow.backends.onnx.scope import OnnxScope, Operand
from dualflow.core.dtypes import DType, bool_, float32, float64
from dualflow.scalar import ScalarOp, evaluate
from dualflow.scalar.maths.definitions import definition

_ALSO_IN_FLOAT64: Final = frozenset({"Exp", "Log", "Sqrt", "Sin", "Cos", "Tanh", "Sigmoid"})
"""The functions that ONNX Runtime supports in float64 as well."""


def _op(op_type: str) -> Callable[..., Operand]:
    def method(self: ScalarNodes, *operands: Operand) -> Operand:
        return self.scope.add_with_casts(op_type, *operands)

    return method


def _comparison(op_type: str) -> Callable[..., Operand]:
    def method(self: ScalarNodes, x: Operand, y: Operand) -> Operand:
        if x.dtype.is_bool and op_type != "Equal":
            x, y = (self.cast(operand, dtype_named("uint8")) for operand in (x, y))
        if x.dtype.narrow:
            x, y = self.cast(x, float32), self.cast(y, float32)
        return self.scope.add(op_type, x, y, dtype=bool_)

    return method


def _predicate(op_type: str) -> Callable[..., Operand]:
    def method(self: ScalarNodes, x: Operand) -> Operand:
        return self.scope.add(op_type, x, dtype=bool_)

    return method


def _logical(of_bools: str, of_integers: str) -> Callable[..., Operand]:
    def method(self: ScalarNodes, *operands: Operand) -> Operand:
        return self.scope.add(of_bools if operands[0].dtype.is_bool else of_integers, *operands)

    return method


def _function(op_type: str, op: ScalarOp) -> Callable[..., Operand]:
    """An ONNX function; its definition for float64, if the runtime has no kernel for that."""

    def method(self: ScalarNodes, x: Operand) -> Operand:
        if x.dtype is float64 and op_type not in _ALSO_IN_FLOAT64:
            return self.defined(op, x)
        return self.scope.add(op_type, x)

    return method


def _defined(op: ScalarOp) -> Callable[..., Operand]:
    def method(self: ScalarNodes, *operands: Operand) -> Operand:
        return self.defined(op, *operands)

    return method


class ScalarNodes:
    """The scalar ops as ONNX nodes, for :func:`evaluate`."""

    def __init__(self, scope: OnnxScope, index: Callable[[int], Operand]) -> None:
        self.scope = scope
        self.index = index

    def _constant(self, number: Any, like: Operand) -> Operand:
        return self.scope.constant(number, like.dtype)

    def constant(self, number: Any, dtype: DType) -> Operand:
        """A constant."""
        return self.scope.constant(number, dtype)

    def check(self, ok: Operand, message: str) -> None:
        """Make the model fail with ``message`` unless ``ok`` holds everywhere."""
        self.scope.require(ok, message)

    def cast(self, x: Operand, dtype: DType) -> Operand:
        """``x`` in another dtype."""
        return self.scope.cast(x, dtype)

    def bitcast(self, x: Operand, dtype: DType) -> Operand:
        """The bits of ``x`` as another dtype."""
        return x if x.dtype is dtype else self.scope.add("BitCast", x, dtype=dtype, to=element_type(dtype))

    def where(self, condition: Operand, x: Operand, y: Operand) -> Operand:
        """``x`` where the condition holds, ``y`` elsewhere."""
        return self.scope.where(condition, x, y)

    def defined(self, op: ScalarOp, *operands: Operand) -> Operand:
        """The definition of a function in the scalar IR."""
        dtype = operands[0].dtype
        if dtype.is_floating and dtype.size < 4:
            wide = [self.cast(x, float32) for x in operands]
            return self.cast(self.defined(op, *wide), dtype)
        (result, *_) = evaluate(definition(op, dtype).function, self, operands)
        return result

    # Arithmetic

    def add(self, x: Operand, y: Operand) -> Operand:
        """The sum; of strings, the joined string."""
        return self.scope.add("StringConcat" if x.dtype.is_string else "Add", x, y)

    subtract, divide, quotient = _op("Sub"), _op("Div"), _op("Div")

    def multiply(self, x: Operand, y: Operand) -> Operand:
        """The product; of bools, their conjunction."""
        return self.scope.add("And" if x.dtype.is_bool else "Mul", x, y)

    def negative(self, x: Operand) -> Operand:
        """``-x``."""
        return self.subtract(self._constant(0, x), x) if x.dtype.is_unsigned else self.scope.add("Neg", x)

    def fma(self, x: Operand, y: Operand, z: Operand) -> Operand:
        """``x * y + z``."""
        return self.add(self.multiply(x, y), z)

    multiply_add = fma
    bitwise_and, bitwise_or = _logical("And", "BitwiseAnd"), _logical("Or", "BitwiseOr")
    bitwise_xor, invert = _logical("Xor", "BitwiseXor"), _logical("Not", "BitwiseNot")

    def left_shift(self, x: Operand, y: Operand) -> Operand:
        """``x`` shifted left."""
        return self._shifted(x, y, "LEFT")

    def right_shift(self, x: Operand, y: Operand) -> Operand:
        """``x`` shifted right; copies of the sign bit are shifted in."""
        if x.dtype.is_unsigned:
            return self._shifted(x, y, "RIGHT")
        negative = self.less(x, self._constant(0, x))
        moved = self._shifted(self.where(negative, self.invert(x), x), y, "RIGHT")
        return self.where(negative, self.invert(moved), moved)

    def _shifted(self, x: Operand, y: Operand, direction: str) -> Operand:
        unsigned = dtype_named(f"uint{8 * x.dtype.size}")
        bits = [self.cast(operand, unsigned) for operand in (x, y)]
        return self.cast(self.scope.add("BitShift", *bits, direction=direction), x.dtype)

    # Comparisons and parts of numbers

    less, less_equal = _comparison("Less"), _comparison("LessOrEqual")
    greater, greater_equal = _comparison("Greater"), _comparison("GreaterOrEqual")
    equal = _comparison("Equal")
    isnan, isinf = _predicate("IsNaN"), _predicate("IsInf")

    def not_equal(self, x: Operand, y: Operand) -> Operand:
        """Whether the operands differ."""
        return self.invert(self.equal(x, y))

    def isfinite(self, x: Operand) -> Operand:
        """Whether ``x`` is neither infinite nor nan."""
        return self.invert(self.bitwise_or(self.isnan(x), self.isinf(x)))

    abs, floor, ceil, round = _op("Abs"), _op("Floor"), _op("Ceil"), _op("Round")

    def sign(self, x: Operand) -> Operand:
        """-1, 0 or 1; nan for nan."""
        sign = self.scope.add("Sign", x)
        return self.where(self.isnan(x), x, sign) if x.dtype.is_floating else sign

    def trunc(self, x: Operand) -> Operand:
        """``x`` rounded towards zero."""
        return self.copysign(self.floor(self.abs(x)), x)

    def copysign(self, x: Operand, y: Operand) -> Operand:
        """The magnitude of ``x`` with the sign of ``y``, also of -0.0."""
        zero = self._constant(0, y)
        below = self.less(self.scope.add("Reciprocal", y), zero)
        negative = self.bitwise_or(self.less(y, zero), below)
        magnitude = self.abs(x)
        return self.where(negative, self.negative(magnitude), magnitude)

    def maximum(self, x: Operand, y: Operand) -> Operand:
        """The larger operand; nan if either is nan."""
        return self.scope.add("Or", x, y) if x.dtype.is_bool else self.scope.add_with_casts("Max", x, y)

    def minimum(self, x: Operand, y: Operand) -> Operand:
        """The smaller operand; nan if either is nan."""
        return self.scope.add("And", x, y) if x.dtype.is_bool else self.scope.add_with_casts("Min", x, y)

    def mod(self, x: Operand, y: Operand) -> Operand:
        """The remainder with the sign of the divisor."""
        return self.scope.add("Mod", x, y) if x.dtype.is_integer else self.defined(ScalarOp.MOD, x, y)

    def fmod(self, x: Operand, y: Operand) -> Operand:
        """The remainder with the sign of the dividend."""
        return self.scope.add("Mod", x, y, fmod=1)

    remainder = fmod
    floor_divide = _defined(ScalarOp.FLOOR_DIVIDE)

    # Functions

    exp, log, sqrt = _op("Exp"), _op("Log"), _op("Sqrt")
    sin, cos, tanh, sigmoid = _op("Sin"), _op("Cos"), _op("Tanh"), _op("Sigmoid")
    asin, acos = _function("Asin", ScalarOp.ASIN), _function("Acos", ScalarOp.ACOS)
    atan, erf = _function("Atan", ScalarOp.ATAN), _function("Erf", ScalarOp.ERF)
    sinh, cosh = _function("Sinh", ScalarOp.SINH), _function("Cosh", ScalarOp.COSH)
    asinh, acosh = _function("Asinh", ScalarOp.ASINH), _function("Acosh", ScalarOp.ACOSH)
    atanh = _function("Atanh", ScalarOp.ATANH)
    erfc = _defined(ScalarOp.ERFC)

    def tan(self, x: Operand) -> Operand:
        """The tangent."""
        return self.divide(self.sin(x), self.cos(x)) if x.dtype is float64 else self.scope.add("Tan", x)

    def pow(self, x: Operand, y: Operand) -> Operand:
        """``x`` to the power ``y``."""
        wide = runtime_dtype("Pow", x.dtype)
        return self.cast(self.scope.add("Pow", self.cast(x, wide), self.cast(y, wide)), x.dtype)

    def rsqrt(self, x: Operand) -> Operand:
        """``1 / sqrt(x)``."""
        return self.scope.add("Reciprocal", self.sqrt(x))

    def exp2(self, x: Operand) -> Operand:
        """2 to the power ``x``."""
        return self.pow(self._constant(2, x), x)

    def log2(self, x: Operand) -> Operand:
        """The logarithm to base 2."""
        return self.multiply(self.log(x), self._constant(1 / math.log(2), x))

    def log10(self, x: Operand) -> Operand:
        """The logarithm to base 10."""
        return self.multiply(self.log(x), self._constant(1 / math.log(10), x))

    def expm1(self, x: Operand) -> Operand:
        """``exp(x) - 1``, for small ``x`` by Kahan's correction of the rounding of ``exp(x)``."""
        one = self._constant(1, x)
        power = self.exp(x)
        less_one = self.subtract(power, one)
        is_one = self.equal(power, one)
        logarithm = self.where(is_one, one, self.log(power))
        corrected = self.where(is_one, x, self.multiply(less_one, self.divide(x, logarithm)))
        return self.where(self.less(self.abs(x), self._constant(0.5, x)), corrected, less_one)

    def log1p(self, x: Operand) -> Operand:
        """``log(1 + x)``, by Kahan's correction of the rounding of ``1 + x`` for small ``x``."""
        one = self._constant(1, x)
        more = self.add(one, x)
        is_small = self.less(self.abs(x), self._constant(0.5, x))
        is_one = self.equal(more, one)
        factor = self.divide(x, self.where(is_one, one, self.subtract(more, one)))
        logarithm = self.log(more)
        corrected = self.where(is_one, x, self.multiply(logarithm, factor))
        return self.where(is_small, corrected, logarithm)

    def logaddexp(self, x: Operand, y: Operand) -> Operand:
        """``log(exp(x) + exp(y))``."""
        larger = self.maximum(x, y)
        difference = self.negative(self.abs(self.subtract(x, y)))
        total = self.add(larger, self.log1p(self.exp(difference)))
        return self.where(self.equal(x, y), self.add(x, self._constant(math.log(2), x)), total)

    def ndtr(self, x: Operand) -> Operand:
        """The distribution function of the normal distribution."""
        if x.dtype is float64:
            return self.defined(ScalarOp.NDTR, x)
        half = self._constant(0.5, x)
        error = self.erf(self.multiply(x, self._constant(math.sqrt(0.5), x)))
        return self.multiply(half, self.add(error, self._constant(1, x)))

    def atan2(self, y: Operand, x: Operand) -> Operand:
        """The angle of the point ``(x, y)``."""
        zero, one, pi = (self._constant(number, x) for number in (0, 1, math.pi))
        far = self.bitwise_and(self.isinf(x), self.isinf(y))  # as the diagonal point with these signs
        x, y = (self.where(far, self.copysign(one, v), v) for v in (x, y))
        origin = self.bitwise_and(self.equal(x, zero), self.equal(y, zero))
        ratio = self.where(origin, zero, self.divide(y, x))
        angle = self.atan(self.abs(ratio))
        on_left = self.less(self.copysign(one, x), zero)
        return self.copysign(self.where(on_left, self.subtract(pi, angle), angle), y)
