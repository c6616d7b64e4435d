"""What element code of a kernel computes with: maths as source, and accumulators that lanes can share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualflow.backends.llvm.maths.namespace import Maths
from dualflow.backends.llvm.text import I64, EmittedValue
from dualflow.backends.numba.support import Support
from dualflow.backends.numba.values import SourceBuilder, SourceValue
from dualflow.graph.ir import Node
from dualflow.scalar import evaluate
from dualflow.scalar.maths import Definition


class ElementMaths(Maths):
    """The maths namespace of element code in a kernel: its numbers are constants, and it knows its place.

    Attributes:
        node: whose code runs.
        positions: the loop along each axis of its output, None for an axis of size 1.
        wrong: if it is a list, code that is right in most lanes only does without the rest, and notes there
            where it is wrong.
    """

    node: Node
    positions: tuple[int | None, ...]

    def __init__(
        self, support: Support, builder: SourceBuilder, fail_unless: Callable[[str, str, Node], None]
    ) -> None:
        super().__init__(support, True, builder)  # type: ignore[arg-type]  # they stand for module and builder
        self._support, self._source, self._fail_unless = support, builder, fail_unless
        self.wrong: list[EmittedValue] | None = None

    def _called(self, name: str, code: Callable[..., EmittedValue], *args: EmittedValue) -> EmittedValue:
        """A call of a function; where ``wrong`` is a list, the code itself of one that may be wrong."""
        if self.wrong is None:
            return super()._called(name, code, *args)
        lines, noted = self._source.lines, len(self.wrong)
        length = len(lines.text)
        result = code(self._source, *args)
        if len(self.wrong) > noted:
            return result
        del lines.text[length:]
        return super()._called(name, code, *args)

    def body(self, made: Definition, b: Any, args: tuple[EmittedValue, ...]) -> EmittedValue:
        """The result of a definition; where ``wrong`` is a list, what is right in most lanes."""
        if self.wrong is None or made.fallback is None:
            return super().body(made, b, args)
        value, wrong = evaluate(made.function, self, args)
        self.wrong.append(wrong)
        return value

    def emitting(self, b: Any) -> Maths:
        """This namespace with constants for the code that ``b`` writes."""
        return self if b is self._source else ElementMaths(self._support, b, self._fail_unless)

    def maximum(self, x: Any, y: Any) -> EmittedValue:
        """The larger; of what a fold carries along lanes, by one instruction, which lanes can do."""
        if isinstance(x, Accumulator) and x.type.kind == "f":
            return x.emitter.intrinsic("llvm.maximum", x, y)
        return super().maximum(x, y)

    def minimum(self, x: Any, y: Any) -> EmittedValue:
        """The smaller; of what a fold carries along lanes, by one instruction, which lanes can do."""
        if isinstance(x, Accumulator) and x.type.kind == "f":
            return x.emitter.intrinsic("llvm.minimum", x, y)
        return super().minimum(x, y)

    def index(self, axis: int) -> EmittedValue:
        """The element's position along an axis of the output, an int64."""
        loop = self.positions[axis]
        if loop is None:
            return self._source.constant(I64, 0)
        return self._source.named(I64, f"i64(i{loop})")

    def check(self, ok: EmittedValue, message: str) -> None:
        """Stop the graph with ``message`` unless ``ok`` holds."""
        self._fail_unless(ok.text, message, self.node)


class Accumulator(SourceValue):
    """What a fold carries along lanes: floats may be added and multiplied in another order."""

    __slots__ = ()

    def __add__(self, other: Any) -> EmittedValue:
        return self._joined("plus", other) if self.type.kind == "f" else super().__add__(other)

    def __mul__(self, other: Any) -> EmittedValue:
        return self._joined("times", other) if self.type.kind == "f" else super().__mul__(other)

    def _joined(self, name: str, other: Any) -> EmittedValue:
        call = f"{self.emitter.support.primitive(name)}({self.text}, {self._other(other).text})"
        return self.emitter.expression(self.type, call)
