"""``Maths``: all scalar ops over emitted values. Ops with a definition become functions of the module."""

from __future__ import annotations

from collections.abc import Callable

from dualflow.backends.llvm.maths.instructions import Instructions, Operand, as_float, values
from dualflow.backends.llvm.maths.integers import (
    divide_by_constant,
    integer_power,
    is_constant_divisor,
    mod_by_constant,
)
from dualflow.backends.llvm.text import BOOL, F32, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.dtypes import as_dtype
from dualflow.scalar import ScalarOp, evaluate
from dualflow.scalar.defined_ops import DefinedOps
from dualflow.scalar.maths import Definition, definition


class Maths(Instructions, DefinedOps):
    """The namespace of scalar ops over values of any number of lanes, which :func:`evaluate` takes.

    Numbers among the operands become constants. Float functions take float16, float32 and float64; float16
    is computed in float32. Denormals, infinities, NaN and signed zeros are handled as in C.

    Everything is inline vector code, but sin, cos and tan beyond 2**16 (2**30 in float64) and fmod, mod and
    floor_divide of quotients beyond 2**22 (2**51), which call C's function lane by lane, out of line.

    ``module`` receives the functions. With ``inline=False`` they stay functions, which keeps the compile time
    of huge kernels linear in their size.

    >>> module = LlvmModule()
    >>> m, f = Maths(module), module.function("softplus", F32, [("x", F32)])
    >>> x = f.args[0]
    >>> f.builder.ret(m.log1p(m.exp(-m.abs(x))) + m.maximum(x, 0))
    >>> sorted(module.functions)
    ['df.exp.f32', 'df.log1p.f32', 'softplus']
    """

    def __init__(self, module: LlvmModule, inline: bool = True, builder: Builder | None = None) -> None:
        super().__init__(builder)
        self.module, self.inline = module, inline

    # Powers, and division that rounds down

    def pow(self, x: Operand, y: Operand) -> EmittedValue:
        """``x**y``: of floats as C's pow, of integers wrapping, where ``y`` is not negative."""
        x, y = values(x, y)
        if x.type.kind == "f":
            return self.defined(ScalarOp.POW, x, y)
        return self._call_function("pow", integer_power, x, y)

    def mod(self, x: Operand, y: Operand) -> EmittedValue:
        """The remainder of ``floor_divide``, with the sign of ``y``; 0 for an integer ``y`` of 0."""
        x, y = values(x, y)
        if x.type.kind == "f":
            return self.defined(ScalarOp.MOD, x, y)
        return mod_by_constant(x, y) if is_constant_divisor(y) else self._call_definition(ScalarOp.MOD, x, y)

    def floor_divide(self, x: Operand, y: Operand) -> EmittedValue:
        """The quotient rounded down; 0 for an integer ``y`` of 0."""
        x, y = values(x, y)
        if x.type.kind == "f":
            return self.defined(ScalarOp.FLOOR_DIVIDE, x, y)
        if is_constant_divisor(y):
            return divide_by_constant(x, y)
        return self._call_definition(ScalarOp.FLOOR_DIVIDE, x, y)

    def multiply_add(self, x: Operand, y: Operand, z: Operand) -> EmittedValue:
        """``x * y + z``, rounded once on processors with an FMA instruction."""
        x, y, z = values(x, y, z)
        return x.fma(y, z) if self.module.vector_bits > 128 else x * y + z

    # Functions of the module

    def defined(self, op: ScalarOp, *operands: Operand) -> EmittedValue:
        """Call the definition of ``op`` for floats; float16 goes through float32."""
        args = [as_float(x) for x in values(*operands)]
        type = args[0].type
        if type.bits == 16:
            wide = F32.vector(type.lanes)
            return self.defined(op, *[x.cast(wide) for x in args]).cast(type)
        return self._call_definition(op, *args)

    def _call_definition(self, op: ScalarOp, *args: EmittedValue) -> EmittedValue:
        operation = definition(op, as_dtype(args[0].type.dtype))
        return self._call_function(op.value, lambda b, *xs: self.body(operation, b, xs), *args)

    def body(self, operation: Definition, b: Builder, args: tuple[EmittedValue, ...]) -> EmittedValue:
        """The result of a definition, emitted by ``b``; libm computes the lanes that need the fallback."""
        value, *needs_fallback = evaluate(operation.function, self.emitting(b), args)
        if operation.fallback is None:
            return value
        fallback = operation.fallback
        return b.if_else(
            needs_fallback[0].any(),
            lambda: [self._by_libm(b, fallback, value, needs_fallback[0], args)],
            lambda: [value],
        )[0]

    def emitting(self, b: Builder) -> Maths:
        """This namespace, with constants emitted by ``b``."""
        return Maths(self.module, self.inline, b)

    def _call_function(
        self, name: str, code: Callable[..., EmittedValue], *args: EmittedValue
    ) -> EmittedValue:
        """Call a function whose code is ``code(builder, *args)``, emitted unless the module has it."""
        type = args[0].type
        symbol = f"df.{name}.{type.suffix if type.kind != 'u' else type.suffix.replace('i', 'u')}"
        if not self.module.has(symbol):
            names = "xyz"[: len(args)]
            function = self.module.function(
                symbol,
                type,
                [(n, type) for n in names],
                "alwaysinline" if self.inline else "noinline",
                internal=True,
            )
            function.builder.ret(code(function.builder, *function.args))
        return args[0].emitter.call(symbol, args)

    def _by_libm(
        self,
        b: Builder,
        symbol: str,
        value: EmittedValue,
        needs_fallback: EmittedValue,
        args: tuple[EmittedValue, ...],
    ) -> EmittedValue:
        """``value`` with libm's results in the lanes of the mask, by an outlined loop over the lanes."""
        type, count = value.type, len(args)
        libm = symbol + ("f" if type.bits == 32 else "")
        self.module.declare(libm, type.scalar, [type.scalar] * count)
        if type.lanes == 1:
            return b.call(libm, args)
        symbol = f"df.lanes.{libm}.{type.suffix}"
        if not self.module.has(symbol):
            self._outline(symbol, libm, type, count)
        return b.call(symbol, [value, needs_fallback, *args])

    def _outline(self, symbol: str, libm: str, type: Type, count: int) -> None:
        """Define the loop that calls libm for the lanes of a mask."""
        parameters = [("value", type), ("needs_fallback", BOOL.vector(type.lanes))]
        parameters += [(f"x{i}", type) for i in range(count)]
        function = self.module.function(symbol, type, parameters, "noinline cold", internal=True)
        b, (value, needs_fallback, *xs) = function.builder, function.args
        with b.loop(0, type.lanes, carried=[value]) as loop:

            def replaced() -> list[EmittedValue]:
                called = b.call(libm, [x.lane(loop.index) for x in xs])
                return [loop.carried[0].insert(loop.index, called)]

            loop.next(*b.if_else(needs_fallback.lane(loop.index), replaced, lambda: loop.carried))
        b.ret(loop.results[0])
