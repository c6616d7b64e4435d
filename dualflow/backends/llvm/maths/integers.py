"""Integer division by constants, and integer powers."""

from __future__ import annotations

from dualflow.backends.llvm.text import Builder, EmittedValue, Type


def is_constant_divisor(y: EmittedValue) -> bool:
    """Whether ``y`` is a constant other than 0 and -1: LLVM lowers divisions by it to shifts and products."""
    bits = y.literal
    return bits is not None and bits not in (0, (1 << y.type.bits) - 1)


def divide_by_constant(x: EmittedValue, y: EmittedValue) -> EmittedValue:
    """The quotient of integers by a constant, rounded down; ``y`` satisfies :func:`is_constant_divisor`."""
    power = _constant_power(y)
    return y.eq(0).select(0, x // y) if power is None else x >> power


def mod_by_constant(x: EmittedValue, y: EmittedValue) -> EmittedValue:
    """The remainder of :func:`divide_by_constant`."""
    power = _constant_power(y)
    return y.eq(0).select(0, x - x // y * y) if power is None else x & ((1 << power) - 1)


def _constant_power(y: EmittedValue) -> int | None:
    """The exponent of a scalar constant that is a positive power of two; else None."""
    bits = y.literal
    if bits is None or not is_constant_divisor(y) or (y.type.kind == "i" and bits >> (y.type.bits - 1)):
        return None
    return bits.bit_length() - 1 if bits & (bits - 1) == 0 else None


def integer_power(b: Builder, x: EmittedValue, n: EmittedValue) -> EmittedValue:
    """``x**n`` for integers, wrapping, by repeated squaring; ``n`` is read as unsigned."""
    remaining = n.bitcast(Type("u", n.type.bits, n.type.lanes))
    with b.while_loop([x.emitter.constant(x.type, 1), x, remaining]) as loop:
        result, square, remaining = loop.carried
        loop.test(remaining.ne(0).any())
        odd = (remaining & 1).ne(0)
        loop.next(odd.select(result * square, result), square * square, remaining >> 1)
    return loop.results[0]
