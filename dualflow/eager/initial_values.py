"""Initial values of variables that are created while restorations of checkpoints are deferred.

Such a variable gets a :class:`DeferredInitialValue` instead of a tensor. Before its first read, the deferred
restorations look for it; if none has a value for it, it takes its own. So a variable in any container is
restored, and without deferred restorations there is no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.core.locks import SharedLock
from dualflow.eager.device_tensor import placed_like
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.variable_slots import put_back, substitute

restorations: Final[list[Callable[[], None]]] = []
"""Deferred restorations. Each restores existing objects when called, and removes itself when finished."""
restoring: Final = SharedLock()
"""The lock that is held while initial values are determined and while restorations run."""


class DeferredInitialValue:
    """The initial value of a new variable that has not been read.

    Attributes:
        tensor: the value that it was created with, or was restored to.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: EagerTensor) -> None:
        self.tensor = tensor


def set_initial_value(variable: Any, tensor: EagerTensor) -> None:
    """Set the initial value of a new variable; ``tensor`` must have no other reference."""
    if restorations:
        variable._substitute = DeferredInitialValue(tensor)
    else:
        variable._tensor = tensor


def is_new(variable: Any) -> bool:
    """Whether a variable was created during deferred restorations, and has not been read."""
    return not hasattr(variable, "_tensor") and type(substitute(variable)) is DeferredInitialValue


def restore_initial(variable: Any, tensor: EagerTensor) -> bool:
    """Set the initial value of a variable that has not been read; False for other variables."""
    first = substitute(variable)
    if type(first) is not DeferredInitialValue:
        return False
    first.tensor = placed_like(tensor, first.tensor)
    return put_back(variable, first)


def resolve_initial_values(variables: Sequence[Any]) -> None:
    """Set new variables to their restored values, if deferred restorations have any."""
    for variable in variables:
        if is_new(variable):
            with restoring.lock:
                _resolve(variable)


def _resolve(variable: Any) -> None:
    first = substitute(variable)
    if type(first) is not DeferredInitialValue:  # another thread has resolved it
        return
    try:
        for restore in restorations[:]:
            restore()
    finally:
        put_back(variable, first)
