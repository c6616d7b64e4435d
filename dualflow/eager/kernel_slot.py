"""A slot for the compiled kernels of eager ops on large tensors, which the package of functions fills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from dualflow.core.slot import Slot
from dualflow.eager.tensor import EagerTensor
from dualflow.ops.record import Op

Computation = Op | Callable[..., Any]
"""An op, or a function of tensors that calls ops."""


def computation_name(what: Computation) -> str:
    """The name of an op or a function, for names of graphs and for messages."""
    return what.name if isinstance(what, Op) else what.__name__.strip("_")


class KernelRule(Protocol):
    """Runs a computation's compiled kernel on its inputs and attributes; returns None without a kernel.

    ``count`` is the size of the result of a function that generates many numbers from a few inputs.
    """

    def __call__(
        self,
        what: Computation,
        inputs: tuple[Any, ...],
        attrs: dict[str, Any],
        count: int | None = None,
        /,
    ) -> EagerTensor | None: ...


def _no_kernel(
    what: Computation, inputs: tuple[Any, ...], attrs: dict[str, Any], count: int | None = None, /
) -> None:
    """No op has a compiled kernel."""


KERNELS: Final[Slot[KernelRule]] = Slot("compiled kernels of eager ops", _no_kernel)
