"""Sizes as C expressions: numbers, and polynomials over the sizes of arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dualflow.core.records import dataclass, field
from dualflow.core.symbolic_sizes import SizeFactor, SymInt

_FUNCTIONS: Final = {
    "quotient": """\
/* x / y, rounded down; 0 where y is 0. */
static inline int64_t df_quotient(int64_t x, int64_t y)
{
    if (y == 0) return 0;
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}
""",
    "remainder": """\
/* The remainder of the quotient that is rounded down; 0 where y is 0. */
static inline int64_t df_remainder(int64_t x, int64_t y)
{
    const int64_t remainder = y == 0 ? 0 : x % y;
    return remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
}
""",
    "largest": """\
static inline int64_t df_largest(int64_t x, int64_t y)
{
    return x > y ? x : y;
}
""",
    "smallest": """\
static inline int64_t df_smallest(int64_t x, int64_t y)
{
    return x < y ? x : y;
}
""",
    "normalized_index": """\
/* The position x in an axis; a negative one counts from the end. */
static inline int64_t df_normalized_index(int64_t x, int64_t size)
{
    return x < 0 ? x + size : x;
}
""",
    "inferred_size": """\
/* x, or `inferred` where x is -1. */
static inline int64_t df_inferred_size(int64_t x, int64_t inferred)
{
    return x == -1 ? inferred : x;
}
""",
    "broadcast_size": """\
/* The broadcast size of two axes. */
static inline int64_t df_broadcast_size(int64_t x, int64_t y)
{
    return x == 1 ? y : x;
}
""",
    "broadcast_stride": """\
/* The stride of an axis that is repeated if its size is 1. */
static inline int64_t df_broadcast_stride(int64_t stride, int64_t size)
{
    return size == 1 ? 0 : stride;
}
""",
}


@dataclass(frozen=True, slots=True)
class SizeText:
    """An expression of sizes, with the operators of integers."""

    text: str
    is_sum: bool = False

    def __add__(self, other: object) -> SizeText:
        return SizeText(f"{self.text} + {_text(other)}", is_sum=True)

    def __radd__(self, other: object) -> SizeText:
        return SizeText(f"{_text(other)} + {self.text}", is_sum=True)

    def __mul__(self, other: object) -> SizeText:
        return SizeText(f"{self.factor} * {_factor(other)}")

    def __rmul__(self, other: object) -> SizeText:
        return SizeText(f"{_factor(other)} * {self.factor}")

    @property
    def factor(self) -> str:
        """The text as a factor of a product."""
        return f"({self.text})" if self.is_sum else self.text


def _text(x: object) -> str:
    if isinstance(x, SizeText):
        return x.text
    assert isinstance(x, int)
    number = str(x) if abs(x) < 2**31 else f"INT64_C({x})"
    return f"({number})" if x < 0 else number


def _factor(x: object) -> str:
    return x.factor if isinstance(x, SizeText) else _text(x)


@dataclass(slots=True)
class Sizes:
    """Writes sizes.

    Attributes:
        names: the C name of each size variable.
        functions: the functions that the expressions call, by name.
    """

    names: Mapping[SizeFactor, str]
    functions: dict[str, str] = field(default_factory=dict)

    def text(self, size: int) -> str:
        """A size as an expression of type int64_t."""
        return _text(self._value(size))

    def factor(self, size: int) -> str:
        """The same as a factor of a product."""
        return _factor(self._value(size))

    def _value(self, size: int) -> object:
        if not isinstance(size, SymInt):
            return size
        return size.compute(lambda variable: SizeText(self.names[variable]), self)

    def _called(self, name: str, *arguments: object) -> SizeText:
        self.functions.setdefault(name, _FUNCTIONS[name])
        return SizeText(f"df_{name}({', '.join(map(_text, arguments))})")

    def quotient(self, x: object, y: object) -> SizeText:
        return self._called("quotient", x, y)

    def remainder(self, x: object, y: object) -> SizeText:
        return self._called("remainder", x, y)

    def largest(self, x: object, y: object) -> SizeText:
        return self._called("largest", x, y)

    def smallest(self, x: object, y: object) -> SizeText:
        return self._called("smallest", x, y)

    def normalized_index(self, x: object, size: object) -> SizeText:
        return self._called("normalized_index", x, size)

    def inferred_size(self, x: object, remaining: object) -> SizeText:
        return self._called("inferred_size", x, remaining)

    def broadcast_size(self, x: object, y: object) -> SizeText:
        return self._called("broadcast_size", x, y)

    def broadcast_stride(self, stride: object, size: object) -> SizeText:
        return self._called("broadcast_stride", stride, size)
