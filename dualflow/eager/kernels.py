"""A slot for the compiled kernels of ops on large tensors, which traced functions provide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from dualflow.core.slot import Slot
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


def _no_kernel(
    what: Computation, inputs: tuple[Any, ...], attrs: dict[str, Any], count: int | None = None, /
) -> None:
    """No op has a compiled kernel."""


KERNELS: Final[Slot[KernelRule]] = Slot("compiled kernels of eager ops", _no_kernel)
