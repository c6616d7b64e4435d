"""`Maths`: the functions that element code calls, each emitted once per module and type."""

from __future__ import annotations

from collections.abc import Callable

from dualflow.backends.llvm.maths import (
    division,
    error_function,
    exponential,
    inverse_trigonometry,
    logarithm,
    normal_distribution,
    power,
    trigonometry,
)
from dualflow.backends.llvm.maths.floating import INF, Partial, copysign, floor, sqrt, trunc
from dualflow.backends.llvm.text import BOOL, F32, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import DTypeError

Operand = EmittedValue | float


class Maths:
    """The maths namespace of element code, over values of any number of lanes.

    ``code(m, x, ...)`` may be run with an instance of this class, to emit, or with NumPy's functions of the
    same names, to compute. Numbers among the operands become constants. Float functions take float16, float32
    and float64; float16 is computed in float32. Denormals, infinities, NaN and signed zeros are right.

    Largest errors, in units in the last place (float32, float64), as tested:

    ====================  ==========  ====================  ==========  ====================  ==========
    exp                   1.0, 1.0    log                   0.9, 0.9    sin, cos              1.2, 1.2
    exp2                  0.9, 0.9    log2, log10           1.7, 1.6    tan                   2.1, 2.5
    expm1                 1.5, 1.2    log1p                 1.5, 1.4    asin                  2.0, 2.0
    sigmoid               2.3, 2.3    asinh                 1.9, 1.8    acos                  1.1, 1.2
    sinh, cosh            1.7, 1.7    acosh                 2.3, 2.0    atan                  1.2, 1.4
    tanh                  1.4, 1.4    atanh                 2.2, 2.0    atan2                 1.5, 1.5
    erf                   1.1, 1.1    erfc                  4.0, 3.6    pow                   0.6, 1.2
    ndtr                  3.2, 3.1
    ====================  ==========  ====================  ==========  ====================  ==========

    Everything is inline vector code, but sin, cos and tan beyond 2**16 (2**30 in float64) and fmod, mod and
    floor_divide of quotients beyond 2**22 (2**51), which call C's function lane by lane, out of line.

    `module` receives the functions. With `inline=False` they stay functions, which keeps the compile time of
    huge kernels linear in their size.

    >>> module = LlvmModule()
    >>> m, f = Maths(module), module.function("softplus", F32, [("x", F32)])
    >>> x = f.args[0]
    >>> f.builder.ret(m.log1p(m.exp(-m.abs(x))) + m.maximum(x, 0))
    >>> sorted(module.functions)
    ['df.exp.f32', 'df.log1p.f32', 'softplus']
    """

    def __init__(self, module: LlvmModule, inline: bool = True) -> None:
        self.module = module
        self._attributes = "alwaysinline" if inline else "noinline"

    # Exponentials and logarithms

    def exp(self, x: EmittedValue) -> EmittedValue:
        """``e**x``."""
        return self._function("exp", exponential.exp, x)

    def exp2(self, x: EmittedValue) -> EmittedValue:
        """``2**x``, exact for integers."""
        return self._function("exp2", exponential.exp2, x)

    def expm1(self, x: EmittedValue) -> EmittedValue:
        """``e**x - 1``, without cancellation."""
        return self._function("expm1", exponential.expm1, x)

    def log(self, x: EmittedValue) -> EmittedValue:
        """Natural logarithm."""
        return self._function("log", logarithm.log, x)

    def log2(self, x: EmittedValue) -> EmittedValue:
        """Logarithm to base 2, exact for powers of 2."""
        return self._function("log2", logarithm.log2, x)

    def log10(self, x: EmittedValue) -> EmittedValue:
        """Logarithm to base 10."""
        return self._function("log10", logarithm.log10, x)

    def log1p(self, x: EmittedValue) -> EmittedValue:
        """``log(1 + x)``, without cancellation."""
        return self._function("log1p", logarithm.log1p, x)

    def logaddexp(self, x: Operand, y: Operand) -> EmittedValue:
        """``log(exp(x) + exp(y))``, without overflow; its error is relative to the larger operand."""
        return self._function("logaddexp", logarithm.logaddexp, x, y)

    def sigmoid(self, x: EmittedValue) -> EmittedValue:
        """``1 / (1 + exp(-x))``."""
        return self._function("sigmoid", exponential.sigmoid, x)

    # Trigonometry, circular and hyperbolic

    def sin(self, x: EmittedValue) -> EmittedValue:
        """Sine of radians."""
        return self._function("sin", trigonometry.sin, x)

    def cos(self, x: EmittedValue) -> EmittedValue:
        """Cosine of radians."""
        return self._function("cos", trigonometry.cos, x)

    def tan(self, x: EmittedValue) -> EmittedValue:
        """Tangent of radians."""
        return self._function("tan", trigonometry.tan, x)

    def asin(self, x: EmittedValue) -> EmittedValue:
        """Arc sine."""
        return self._function("asin", inverse_trigonometry.asin, x)

    def acos(self, x: EmittedValue) -> EmittedValue:
        """Arc cosine."""
        return self._function("acos", inverse_trigonometry.acos, x)

    def atan(self, x: EmittedValue) -> EmittedValue:
        """Arc tangent."""
        return self._function("atan", inverse_trigonometry.atan, x)

    def atan2(self, y: Operand, x: Operand) -> EmittedValue:
        """The angle of the point (x, y)."""
        return self._function("atan2", inverse_trigonometry.atan2, y, x)

    def sinh(self, x: EmittedValue) -> EmittedValue:
        """Hyperbolic sine."""
        return self._function("sinh", exponential.sinh, x)

    def cosh(self, x: EmittedValue) -> EmittedValue:
        """Hyperbolic cosine."""
        return self._function("cosh", exponential.cosh, x)

    def tanh(self, x: EmittedValue) -> EmittedValue:
        """Hyperbolic tangent."""
        return self._function("tanh", exponential.tanh, x)

    def asinh(self, x: EmittedValue) -> EmittedValue:
        """Inverse hyperbolic sine."""
        return self._function("asinh", logarithm.asinh, x)

    def acosh(self, x: EmittedValue) -> EmittedValue:
        """Inverse hyperbolic cosine."""
        return self._function("acosh", logarithm.acosh, x)

    def atanh(self, x: EmittedValue) -> EmittedValue:
        """Inverse hyperbolic tangent."""
        return self._function("atanh", logarithm.atanh, x)

    def erf(self, x: EmittedValue) -> EmittedValue:
        """The error function."""
        return self._function("erf", error_function.erf, x)

    def erfc(self, x: EmittedValue) -> EmittedValue:
        """``1 - erf(x)``, with all its digits where it is small."""
        return self._function("erfc", error_function.erfc, x)

    def ndtr(self, x: EmittedValue) -> EmittedValue:
        """The chance that a normal value of mean 0 and variance 1 is below ``x``."""
        return self._function("ndtr", normal_distribution.ndtr, x)

    # Powers, and division that rounds down

    def sqrt(self, x: EmittedValue) -> EmittedValue:
        """Correctly rounded square root."""
        return sqrt(_float(x))

    def rsqrt(self, x: EmittedValue) -> EmittedValue:
        """``1 / sqrt(x)``."""
        return self._function("rsqrt", lambda a: 1.0 / sqrt(a), x)

    def pow(self, x: Operand, y: Operand) -> EmittedValue:
        """``x**y``: of floats as C's pow, of integers wrapping, where `y` is not negative."""
        x, y = _values(x, y)
        if x.type.kind == "f":
            return self._function("pow", power.pow, x, y)
        return self._called("pow", power.integer_power, x, y)

    def fmod(self, x: Operand, y: Operand) -> EmittedValue:
        """The exact remainder of float division towards zero, with the sign of `x`."""
        return self._function("fmod", division.fmod, x, y)

    def mod(self, x: Operand, y: Operand) -> EmittedValue:
        """The remainder of `floor_divide`, with the sign of `y`; 0 for an integer `y` of 0."""
        x, y = _values(x, y)
        if x.type.kind == "f":
            return self._function("mod", lambda a, b: division.mod(b, self.fmod(a, b)), x, y)
        if division.is_known(y):
            return division.integer_mod(x, y)
        return self._called("mod", lambda _, a, b: division.integer_mod(a, b), x, y)

    def floor_divide(self, x: Operand, y: Operand) -> EmittedValue:
        """The quotient rounded down; 0 for an integer `y` of 0."""
        x, y = _values(x, y)
        if x.type.kind == "f":
            return self._function(
                "floor_divide", lambda a, b: division.floor_divide(a, b, self.fmod(a, b)), x, y
            )
        if division.is_known(y):
            return division.integer_floor_divide(x, y)
        return self._called("floor_divide", lambda _, a, b: division.integer_floor_divide(a, b), x, y)

    # One or a few instructions

    def abs(self, x: EmittedValue) -> EmittedValue:
        """Magnitude; the smallest integer wraps to itself."""
        return abs(x)

    def sign(self, x: EmittedValue) -> EmittedValue:
        """-1, 0 or 1; NaN for NaN."""
        signed = (x > 0).select(1, x.eq(0).select(0, x))
        return signed if x.type.kind == "u" else (x < 0).select(-1, signed)

    def copysign(self, x: Operand, y: Operand) -> EmittedValue:
        """The magnitude of `x` with the sign of `y`."""
        return copysign(*_values(x, y))

    def floor(self, x: EmittedValue) -> EmittedValue:
        """The integer at or below."""
        return floor(x) if x.type.kind == "f" else x

    def ceil(self, x: EmittedValue) -> EmittedValue:
        """The integer at or above."""
        return x.emitter.intrinsic("llvm.ceil", x) if x.type.kind == "f" else x

    def trunc(self, x: EmittedValue) -> EmittedValue:
        """The integer towards zero."""
        return trunc(x) if x.type.kind == "f" else x

    def round(self, x: EmittedValue) -> EmittedValue:
        """The nearest integer, ties to even."""
        return x.emitter.intrinsic("llvm.roundeven", x) if x.type.kind == "f" else x

    def maximum(self, x: Operand, y: Operand) -> EmittedValue:
        """The larger; NaN where either is."""
        x, y = _values(x, y)
        if x.type.kind == "b":
            return x | y
        larger = (x > y).select(x, y)
        return x.ne(x).select(x, larger) if x.type.kind == "f" else larger

    def minimum(self, x: Operand, y: Operand) -> EmittedValue:
        """The smaller; NaN where either is."""
        x, y = _values(x, y)
        if x.type.kind == "b":
            return x & y
        smaller = (x < y).select(x, y)
        return x.ne(x).select(x, smaller) if x.type.kind == "f" else smaller

    def fma(self, x: EmittedValue, y: Operand, z: Operand) -> EmittedValue:
        """``x * y + z``, rounded once."""
        return x.fma(y, z)

    def multiply_add(self, x: Operand, y: Operand, z: Operand) -> EmittedValue:
        """``x * y + z``, rounded once by processors that have an instruction for it."""
        x, y, z = _values(x, y, z)
        return x.fma(y, z) if self.module.vector_bits > 128 else x * y + z

    # Complex numbers: elements as memory holds them, and their parts

    def real(self, x: EmittedValue) -> EmittedValue:
        """The real part."""
        return x.parts()[0]

    def imag(self, x: EmittedValue) -> EmittedValue:
        """The imaginary part."""
        return x.parts()[1]

    def complex(self, re: EmittedValue, im: EmittedValue) -> EmittedValue:
        """The complex number of these parts."""
        re, im = _values(re, im)
        return re.beside(im)

    # Choice

    def where(self, condition: EmittedValue, x: Operand, y: Operand) -> EmittedValue:
        """`x` where the condition holds, `y` elsewhere."""
        return condition.cast(BOOL.vector(condition.type.lanes)).select(x, y)

    def equal(self, x: Operand, y: Operand) -> EmittedValue:
        """Whether equal; NaN equals nothing."""
        x, y = _values(x, y)
        return x.eq(y)

    def not_equal(self, x: Operand, y: Operand) -> EmittedValue:
        """Whether unequal."""
        x, y = _values(x, y)
        return x.ne(y)

    def isnan(self, x: EmittedValue) -> EmittedValue:
        """Whether not a number."""
        return x.ne(x)

    def isinf(self, x: EmittedValue) -> EmittedValue:
        """Whether infinite."""
        return abs(x).eq(INF) if x.type.kind == "f" else x.ne(x)

    def isfinite(self, x: EmittedValue) -> EmittedValue:
        """Whether neither infinite nor NaN."""
        return abs(x) < INF if x.type.kind == "f" else x.eq(x)

    def cast(self, x: EmittedValue, target: DType) -> EmittedValue:
        """The same number in another dtype, as `EmittedValue.cast`."""
        return x.cast(Type.of_dtype(target.dtype, x.type.lanes))

    def dtype(self, x: EmittedValue) -> DType:
        """The dtype of an element."""
        return as_dtype(x.type.dtype)

    # How functions are made

    def _function(
        self, name: str, code: Callable[..., EmittedValue | Partial], *operands: Operand
    ) -> EmittedValue:
        """Call a function of floats; float16 goes through float32."""
        args = [_float(x) for x in _values(*operands)]
        type = args[0].type
        if type.bits == 16:
            wide = F32.vector(type.lanes)
            return self._function(name, code, *[x.cast(wide) for x in args]).cast(type)
        return self._called(name, lambda b, *xs: self._completed(b, code(*xs)), *args)

    def _called(self, name: str, code: Callable[..., EmittedValue], *args: EmittedValue) -> EmittedValue:
        """Call a function whose code is `code(builder, *args)`, emitted unless the module has it."""
        type = args[0].type
        symbol = f"df.{name}.{type.suffix if type.kind != 'u' else type.suffix.replace('i', 'u')}"
        if not self.module.has(symbol):
            names = "xyz"[: len(args)]
            made = self.module.function(
                symbol, type, [(n, type) for n in names], self._attributes, internal=True
            )
            made.builder.ret(code(made.builder, *made.args))
        return args[0].emitter.call(symbol, args)

    def _completed(self, b: Builder, result: EmittedValue | Partial) -> EmittedValue:
        """The whole result: what a partial one lacks comes from libm, in a branch rarely taken."""
        if isinstance(result, EmittedValue):
            return result
        return b.if_else(result.wrong.any(), lambda: [self._by_libm(b, result)], lambda: [result.value])[0]

    def _by_libm(self, b: Builder, partial: Partial) -> EmittedValue:
        """libm's values in the lanes that are wrong, by an outlined loop over the lanes."""
        type, count = partial.value.type, len(partial.args)
        libm = partial.symbol + ("f" if type.bits == 32 else "")
        self.module.declare(libm, type.scalar, [type.scalar] * count)
        if type.lanes == 1:
            return b.call(libm, partial.args)
        symbol = f"df.lanes.{libm}.{type.suffix}"
        if not self.module.has(symbol):
            self._outline(symbol, libm, type, count)
        return b.call(symbol, [partial.value, partial.wrong, *partial.args])

    def _outline(self, symbol: str, libm: str, type: Type, count: int) -> None:
        """Define the loop that calls libm for the lanes that a mask names."""
        parameters = [("value", type), ("wrong", BOOL.vector(type.lanes))]
        parameters += [(f"x{i}", type) for i in range(count)]
        made = self.module.function(symbol, type, parameters, "noinline cold", internal=True)
        b, (value, wrong, *xs) = made.builder, made.args
        with b.loop(0, type.lanes, carried=[value]) as loop:

            def replaced() -> list[EmittedValue]:
                called = b.call(libm, [x.lane(loop.index) for x in xs])
                return [loop.carried[0].insert(loop.index, called)]

            loop.next(*b.if_else(wrong.lane(loop.index), replaced, lambda: loop.carried))
        b.ret(loop.results[0])


def _values(*operands: Operand) -> list[EmittedValue]:
    """Operands as values of equal lanes, numbers as constants."""
    known = [x for x in operands if isinstance(x, EmittedValue)]
    widest = max(known, key=lambda x: x.type.lanes)
    constants = widest.emitter.constant
    return [
        x.splat(widest.type.lanes) if isinstance(x, EmittedValue) else constants(widest.type, x)
        for x in operands
    ]


def _float(x: EmittedValue) -> EmittedValue:
    """The operand of a float function."""
    if x.type.kind != "f":
        raise DTypeError(f"a function of floats was given {x.type}: cast it to a float dtype first")
    return x
