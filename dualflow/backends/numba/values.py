"""Values whose operators write Python source for Numba: the other kind of value that maths is written in.

Every number has an explicit dtype, since Numba's own rules would widen: ``int32 + int32`` is int64 there, and
``float32 * 0.5`` is float64. What is used again has a name of its own; the rest stays an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from dualflow.backends.llvm.text import EmittedValue, Type
from dualflow.core.errors import DTypeError

Operand = EmittedValue | float


class SupportCalls(Protocol):
    """Where a builder learns how the source calls functions beside its own code."""

    def instruction(self, name: str, arity: int) -> str:
        """The intrinsic ``llvm.name``."""
        ...

    def primitive(self, name: str) -> str:
        """Another single instruction."""
        ...

    def called(self, name: str) -> str:
        """A function that has been written or declared."""
        ...


def type_name(type: Type) -> str:
    """How the source names a type: ``f32``, ``u8``, ``b1``.

    >>> from dualflow.backends.llvm.text import BOOL, F32
    >>> type_name(F32), type_name(BOOL)
    ('f32', 'b1')
    """
    return f"{type.kind}{type.bits}"


class Lines:
    """Source lines under construction, and the names used so far."""

    def __init__(self, depth: int = 1) -> None:
        self.text: list[str] = []
        self.depth = depth
        self._count = 0

    def add(self, line: str) -> None:
        self.text.append("    " * self.depth + line)

    def rename(self, old: str, new: str) -> bool:
        """Let the last line name its value ``new``, if at this depth it has made the temporary ``old``."""
        head = "    " * self.depth + f"{old} = "
        if not old.startswith("t") or not self.text or not self.text[-1].startswith(head):
            return False
        self.text[-1] = "    " * self.depth + f"{new} = {self.text[-1][len(head) :]}"
        return True

    def name(self) -> str:
        """A new name of a temporary."""
        self._count += 1
        return f"t{self._count}"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines that stand under ``head``."""
        self.add(head)
        self.depth += 1
        length = len(self.text)
        yield
        if len(self.text) == length:
            self.add("pass")
        self.depth -= 1


class SourceValue(EmittedValue):
    """A name or a constant of a scalar type; ``bits`` are those of an integer constant."""

    __slots__ = ("bits",)
    emitter: SourceBuilder  # type: ignore[assignment]  # it has what values ask of an emitter

    def __init__(self, emitter: SourceBuilder, type: Type, text: str, bits: int | None = None) -> None:
        super().__init__(emitter, type, text)  # type: ignore[arg-type]  # a builder of source is one of values
        self.bits = bits

    @property
    def literal(self) -> int | None:
        return self.bits

    # Operators

    def _binary(self, opcodes: dict[str, str], other: Operand) -> EmittedValue:
        left, right = self, self._other(other)
        if left.type is not right.type:
            raise DTypeError(f"operands are {left.type} and {right.type}: cast one of them")
        opcode = opcodes.get(left.type.kind)
        if opcode is None:
            raise DTypeError(f"no such operation on {left.type} values: it takes kinds {sorted(opcodes)}")
        return self.emitter.binary(opcode, left, right)

    def _other(self, other: Operand) -> SourceValue:
        if isinstance(other, SourceValue):
            return other
        assert not isinstance(other, EmittedValue)
        return self._constant(other)

    def _constant(self, number: float) -> SourceValue:
        return self.emitter.constant(self.type, number)

    def ne(self, other: Operand) -> EmittedValue:
        return self._compare(dict.fromkeys("fiub", "!="), other)

    def eq(self, other: Operand) -> EmittedValue:
        return self._compare(dict.fromkeys("fiub", "=="), other)

    def __neg__(self) -> EmittedValue:
        return self.emitter.wrapped(self.type, f"-{self.text}")

    def __invert__(self) -> EmittedValue:
        return self.emitter.expression(self.type, f"not {self.text}") if self.type.kind == "b" else self ^ -1

    def __abs__(self) -> EmittedValue:
        if self.type.kind == "u":
            return self
        return self.emitter.wrapped(self.type, f"abs({self.text})")

    def fma(self, factor: Operand, term: Operand) -> EmittedValue:
        return self.emitter.intrinsic("llvm.fma", self, self._other(factor), self._other(term))

    # Choosing and converting

    def select(self, yes: Operand, no: Operand) -> EmittedValue:
        if not isinstance(yes, SourceValue):
            if not isinstance(no, SourceValue):
                raise DTypeError(f"select({yes}, {no}) has no type: make one of them a value with `constant`")
            yes = no._other(yes)
        no = yes._other(no)
        if yes.type is not no.type:
            raise DTypeError(f"operands are {yes.type} and {no.type}: cast one of them")
        name = self.emitter.support.primitive("select")
        return self.emitter.expression(yes.type, f"{name}({self.text}, {yes.text}, {no.text})")

    def any(self) -> EmittedValue:
        return self

    def all(self) -> EmittedValue:
        return self

    def bitcast(self, type: Type) -> EmittedValue:
        if type is self.type:
            return self
        if type.bits != self.type.bits:
            raise DTypeError(f"a {self.type} has not the size of a {type}")
        if "f" not in (type.kind, self.type.kind):
            return self.emitter.expression(type, f"{type_name(type)}({self.text})")
        return self.emitter.expression(type, f"{type_name(self.type)}({self.text}).view({type_name(type)})")

    def _convert(self, opcode: str, type: Type) -> EmittedValue:
        return self.emitter.expression(type, f"{type_name(type)}({self.text})")

    def cast(self, type: Type) -> EmittedValue:
        if type.kind != "f" and self.type.kind in "iu" and type.kind in "iu" and type is not self.type:
            return self._convert("", type)
        return super().cast(type)

    def _saturated(self, type: Type) -> EmittedValue:
        return self.emitter.saturated(self, type)

    def splat(self, lanes: int) -> EmittedValue:
        return self


class SourceTurn:
    """A turn of a loop that ends when a test fails: what it carries, and afterwards its results."""

    def __init__(self, carried: list[EmittedValue], test: Callable[[EmittedValue], None]) -> None:
        self.carried = self.results = self.following = carried
        self.test = test

    def next(self, *values: EmittedValue) -> None:
        """Give the carried values of the next turn."""
        self.following = list(values)


class SourceBuilder:
    """Fills a function with lines of source; it stands where native code has its builder."""

    def __init__(self, lines: Lines, support: SupportCalls) -> None:
        self.lines, self.support = lines, support

    # Expressions

    def constant(self, type: Type, number: float) -> SourceValue:
        """A constant: floats round to nearest, integers wrap."""
        if type.kind == "b":
            return SourceValue(self, type, "True" if number else "False")
        if type.kind != "f":
            if number != int(number):
                raise DTypeError(f"{number} is not an integer: cast the {type} value to a float type first")
            bits = int(number) & ((1 << type.bits) - 1)
            negative = type.kind == "i" and bits >> (type.bits - 1)
            return SourceValue(self, type, f"{type_name(type)}({bits - (negative << type.bits)})", bits)
        number = float(number)
        return SourceValue(self, type, f"{type_name(type)}({number!r})")

    def named(self, type: Type, name: str) -> SourceValue:
        """A value that has a name."""
        return SourceValue(self, type, name)

    def expression(self, type: Type, text: str) -> SourceValue:
        """A new value, under a name of its own, so that nothing is computed twice."""
        name = self.lines.name()
        self.lines.add(f"{name} = {text}")
        return self.named(type, name)

    def wrapped(self, type: Type, text: str) -> SourceValue:
        """The result of arithmetic, which Numba widens where integers are narrow."""
        narrow = type.kind in "iu" and type.bits < 64
        return self.expression(type, f"{type_name(type)}({text})" if narrow else text)

    def binary(self, opcode: str, left: EmittedValue, right: EmittedValue) -> SourceValue:
        """One operation, by LLVM's name for it."""
        type, a, b = left.type, left.text, right.text
        if opcode in ("sdiv", "udiv", "srem", "urem"):
            name = "quotient" if opcode[1:] == "div" else "remainder"
            return self.wrapped(type, f"{self.support.primitive(name)}({a}, {b})")
        return self.wrapped(type, f"{a} {_SYMBOLS[opcode]} {b}")

    def saturated(self, x: SourceValue, type: Type) -> SourceValue:
        """A float as an integer: the nearest end of the range outside it, 0 for NaN."""
        name = self.support.primitive(f"saturated_{type_name(type)}")
        return self.expression(type, f"{name}({x.text})")

    def intrinsic(
        self, name: str, *args: EmittedValue, ret: Type | None = None, overloads: str | None = None
    ) -> SourceValue:
        """A function that is one machine instruction."""
        bare = self.support.instruction(name.removeprefix("llvm."), len(args))
        return self.expression(args[0].type, f"{bare}({', '.join(a.text for a in args)})")

    def call(self, name: str, args: Sequence[EmittedValue]) -> SourceValue:
        """Call a support function."""
        return self.expression(
            args[0].type, f"{self.support.called(name)}({', '.join(a.text for a in args)})"
        )

    # Control flow

    def if_else(
        self,
        condition: EmittedValue,
        then: Callable[[], Sequence[EmittedValue]],
        otherwise: Callable[[], Sequence[EmittedValue]],
    ) -> list[EmittedValue]:
        """Run one of two pieces of code, and merge the values that they return."""
        names: list[str] = []
        types: list[Type] = []
        for head, code in ((f"if {condition.text}:", then), ("else:", otherwise)):
            with self.lines.block(head):
                values = code()
                if not names:
                    names = [self.lines.name() for _ in values]
                    types = [v.type for v in values]
                for name, value in zip(names, values, strict=True):
                    self.lines.add(f"{name} = {value.text}")
        return [self.named(t, n) for t, n in zip(types, names, strict=True)]

    @contextmanager
    def while_loop(self, carried: Sequence[EmittedValue]) -> Iterator[SourceTurn]:
        """Go round until ``loop.test(condition)`` fails; the results are what was carried into that turn."""
        held = []
        for value in carried:
            name = self.lines.name()
            self.lines.add(f"{name} = {value.text}")
            held.append(self.named(value.type, name))

        def test(condition: EmittedValue) -> None:
            with self.lines.block(f"if not {condition.text}:"):
                self.lines.add("break")

        loop = SourceTurn(list(held), test)
        with self.lines.block("while True:"):
            yield loop
            left, right = ", ".join(v.text for v in held), ", ".join(v.text for v in loop.following)
            self.lines.add(f"{left} = {right}")
        loop.results = list(held)

    def ret(self, value: EmittedValue | None = None) -> None:
        """Return from the function."""
        self.lines.add("return" if value is None else f"return {value.text}")


_SYMBOLS: Final = {
    **{
        f"{k}{name}": symbol for k in ("", "f") for name, symbol in (("add", "+"), ("sub", "-"), ("mul", "*"))
    },
    "fdiv": "/",
    "shl": "<<",
    "ashr": ">>",
    "lshr": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
    "!=": "!=",
    "==": "==",
    **{f"fcmp o{n}": s for n, s in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))},
    **{f"icmp {k}{n}": s for k in "su" for n, s in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))},
}
