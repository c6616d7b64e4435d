"""The base of engines that extend another one, for example by recording."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from dualflow.core.dispatch import AbstractTensor, Engine

if TYPE_CHECKING:
    import numpy as np

    from dualflow.ops.record import Op


class DelegatingEngine(Engine):
    """Delegates ops, variables, seeds and names to ``base``; a subclass overrides the methods it extends.

    Ops' inputs of any kind are converted on this engine, so that they all pass through the subclass.
    :meth:`record_numpy_use` is not delegated.
    """

    __slots__ = ("base", "eager")

    def __init__(self, base: Engine) -> None:
        self.base = base
        self.eager = base.eager

    @property
    def deferring_op(self) -> Op | None:
        return self.base.deferring_op

    @property
    def deferring_draw_op(self) -> Op:
        return self.base.deferring_draw_op

    @property
    def innermost(self) -> Engine:
        return self.base.innermost

    def with_innermost(self, innermost: Engine) -> Engine:
        engine = copy.copy(self)
        engine.base = self.base.with_innermost(innermost)
        return engine

    def postponed(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return self.base.postponed(function, args, kwargs)

    def compile_for_device(self) -> None:
        self.base.compile_for_device()

    def initializer_of(self, variable: Any) -> Any:
        return self.base.initializer_of(variable)

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return self.base.run(op, inputs, attrs)

    def constant(self, array: np.ndarray[Any, Any]) -> Any:
        return self.base.constant(array)

    @property
    def overrides_numpy(self) -> bool:  # type: ignore[override]  # a class attribute of other engines
        return self.base.overrides_numpy

    @property
    def seeds_begin_anew(self) -> bool:  # type: ignore[override]  # a class attribute of other engines
        return self.base.seeds_begin_anew

    def computes(self, value: Any) -> bool:
        return self.base.computes(value)

    def is_traced(self, value: Any) -> bool:
        return self.base.is_traced(value)

    def lift(self, tensor: AbstractTensor) -> AbstractTensor:
        return self.base.lift(tensor)

    def shallow_copy(self, tensor: Any) -> Any:
        return self.base.shallow_copy(tensor)

    def read(self, variable: Any) -> Any:
        return self.base.read(variable)

    def assign(self, variable: Any, value: Any) -> Any:
        return self.base.assign(variable, value)

    def change(self, variable: Any, rule: Callable[[Any], Any]) -> Any:
        return self.base.change(variable, rule)

    def update(self, variable: Any, value: Any, outputs: Sequence[Any]) -> None:
        self.base.update(variable, value, outputs)

    def record_assignment(self, variable: Any, value: Any) -> None:
        self.base.record_assignment(variable, value)

    def stream(self, seed: int | None) -> Any:
        return self.base.stream(seed)

    def set_own_seed(self, seed: int | None) -> bool:
        return self.base.set_own_seed(seed)

    def name_scope(self, name: str) -> AbstractContextManager[str]:
        return self.base.name_scope(name)

    def no_control_dependencies(self) -> AbstractContextManager[None]:
        return self.base.no_control_dependencies()

    def create_variable(self, variable: Any, initial: Any) -> None:
        self.base.create_variable(variable, initial)
