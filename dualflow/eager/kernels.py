"""A slot for the compiled kernels of ops on large tensors: the room of traced functions fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from dualflow.core.errors import InternalError
from dualflow.eager.tensor import EagerTensor
from dualflow.ops.record import Op

LARGE: Final = 1 << 15
"""An op of which an input has more elements than this runs its compiled kernel, if it has one."""

Computation = Op | Callable[..., Any]
"""An op, or a function of tensors that is made of ops."""


class KernelRule(Protocol):
    """From a computation, its inputs and its attributes to its result; None where NumPy is to compute it.

    ``count`` is how many numbers a function makes of a few, where it does so.
    """

    def __call__(
        self,
        what: Computation,
        inputs: tuple[Any, ...],
        attrs: dict[str, Any],
        count: int | None = None,
        /,
    ) -> EagerTensor | None: ...


class LateKernels:
    """A :data:`KernelRule` that a higher room gives, once."""

    __slots__ = ("_rule",)

    def __init__(self) -> None:
        self._rule: KernelRule | None = None

    def give(self, rule: KernelRule) -> KernelRule:
        """Take ``rule``; a decorator.

        Raises:
            InternalError: there is one already.
        """
        if self._rule is not None:
            raise InternalError("there are two ways to run large ops")
        self._rule = rule
        return rule

    def __call__(
        self, what: Computation, inputs: tuple[Any, ...], attrs: dict[str, Any], count: int | None = None
    ) -> EagerTensor | None:
        return None if self._rule is None else self._rule(what, inputs, attrs, count)


KERNELS: Final = LateKernels()
"""Gives the eager engine the compiled kernel of an op."""
