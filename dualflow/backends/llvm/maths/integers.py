"""Division that rounds down, and powers, of integers, as NumPy has them."""

from __future__ import annotations

from dualflow.backends.llvm.text import F64, Builder, EmittedValue, Type


def is_known(y: EmittedValue) -> bool:
    """Whether `y` is a scalar constant, neither 0 nor -1: dividing by it is shifts and products."""
    bits = y.literal
    return bits is not None and bits not in (0, (1 << y.type.bits) - 1)


def integer_floor_divide(x: EmittedValue, y: EmittedValue) -> EmittedValue:
    """The quotient of integers, rounded down; 0 where `y` is 0."""
    power = _known_power(y)
    return y.eq(0).select(0, _quotient(x, y)) if power is None else x >> power


def integer_mod(x: EmittedValue, y: EmittedValue) -> EmittedValue:
    """What `integer_floor_divide` leaves; 0 where `y` is 0."""
    power = _known_power(y)
    return y.eq(0).select(0, x - _quotient(x, y) * y) if power is None else x & ((1 << power) - 1)


def _known_power(y: EmittedValue) -> int | None:
    """The exponent of a scalar constant that is a positive power of two."""
    bits = y.literal
    if bits is None or not is_known(y) or (y.type.kind == "i" and bits >> (y.type.bits - 1)):
        return None
    return bits.bit_length() - 1 if bits & (bits - 1) == 0 else None


def _quotient(x: EmittedValue, y: EmittedValue) -> EmittedValue:
    """The rounded-down quotient where `y` is not 0, and no trap where it is."""
    if is_known(y):
        return x // y
    if x.type.bits <= 32:
        # A double holds both numbers and tells their quotient from the next integer; vectors divide it.
        wide = F64.vector(x.type.lanes)
        long = Type("i", 64, x.type.lanes)
        quotient = x.cast(wide) / y.cast(wide)
        return x.emitter.intrinsic("llvm.floor", quotient).cast(long).cast(x.type)
    if x.type.kind == "u":
        return x.quotient(y.eq(0).select(1, y))
    # The smallest integer over -1 traps as well: negation wraps.
    negated = y.eq(-1)
    return negated.select(-x, x // (negated | y.eq(0)).select(1, y))


def integer_power(b: Builder, x: EmittedValue, n: EmittedValue) -> EmittedValue:
    """``x**n`` for integers, wrapping, by repeated squaring; `n` is read as unsigned."""
    remaining = n.bitcast(Type("u", n.type.bits, n.type.lanes))
    with b.while_loop([x.emitter.constant(x.type, 1), x, remaining]) as loop:
        result, square, remaining = loop.carried
        loop.test(remaining.ne(0).any())
        odd = (remaining & 1).ne(0)
        loop.next(odd.select(result * square, result), square * square, remaining >> 1)
    return loop.results[0]
