"""What element code of a kernel computes with: maths as source, and accumulators that lanes can share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dualflow.backends.llvm.maths.floating import Partial
from dualflow.backends.llvm.maths.namespace import Maths
from dualflow.backends.llvm.text import I64, EmittedValue, Type
from dualflow.backends.numba.support import Support
from dualflow.backends.numba.values import SourceBuilder, SourceValue
from dualflow.core.dtypes import DType
from dualflow.graph.ir import Node
from dualflow.scalar import ScalarFunction, ScalarOp

_PARTIAL: Final = frozenset(
    {ScalarOp.SIN, ScalarOp.COS, ScalarOp.TAN, ScalarOp.FMOD, ScalarOp.MOD, ScalarOp.FLOOR_DIVIDE}
)
"""Ops of floats whose fast code is right for most operands; for the others they call C's function."""


def is_partial(function: ScalarFunction) -> bool:
    """Whether the fast code of ``function`` is right for most operands only."""
    return any(i.op in _PARTIAL and i.dtype.is_floating for i in function.instructions)


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
        super().__init__(support)  # type: ignore[arg-type]  # support functions stand for the module
        self._builder, self._fail_unless = builder, fail_unless
        self.wrong: list[EmittedValue] | None = None

    def _called(self, name: str, code: Callable[..., EmittedValue], *args: EmittedValue) -> EmittedValue:
        """A call of a function; where ``wrong`` is a list, the code itself of one that may be wrong."""
        if self.wrong is None:
            return super()._called(name, code, *args)
        lines, noted = self._builder.lines, len(self.wrong)
        length = len(lines.text)
        result = code(self._builder, *args)
        if len(self.wrong) > noted:
            return result
        del lines.text[length:]
        return super()._called(name, code, *args)

    def _completed(self, b: Any, result: EmittedValue | Partial) -> EmittedValue:
        """The whole result; or where ``wrong`` is a list, what is right in most lanes, the others noted."""
        if self.wrong is None or isinstance(result, EmittedValue):
            return super()._completed(b, result)
        self.wrong.append(result.wrong)
        return result.value

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

    def constant(self, number: float, dtype: DType) -> EmittedValue:
        """A number of a dtype."""
        return self._builder.constant(Type.of_dtype(dtype.dtype), number)

    def index(self, axis: int) -> EmittedValue:
        """The element's position along an axis of the output, an int64."""
        loop = self.positions[axis]
        if loop is None:
            return self._builder.constant(I64, 0)
        return self._builder.named(I64, f"i64(i{loop})")

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
