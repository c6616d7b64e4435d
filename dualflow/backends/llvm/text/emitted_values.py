"""Values: registers and constants with Python operators, which append instructions to an emitter."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from dualflow.backends.llvm.text.types import BOOL, F32, I32, I64, PTR, VOID, Type
from dualflow.core.errors import DTypeError

_ADD, _SUB, _MUL = ({"f": f"f{op}", "i": op, "u": op} for op in ("add", "sub", "mul"))
_TRUE_DIVIDE = {"f": "fdiv"}
_QUOTIENT, _REMAINDER = ({"i": f"s{op}", "u": f"u{op}"} for op in ("div", "rem"))
_SHIFT_LEFT = {"i": "shl", "u": "shl"}
_SHIFT_RIGHT = {"i": "ashr", "u": "lshr"}
_AND, _OR, _XOR = ({"i": op, "u": op, "b": op} for op in ("and", "or", "xor"))
_LT, _LE, _GT, _GE = (
    {"f": f"fcmp o{op}", "i": f"icmp s{op}", "u": f"icmp u{op}", "b": f"icmp u{op}"}
    for op in ("lt", "le", "gt", "ge")
)
_EQ = {"f": "fcmp oeq", **dict.fromkeys("iubp", "icmp eq")}
_NE = {"f": "fcmp une", **dict.fromkeys("iubp", "icmp ne")}


@functools.cache
def _iota_literal(type: Type) -> str:
    """The text of the constant vector 0, 1, 2 ...; 0 for a type of one lane."""
    lanes = [f"{type.scalar} {type.scalar.literal(i)}" for i in range(type.lanes)]
    return f"<{', '.join(lanes)}>" if type.lanes > 1 else type.literal(0)


class Symbols:
    """The signatures of a module's functions, and the declarations of external ones.

    Attributes:
        converts_halves: whether the processor has instructions that cast float16.
    """

    def __init__(self, *, converts_halves: bool = True) -> None:
        self.converts_halves = converts_halves
        self.signatures: dict[str, tuple[Type, tuple[Type, ...]]] = {}
        self.declarations: dict[str, str] = {}

    def has(self, name: str) -> bool:
        """Whether a function is defined or declared."""
        return name in self.signatures

    def declare(self, name: str, ret: Type, args: Sequence[Type], attributes: str = "nounwind") -> str:
        """Declare an external function, resolved when the object is linked; idempotent. Returns its name."""
        if name not in self.signatures:
            self.signatures[name] = ret, tuple(args)
            parameters = ", ".join([a.text for a in args])
            self.declarations[name] = f"declare {ret} @{name}({parameters}) {attributes}"
        return name


class Emitter:
    """Appends instructions to the lines of a block, and names their results."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.lines: list[str] = []
        self._count = 0

    def emit(self, type: Type, instruction: str) -> EmittedValue:
        """Append any LLVM instruction with a result."""
        self._count = count = self._count + 1
        name = f"%v{count}"
        self.lines.append(f"  {name} = {instruction}")
        return EmittedValue(self, type, name)

    def line(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def constant(self, type: Type, number: float) -> EmittedValue:
        """A constant of a type (see ``Type.literal``)."""
        return EmittedValue(self, type, type.literal(number))

    def iota(self, type: Type) -> EmittedValue:
        """The constant vector 0, 1, 2 ... of a type."""
        return EmittedValue(self, type, _iota_literal(type))

    def address(self, name: str) -> EmittedValue:
        """The address of a function or of constant data."""
        return EmittedValue(self, PTR, f"@{name}")

    def call(self, name: str, args: Sequence[EmittedValue] = ()) -> EmittedValue:
        """Call a defined or declared function."""
        ret, expected = self.symbols.signatures[name]
        if [a.type.text for a in args] != [e.text for e in expected]:
            raise DTypeError(f"{name} takes {list(expected)}, not {[a.type for a in args]}")
        return self._call(ret, f"@{name}", args)

    def call_pointer(self, pointer: EmittedValue, ret: Type, args: Sequence[EmittedValue]) -> EmittedValue:
        """Call a function by its address."""
        return self._call(ret, pointer.text, args)

    def intrinsic(
        self, name: str, *args: EmittedValue, ret: Type | None = None, overloads: str | None = None
    ) -> EmittedValue:
        """Call an LLVM intrinsic, declared on first use.

        The result's type, and the suffix of the overload, are by default those of the first operand:
        ``intrinsic("llvm.sqrt", x)``.
        """
        type = ret or args[0].type
        name = f"{name}.{overloads or type.suffix}"
        if name not in self.symbols.signatures:
            self.symbols.declare(name, type, [a.type for a in args], "")
        return self._call(type, f"@{name}", args)

    def _call(self, ret: Type, callee: str, args: Sequence[EmittedValue]) -> EmittedValue:
        instruction = f"call {ret.text} {callee}({', '.join([f'{a.type.text} {a.text}' for a in args])})"
        if ret is not VOID:
            return self.emit(ret, instruction)
        self.line(instruction)
        return EmittedValue(self, VOID, "")


class EmittedValue:
    """A register or a constant: Python operators on it append instructions.

    The other operand may be a Python number (a constant of this type) or, for a vector, a scalar (splatted).
    Two values of different types are an error; convert one with ``cast``.
    """

    __slots__ = ("emitter", "text", "type")
    __array_ufunc__ = None  # so that a NumPy scalar on the left calls our reflected operators

    def __init__(self, emitter: Emitter, type: Type, text: str) -> None:
        self.emitter, self.type, self.text = emitter, type, text

    def __repr__(self) -> str:
        return f"{self.type} {self.text}"

    @property
    def literal(self) -> int | None:
        """The bits of a scalar integer constant; None for any other value."""
        is_constant = self.type.kind in "iu" and self.type.lanes == 1 and self.text.isdecimal()
        return int(self.text) if is_constant else None

    def __bool__(self) -> bool:
        raise DTypeError(f"{self!r} has no truth value while code is written: use `select` or `if_then`")

    # Operators

    def _binary(self, opcodes: dict[str, str], other: Operand) -> EmittedValue:
        left, right = self, other if isinstance(other, EmittedValue) else self._constant(other)
        if right.type is not left.type:
            left, right = _matched(left, right)
        type = left.type
        if type.bits == 16 and type.kind == "f":
            return left._in_float32(opcodes, right).cast(type)
        opcode = opcodes.get(type.kind)
        if opcode is None:
            raise DTypeError(f"no such operation on {type} values: it takes kinds {sorted(opcodes)}")
        return self.emitter.emit(type, f"{opcode} {type.text} {left.text}, {right.text}")

    def _compare(self, opcodes: dict[str, str], other: Operand) -> EmittedValue:
        half = self.type.bits == 16 and self.type.kind == "f"
        result = self._in_float32(opcodes, other) if half else self._binary(opcodes, other)
        result.type = BOOL.vector(result.type.lanes)
        return result

    def _in_float32(self, opcodes: dict[str, str], other: Operand) -> EmittedValue:
        """A float16 operation, computed in float32."""
        right = other if isinstance(other, EmittedValue) else self._constant(other)
        left, right = _matched(self, right)
        wide = F32.vector(left.type.lanes)
        return left.cast(wide)._binary(opcodes, right.cast(wide))

    def _constant(self, number: float) -> EmittedValue:
        return EmittedValue(self.emitter, self.type, self.type.literal(number))

    def __add__(self, other: Operand) -> EmittedValue:
        return self._binary(_ADD, other)

    def __sub__(self, other: Operand) -> EmittedValue:
        return self._binary(_SUB, other)

    def __mul__(self, other: Operand) -> EmittedValue:
        return self._binary(_MUL, other)

    def __truediv__(self, other: Operand) -> EmittedValue:
        return self._binary(_TRUE_DIVIDE, other)

    def __and__(self, other: Operand) -> EmittedValue:
        return self._binary(_AND, other)

    def __or__(self, other: Operand) -> EmittedValue:
        return self._binary(_OR, other)

    def __xor__(self, other: Operand) -> EmittedValue:
        return self._binary(_XOR, other)

    def __lshift__(self, other: Operand) -> EmittedValue:
        return self._binary(_SHIFT_LEFT, other)

    def __rshift__(self, other: Operand) -> EmittedValue:
        return self._binary(_SHIFT_RIGHT, other)

    def __radd__(self, number: float) -> EmittedValue:
        return self._constant(number)._binary(_ADD, self)

    def __rsub__(self, number: float) -> EmittedValue:
        return self._constant(number)._binary(_SUB, self)

    def __rmul__(self, number: float) -> EmittedValue:
        return self._constant(number)._binary(_MUL, self)

    def __rtruediv__(self, number: float) -> EmittedValue:
        return self._constant(number)._binary(_TRUE_DIVIDE, self)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lt__(self, other: Operand) -> EmittedValue:
        return self._compare(_LT, other)

    def __le__(self, other: Operand) -> EmittedValue:
        return self._compare(_LE, other)

    def __gt__(self, other: Operand) -> EmittedValue:
        return self._compare(_GT, other)

    def __ge__(self, other: Operand) -> EmittedValue:
        return self._compare(_GE, other)

    def eq(self, other: Operand) -> EmittedValue:
        """Equal; false if either operand is NaN."""
        return self._compare(_EQ, other)

    def ne(self, other: Operand) -> EmittedValue:
        """Not equal; true if either operand is NaN. Integer constants are compared now."""
        if isinstance(other, int) and self.literal is not None:
            differs = self.literal != other & ((1 << self.type.bits) - 1)
            return EmittedValue(self.emitter, BOOL, BOOL.literal(differs))
        return self._compare(_NE, other)

    def __neg__(self) -> EmittedValue:
        if self.type.kind == "f":
            return self.emitter.emit(self.type, f"fneg {self.type.text} {self.text}")
        return self._constant(0)._binary(_SUB, self)

    def __invert__(self) -> EmittedValue:
        return self._binary(_XOR, -1)

    def __abs__(self) -> EmittedValue:
        if self.type.kind == "i":
            return self.emitter.intrinsic("llvm.abs", self, self.emitter.constant(BOOL, False))
        return self.emitter.intrinsic("llvm.fabs", self) if self.type.kind == "f" else self

    def quotient(self, divisor: Operand) -> EmittedValue:
        """Integer division towards zero, one instruction."""
        return self._binary(_QUOTIENT, divisor)

    def remainder(self, divisor: Operand) -> EmittedValue:
        """The remainder of ``quotient``, with the sign of the dividend."""
        return self._binary(_REMAINDER, divisor)

    def __floordiv__(self, divisor: Operand) -> EmittedValue:
        """Integer division towards minus infinity, as in Python; the divisor is not 0."""
        quotient = self.quotient(divisor)
        return (
            quotient - self._needs_floor(divisor).cast(quotient.type) if self.type.kind == "i" else quotient
        )

    def __mod__(self, divisor: Operand) -> EmittedValue:
        """The remainder of ``//``, with the sign of the divisor."""
        remainder = self.remainder(divisor)
        if self.type.kind == "u":
            return remainder
        return self._needs_floor(divisor).select(remainder + divisor, remainder)

    def _needs_floor(self, divisor: Operand) -> EmittedValue:
        """Whether a signed division has a remainder, and the signs differ."""
        remainder = self.remainder(divisor)
        return remainder.ne(0) & ((remainder ^ divisor) < 0)

    def fma(self, factor: Operand, term: Operand) -> EmittedValue:
        """``self * factor + term``, rounded once."""
        operands = [o if isinstance(o, EmittedValue) else self._constant(o) for o in (factor, term)]
        return self.emitter.intrinsic("llvm.fma", self, *operands)

    def frozen(self) -> EmittedValue:
        """The same number, which LLVM's loop passes don't rewrite (by ``freeze``)."""
        return self.emitter.emit(self.type, f"freeze {self.type.text} {self.text}")

    # Choosing and converting

    def select(self, yes: Operand, no: Operand) -> EmittedValue:
        """``yes`` in the lanes where this condition is true, ``no`` elsewhere; one may be a Python number."""
        if not isinstance(yes, EmittedValue):
            if not isinstance(no, EmittedValue):
                raise DTypeError(f"select({yes}, {no}) has no type: make one of them a value with `constant`")
            yes = no._constant(yes)
        elif not isinstance(no, EmittedValue):
            no = yes._constant(no)
        yes, no = _matched(yes, no)
        condition = self
        if condition.type.lanes > 1:
            yes, no = yes.splat(condition.type.lanes), no.splat(condition.type.lanes)
        operands = ", ".join([f"{v.type.text} {v.text}" for v in (condition, yes, no)])
        return self.emitter.emit(yes.type, f"select {operands}")

    def any(self) -> EmittedValue:
        """Whether any lane of a mask is true, as a scalar."""
        return self.bitcast(Type("u", self.type.lanes)).ne(0) if self.type.lanes > 1 else self

    def all(self) -> EmittedValue:
        """Whether all lanes of a mask are true, as a scalar."""
        return self.bitcast(Type("u", self.type.lanes)).eq(-1) if self.type.lanes > 1 else self

    def bitcast(self, type: Type) -> EmittedValue:
        """The same bits as another type of the same size."""
        if type.text == self.type.text:
            return EmittedValue(self.emitter, type, self.text)
        return self._convert("bitcast", type)

    def cast(self, type: Type) -> EmittedValue:
        """The same number in another type, as NumPy's ``astype``; a scalar is splatted to the type's lanes.

        Float to integer conversions that C leaves undefined saturate; nan gives 0.
        """
        source = self.type
        if source is type:
            return self
        if source.lanes != type.lanes:
            return (self.cast(type.scalar) if source.lanes == 1 else self).splat(type.lanes)
        kinds = source.kind, type.kind
        if "w" in kinds:
            return self._from_brain().cast(type) if source.kind == "w" else self._to_brain(type)
        if type.kind == "b":
            return self.ne(0)
        if kinds == ("f", "f"):
            return self._as_float(type)
        if type.kind == "f":
            if type.bits == 16:
                return self.cast(F32.vector(type.lanes)).cast(type)
            return self._convert("sitofp" if source.kind == "i" else "uitofp", type)
        if source.kind == "f":
            return self._as_integer(type)
        if "p" in kinds:
            return self._convert("ptrtoint" if source.kind == "p" else "inttoptr", type)
        if type.bits == source.bits:
            return EmittedValue(self.emitter, type, self.text)
        wider = "sext" if source.kind == "i" else "zext"
        return self._convert("trunc" if type.bits < source.bits else wider, type)

    def _from_brain(self) -> EmittedValue:
        """The float32 of a bfloat16, which is its upper half."""
        wide = Type("i", 32, self.type.lanes)
        return (self._convert("zext", wide) << 16).bitcast(F32.vector(self.type.lanes))

    def _to_brain(self, type: Type) -> EmittedValue:
        """The bfloat16 nearest to this number's float32 (as in ml_dtypes), ties to even; nan stays nan."""
        number = self.cast(F32.vector(type.lanes))
        bits = number.bitcast(number.type.as_int)
        even = (bits >> 16) & 1
        quiet = (bits | 0x400000) >> 16
        return number.ne(number).select(quiet, (bits + even + 0x7FFF) >> 16)._convert("trunc", type)

    def _from_half(self, type: Type) -> EmittedValue:
        """The float of a float16."""
        if self.emitter.symbols.converts_halves:
            return self._convert("fpext", type)
        wide = F32.vector(type.lanes)
        bits = self.bitcast(self.type.as_int)._convert("zext", wide.as_int)
        size = (bits & 0x7FFF) << 13
        scaled = (size.bitcast(wide) * 2.0**112).bitcast(size.type)
        number = (size >= 0x7C00 << 13).select(size | 0x7F800000, scaled) | ((bits & 0x8000) << 16)
        return number.bitcast(wide).cast(type)

    def _to_half(self, type: Type) -> EmittedValue:
        """The nearest float16 of a float32, ties to even."""
        if self.emitter.symbols.converts_halves:
            return self._convert("fptrunc", type)
        bits = self.bitcast(self.type.as_int)
        size = bits & 0x7FFFFFFF
        normal = (size - ((127 - 15 << 23) - 0xFFF) + ((size >> 13) & 1)) >> 13
        tiny = (size.bitcast(self.type) + 0.5).bitcast(size.type) - (126 << 23)  # the sum rounds
        large = (size > 0x7F800000).select((size >> 13) & 0x3FF | 0x7E00, 0x7C00)
        rounded = (size < 113 << 23).select(tiny, (size < 143 << 23).select(normal, large))
        return (rounded | ((bits >> 16) & 0x8000))._convert("trunc", type.as_int).bitcast(type)

    def _as_float(self, type: Type) -> EmittedValue:
        if self.type.bits == 16:
            return self._from_half(type)
        if type.bits > self.type.bits:
            return self._convert("fpext", type)
        if (self.type.bits, type.bits) != (64, 16):
            return self._convert("fptrunc", type) if type.bits > 16 else self._to_half(type)
        # Through float32 rounded to odd, to avoid double rounding.
        middle = F32.vector(type.lanes)
        rounded = self._convert("fptrunc", middle)
        back = rounded._convert("fpext", self.type)
        bits = rounded.bitcast(middle.as_int)
        odd = (bits - (abs(back) > abs(self)).cast(bits.type)) | 1
        inexact = (back < self) | (back > self)
        return inexact.select(odd, bits).bitcast(middle)._to_half(type)

    def _as_integer(self, type: Type) -> EmittedValue:
        if self.type.bits == 16:
            return self.cast(F32.vector(type.lanes)).cast(type)
        if type.bits == 64 or (type.kind, type.bits) == ("i", 32):
            return self._saturated(type)
        low = 0 if type.kind == "u" else -(1 << (type.bits - 1))
        if type.bits < 32:  # a float in range needs no saturating cast, which takes several times longer
            number = self.eq(self).select(self, 0.0)._capped(low, low + (1 << type.bits) - 1)
            return number._convert("fptosi", I32.vector(type.lanes)).cast(type)
        return self._saturated(I64.vector(type.lanes))._capped(low, (1 << type.bits) - 1).cast(type)

    def _capped(self, low: int, high: int) -> EmittedValue:
        capped = (self > high).select(high, self)
        return (capped < low).select(low, capped)

    def _saturated(self, type: Type) -> EmittedValue:
        name = "llvm.fptosi.sat" if type.kind == "i" else "llvm.fptoui.sat"
        return self.emitter.intrinsic(name, self, ret=type, overloads=f"{type.suffix}.{self.type.suffix}")

    def _convert(self, opcode: str, type: Type) -> EmittedValue:
        return self.emitter.emit(type, f"{opcode} {self.type.text} {self.text} to {type.text}")

    # Lanes

    def splat(self, lanes: int) -> EmittedValue:
        """This scalar in every lane; a vector with ``lanes`` lanes is returned unchanged."""
        if lanes == self.type.lanes:
            return self
        if self.type.lanes != 1:
            raise DTypeError(f"a {self.type} cannot be spread to {lanes} lanes: only a scalar can")
        type = self.type.vector(lanes)
        if type.kind == "c":
            return self.parts()[0].splat(lanes).interleave(self.parts()[1].splat(lanes))
        if self.text[0] != "%":
            return EmittedValue(self.emitter, type, f"splat ({self.type.text} {self.text})")
        return EmittedValue(self.emitter, type, "poison").insert(0, self).shuffle([0] * lanes)

    def lane(self, index: EmittedValue | int) -> EmittedValue:
        """One lane, as a scalar."""
        position = index if isinstance(index, EmittedValue) else self.emitter.constant(I64, index)
        operands = f"{self.type.text} {self.text}, {position.type.text} {position.text}"
        return self.emitter.emit(self.type.scalar, f"extractelement {operands}")

    def insert(self, index: EmittedValue | int, value: EmittedValue) -> EmittedValue:
        """This vector with one lane replaced."""
        position = index if isinstance(index, EmittedValue) else self.emitter.constant(I64, index)
        operands = f"{value.type.text} {value.text}, {position.type.text} {position.text}"
        return self.emitter.emit(self.type, f"insertelement {self.type.text} {self.text}, {operands}")

    def shuffle(self, lanes: Sequence[int], other: EmittedValue | None = None) -> EmittedValue:
        """The lanes with constant numbers of this vector followed by ``other``."""
        type = self.type.text
        mask = ", ".join([f"i32 {i}" for i in lanes])
        second = "poison" if other is None else other.text
        instruction = f"shufflevector {type} {self.text}, {type} {second}, <{len(lanes)} x i32> <{mask}>"
        return self.emitter.emit(self.type.vector(len(lanes)), instruction)

    def parts(self) -> tuple[EmittedValue, EmittedValue]:
        """The real and the imaginary parts of complex lanes."""
        part, lanes = self.type.part, self.type.lanes
        both = EmittedValue(self.emitter, part.vector(2 * lanes), self.text)
        if lanes == 1:
            return both.lane(0), both.lane(1)
        return both.shuffle(range(0, 2 * lanes, 2)), both.shuffle(range(1, 2 * lanes, 2))

    def interleave(self, other: EmittedValue) -> EmittedValue:
        """The lanes of two vectors interleaved; floats become the parts of complex lanes."""
        type, lanes = self.type, self.type.lanes
        if lanes == 1:
            pairs = EmittedValue(self.emitter, type.vector(2), "poison").insert(0, self).insert(1, other)
        else:
            pairs = self.shuffle([i // 2 + i % 2 * lanes for i in range(2 * lanes)], other)
        if type.kind == "f":
            pairs.type = Type("c", 2 * type.bits, lanes)
        return pairs

    def reduce(self, combine: Callable[[EmittedValue, EmittedValue], EmittedValue]) -> EmittedValue:
        """All lanes (a power of two) combined into a scalar, halves first: ``v.reduce(operator.add)``."""
        value = self
        while value.type.lanes > 2:
            half = value.type.lanes // 2
            value = combine(value.shuffle(range(half)), value.shuffle(range(half, 2 * half)))
        return combine(value.lane(0), value.lane(1)) if value.type.lanes == 2 else value


Operand = EmittedValue | float


def _matched(left: EmittedValue, right: EmittedValue) -> tuple[EmittedValue, EmittedValue]:
    """Two values of one type: a scalar is splatted to the other's lanes."""
    if left.type is not right.type:
        if left.type.lanes == 1:
            left = left.splat(right.type.lanes)
        elif right.type.lanes == 1:
            right = right.splat(left.type.lanes)
        if left.type is not right.type:
            raise DTypeError(f"operands are {left.type} and {right.type}: cast one of them")
    return left, right
