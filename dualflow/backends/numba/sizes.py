"""Sizes as Python expressions: numbers, and polynomials over the sizes of arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dualflow.schedule.size_text import SizeWriter
from dualflow.sizes.symbolic_sizes import SizeFactor

_BUILT_IN: Final = {"largest": "max", "smallest": "min"}
_FUNCTIONS: Final = {
    "quotient": '''
def quotient(x, y):
    """x // y; 0 where y is 0."""
    return x // y if y else 0
''',
    "remainder": '''
def remainder(x, y):
    """x % y; 0 where y is 0."""
    return x % y if y else 0
''',
    "normalized_index": '''
def normalized_index(x, size):
    """The position x in an axis; a negative one counts from the end."""
    return x + size if x < 0 else x
''',
    "inferred_size": '''
def inferred_size(x, remaining):
    """x, or the remaining size where x is -1."""
    return remaining if x == -1 else x
''',
    "broadcast_size": '''
def broadcast_size(x, y):
    """The broadcast size of two axes."""
    return y if x == 1 else x
''',
    "broadcast_stride": '''
def broadcast_stride(stride, size):
    """The stride of an axis that is repeated if its size is 1."""
    return 0 if size == 1 else stride
''',
}


class SourceSizes(SizeWriter):
    """Writes sizes as expressions of Python ints.

    Attributes:
        functions: the functions that the expressions call, by name.
    """

    def __init__(self, names: Mapping[SizeFactor, str]) -> None:
        super().__init__(names)
        self.functions: dict[str, str] = {}

    def call(self, name: str, arguments: list[str]) -> str:
        if name in _BUILT_IN:
            return f"{_BUILT_IN[name]}({', '.join(arguments)})"
        if name == "quotient" and arguments[1].isdecimal() and arguments[1] != "0":
            return f"(({arguments[0]}) // {arguments[1]})"
        self.functions.setdefault(name, _FUNCTIONS[name])
        return f"{name}({', '.join(arguments)})"

    def tuple(self, sizes: tuple[int, ...]) -> str:
        """A tuple of sizes."""
        return f"({', '.join(map(self.text, sizes))}{',' * (len(sizes) == 1)})"
