"""Sizes as source text: numbers, and polynomials over the sizes of arguments."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from dualflow.core.records import dataclass
from dualflow.graph.ir import Node
from dualflow.graph.symbolic_size_ops import Axis, first_axes
from dualflow.sizes.symbolic_sizes import SizeFactor, SymInt

_LONGEST: Final = 120
"""The longest call of a size function, in characters, that is written where it is used."""
_WORD: Final = re.compile(r"\w+")


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
    return f"({x})" if x < 0 else str(x)


def _factor(x: object) -> str:
    return x.factor if isinstance(x, SizeText) else _text(x)


class SizeWriter(ABC):
    """Writes sizes as text; symbolic ones by :class:`~dualflow.sizes.size_maths.SizeMaths` on texts.

    Expressions share operands: a long call of a size function has a name, so that the text does not double
    with each function that has an expression in both operands. One writer serves one function of the text.

    Attributes:
        names: the name of each size variable.
        definitions: the long calls by their names, each after those in it.
    """

    def __init__(self, names: Mapping[SizeFactor, str]) -> None:
        self.names = names
        self.definitions: dict[str, str] = {}
        self._computed: dict[SizeFactor, object] = {}

    def text(self, size: int) -> str:
        """A size as an expression."""
        return str(size) if type(size) is int else _text(self._value(size))

    def factor(self, size: int) -> str:
        """A size as a factor of a product, in parentheses if it is a sum."""
        return _factor(self._value(size))

    def _value(self, size: int) -> object:
        if not isinstance(size, SymInt):
            return size
        return size.compute(lambda variable: SizeText(self.names[variable]), self, self._computed)

    def _called(self, name: str, *arguments: object) -> SizeText:
        text = self.call(name, [_text(x) for x in arguments])
        if len(text) <= _LONGEST:
            return SizeText(text)
        defined = f"df_size{len(self.definitions)}"
        self.definitions[defined] = text
        return SizeText(defined)

    def definitions_for(self, text: str) -> dict[str, str]:
        """The definitions that ``text`` needs, in the order of :attr:`definitions`."""
        words, needed = set(_WORD.findall(text)), []
        for name, definition in reversed(self.definitions.items()):
            if name in words:
                words.update(_WORD.findall(definition))
                needed.append(name)
        return {name: self.definitions[name] for name in reversed(needed)}

    @abstractmethod
    def call(self, name: str, arguments: list[str]) -> str:
        """The text of a call of size function ``name``."""

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


def size_names(names: list[str], axes: Mapping[SizeFactor, tuple[Axis, ...]]) -> dict[SizeFactor, str]:
    """A name for each size variable: the first argument that has the size, and its axis."""
    first = first_axes(axes).items()
    return {variable: f"{names[place]}_size{axis}" for variable, (place, axis) in first}


def size_message(node: Node) -> str:
    """The message of a node that compares two sizes, with the shapes as the program has them."""
    return str(node.attrs["message"]).format(*map(str, node.attrs["shapes"]))
