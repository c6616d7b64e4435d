"""First values of variables that are created while a checkpoint has values for variables to come.

Such a variable gets no tensor but a :class:`DeferredInitialValue`. Its first read lets the restorations that
wait look for it, and if none has a value for it, it begins with its own. So values reach new variables in any
container, and nothing is paid where no restoration waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.core.locks import SharedLock
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.variable_slots import put_back, substitute

restorations: Final[list[Callable[[], None]]] = []
"""Each restores the objects that are there when it is called, and removes itself when no value is left."""
restoring: Final = SharedLock()
"""Held while first values are decided, and while restorations run."""


class DeferredInitialValue:
    """The value of a new variable that has not been read.

    Attributes:
        tensor: the value that it was created with.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: EagerTensor) -> None:
        self.tensor = tensor


def create(variable: Any, tensor: EagerTensor) -> None:
    """Give a new variable its first tensor, which no other object holds."""
    if restorations:
        variable._substitute = DeferredInitialValue(tensor)
    else:
        variable._tensor = tensor


def is_new(variable: Any) -> bool:
    """Whether a variable was created while restorations wait, and has not been read."""
    return type(substitute(variable)) is DeferredInitialValue


def restore_initial(variable: Any, tensor: EagerTensor) -> bool:
    """Let a variable that has not been read begin with ``tensor``; False for others."""
    first = substitute(variable)
    if type(first) is not DeferredInitialValue:
        return False
    first.tensor = tensor
    return put_back(variable, first)


def decide(variables: Sequence[Any]) -> None:
    """Decide the first values of those that are new."""
    for variable in variables:
        if is_new(variable):
            with restoring.lock:
                _decide(variable)


def _decide(variable: Any) -> None:
    first = substitute(variable)
    if type(first) is not DeferredInitialValue:  # another thread has decided it
        return
    try:
        for restore in restorations[:]:
            restore()
    finally:
        put_back(variable, first)
