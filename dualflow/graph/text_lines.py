"""A reader of the text of graphs, line by line and from left to right; resolves references."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

import numpy as np

from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.literals import string
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]
LARGEST_SIZE: Final = 1 << 62
_LONGEST_SHAPE: Final = 1000
NAME: Final = r'("(?:[^"\\]|\\.)*"|[^\s,:()="@#]+)'
WORD: Final = re.compile(r"[A-Za-z_]\w*")
_SIZES: Final = re.compile(r"\[(\.\.\.|[-\d?, ]*)\]")


@dataclass(frozen=True, slots=True)
class NamedSource:
    """The name of a captured input, if a text doesn't store the variable or tensor."""

    name: str


def _named(name: str, spec: TensorSpec, variable: bool, reference: str | None) -> Any:
    return NamedSource(name)


def _no_constant(reference: str, spec: TensorSpec) -> Array:
    raise InvalidArgumentError(f"the constant @{reference} is stored in no file")


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves the references of a text: stored arrays, variables and tensors by name.

    Attributes:
        file: the name of the text in errors.
        source: ``source(name, spec, variable, reference)`` returns the variable or tensor that a graph
            captures; ``reference`` is None if the text has none.
        constant: ``constant(reference, spec)`` returns a stored constant.
        ops: further ops that the text may have, by name.
    """

    file: str = "the text"
    source: Callable[[str, TensorSpec, bool, str | None], Any] = _named
    constant: Callable[[str, TensorSpec], Array] = _no_constant
    ops: Mapping[str, Op] = MappingProxyType({})


@dataclass(slots=True)
class TextLines:
    """The lines of a text, and the next one."""

    lines: list[str]
    resolver: Resolver
    at: int = 0

    @property
    def indent(self) -> int:
        """The number of spaces before the next line; -1 at the end and at an empty line."""
        line = self.lines[self.at] if self.at < len(self.lines) else ""
        return len(line) - len(line.lstrip(" ")) if line.strip() else -1

    def skip_empty(self) -> bool:
        """Skip empty lines; returns whether there is another one."""
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1
        return self.at < len(self.lines)

    def next(self, indent: int) -> TextLine:
        """The next line, which has ``indent`` spaces before it."""
        line = TextLine(self, self.lines[self.at] if self.at < len(self.lines) else "", self.at + 1)
        if self.indent != indent:
            line.fail(f"expected a line with {indent} spaces before it")
        self.at += 1
        line.at = indent
        return line


@dataclass(slots=True)
class TextLine:
    """One line, read from left to right."""

    of: TextLines
    text: str
    number: int
    at: int = 0

    def fail(self, what: str) -> NoReturn:
        column = f", column {self.at + 1}" if self.text else ""
        raise InvalidArgumentError(f"{self.of.resolver.file}, line {self.number}{column}: {what}.")

    def has(self, text: str) -> bool:
        """Whether ``text`` comes next; if so, it is read."""
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def expect(self, text: str) -> None:
        if not self.has(text):
            self.fail(f"expected {text!r}")

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def need(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        match = self.take(pattern)
        if match is None:
            self.fail(f"expected {what}")
        return match

    def name(self, pattern: re.Pattern[str], what: str) -> str:
        text = self.need(pattern, what)[1]
        if not text.startswith('"'):
            return text
        try:
            return str(string(text))
        except ValueError:
            self.fail(f"{text} is no name")

    def spec(self, name: str | None = None) -> TensorSpec:
        """A spec such as ``float32[8, ?]``."""
        word = self.need(WORD, "a dtype")[0]
        try:
            dtype = as_dtype(word)
        except DTypeError:
            self.fail(f"{word} is no dtype")
        shape = self.shape()
        if any(size is not None and size < 0 for size in shape):
            self.fail("a size is negative")
        return TensorSpec(shape, dtype, name)

    def shape(self) -> Shape:
        """A shape such as ``[8, ?]``; one of an attribute may have negative sizes."""
        sizes = self.need(_SIZES, "sizes in brackets")[1]
        if sizes == "...":
            return UNKNOWN_RANK
        if len(sizes) > _LONGEST_SHAPE:
            self.fail("the shape has too many sizes")
        try:
            dims = [None if word == "?" else int(word) for word in sizes.split(", ")] if sizes else []
        except ValueError:
            self.fail(f"[{sizes}] is no shape")
        if math.prod(abs(d or 1) for d in dims) >= LARGEST_SIZE:
            self.fail(f"no tensor has the shape [{sizes}]")
        return Shape(dims)

    def end(self) -> None:
        if self.at != len(self.text):
            self.fail("expected the end of the line")


def read_spec(text: str, name: str | None = None) -> TensorSpec:
    """The spec that ``text`` prints, such as ``float32[8, ?]``, with a name.

    Raises:
        InvalidArgumentError: it is none.

    >>> read_spec("int64[2, ?]")
    TensorSpec(shape=(2, None), dtype=tf.int64, name=None)
    """
    line = TextLine(TextLines([text], Resolver(repr(text[:60]))), text, 1)
    spec = line.spec(name)
    line.end()
    return spec
