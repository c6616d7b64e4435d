"""The maths namespace inside a kernel: functions of values, and what only a loop nest knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.backends.llvm.maths.namespace import Maths
from dualflow.backends.llvm.text import I64, Builder, Module, Type, Value
from dualflow.core.dtypes import DType

if TYPE_CHECKING:
    from dualflow.backends.llvm.emit_base import Frame
    from dualflow.schedule.nest import Step


class ElementMaths(Maths):
    """`Maths`, with numbers made constants, the element's position, and checks that stop the graph."""

    step: Step

    def __init__(self, module: Module, builder: Builder, emitter: Frame, inline: bool) -> None:
        super().__init__(module, inline)
        self._builder, self._emitter = builder, emitter

    def cast(self, x: Value | float, target: DType) -> Value:
        """The same number in another dtype; a Python number becomes a constant."""
        if isinstance(x, Value):
            return super().cast(x, target)
        return self._builder.constant(Type.of_dtype(target.dtype), x)

    def index(self, axis: int) -> Value:
        """The element's position along an axis of the output, an int64."""
        loop = self.step.own[axis]
        return self._builder.constant(I64, 0) if loop is None else self._emitter.position(loop)

    def check(self, ok: Value, message: str) -> None:
        """Stop the graph with ``message`` unless ``ok`` holds in every lane that is live."""
        self._emitter.fail_unless(ok, message, self.step)
