"""The engine of blocks on a GPU, and the blocks of ``df.device``."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Token
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.device_names import GPU
from dualflow.core.dispatch import AbstractTensor, Engine
from dualflow.core.traced_device import TRACED_DEVICE
from dualflow.eager.device_tensor import to_device
from dualflow.eager.engine import EAGER, EagerEngine, UniformEagerEngine
from dualflow.eager.placed_ops import run_function_placed, run_placed
from dualflow.eager.placement import BLOCK_DEVICE
from dualflow.eager.tensor import wrap
from dualflow.ops.record import Op


class DeviceEngine(UniformEagerEngine):
    """The eager engine of a block on a GPU: results of ops, constants and new variables are there."""

    __slots__ = ()

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return run_placed(op, inputs, attrs, EAGER.run)

    def composite(self, rule: Callable[..., Any], x: Any, attrs: dict[str, Any]) -> Any:
        result = run_function_placed(rule, (x,), attrs)
        return rule(x, **attrs) if result is None else result

    def generated(
        self, rule: Callable[..., Any], inputs: tuple[Any, ...], count: int, attrs: dict[str, Any]
    ) -> Any:
        result = run_function_placed(rule, inputs, attrs, count)
        return rule(*inputs, count=count, **attrs) if result is None else result

    def part(self, rule: Callable[[Any, Any], Any], x: Any, key: Any) -> Any:
        return rule(x, key)

    def constant(self, array: Array) -> AbstractTensor:
        return to_device(wrap(array))

    def shallow_copy(self, tensor: Any) -> Any:
        return to_device(tensor.__copy__())

    def create_variable(self, variable: Any, initial: Any) -> None:
        super().create_variable(variable, to_device(initial))


ON_GPU: Final = DeviceEngine()


def eager_engine() -> EagerEngine:
    """The engine of eager code in the innermost block, without tapes."""
    return ON_GPU if BLOCK_DEVICE.get() == GPU else EAGER


class DeviceBlock:
    """``with DeviceBlock(device):`` runs the ops of the block on a device.

    In eager code the engine below all tapes is replaced. In a trace the nodes have the device as their mark,
    and a block on a GPU compiles the graph for it.

    Args:
        device: the full name of a device; None for a block without effect on placement.
    """

    __slots__ = ("_device", "_entered")

    def __init__(self, device: str | None) -> None:
        self._device = device
        self._entered: list[tuple[Token[str | None], Token[str | None] | None, Engine, Engine]] = []

    def __enter__(self) -> None:
        inner = before = dispatch.current()
        innermost, on_gpu = before.innermost, self._device == GPU
        traced = None
        if not innermost.eager:
            traced = TRACED_DEVICE.set(self._device)
            if on_gpu:
                before.compile_for_device()
        elif (innermost is ON_GPU) is not on_gpu:
            inner = before.with_innermost(ON_GPU if on_gpu else EAGER)
        token = BLOCK_DEVICE.set(self._device)
        if inner is not before:
            dispatch.switch(inner)
        self._entered.append((token, traced, before, inner))

    def __exit__(self, *exc: object) -> None:
        token, traced, before, inner = self._entered.pop()
        BLOCK_DEVICE.reset(token)
        if traced is not None:
            TRACED_DEVICE.reset(traced)
        now = dispatch.current()
        if now is inner:
            dispatch.switch(before)
        elif inner is not before:  # tapes have begun or ended in the block
            dispatch.switch(now.with_innermost(before.innermost))
