"""Sizes as C expressions: numbers, and polynomials over the sizes of arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dualflow.schedule.size_text import SizeWriter
from dualflow.sizes.symbolic_sizes import SizeFactor

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


class Sizes(SizeWriter):
    """Writes sizes as C expressions of type int64_t.

    Attributes:
        functions: the functions that the expressions call, by name.
    """

    def __init__(self, names: Mapping[SizeFactor, str], functions: dict[str, str] | None = None) -> None:
        super().__init__(names)
        self.functions: dict[str, str] = {} if functions is None else functions

    def of_another_function(self) -> Sizes:
        """A writer for another C function of the same file, with its own definitions."""
        return Sizes(self.names, self.functions)

    def definition_lines(self, text: str) -> list[str]:
        """The declarations of the definitions that ``text`` needs."""
        return [f"    const int64_t {name} = {x};" for name, x in self.definitions_for(text).items()]

    def call(self, name: str, arguments: list[str]) -> str:
        self.functions.setdefault(name, _FUNCTIONS[name])
        return f"df_{name}({', '.join(arguments)})"
