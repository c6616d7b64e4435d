"""NumPy's protocols: what NumPy's functions ask the class of a tensor for, to be called in their place.

Only where the current engine says so do tensors have them. Elsewhere NumPy finds none, and takes tensors for
what ``__array__`` makes arrays of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.locks import imported
from dualflow.core.slot import Slot


class NumPyProtocol:
    """A method that NumPy looks up on a class of tensors; absent where the engine leaves NumPy alone."""

    __slots__ = ("_method", "_name")

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        if dispatch.current().overrides_numpy:
            return self._method
        raise AttributeError(self._name)


OVERRIDES: Final[Slot[str]] = Slot("NumPy's functions on tensors", "")
"""The name of the module whose functions run in place of NumPy's, imported by the first that is called."""


def array_ufunc(tensor: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Run a universal function of NumPy's on tensors."""
    return imported(OVERRIDES.value).universal_function(ufunc, method, inputs, options, sys._getframe(1))


def array_function(tensor: Any, function: Any, types: Any, inputs: Any, options: Any) -> Any:
    """Run another function of NumPy's on tensors."""
    return imported(OVERRIDES.value).function(function, inputs, options, sys._getframe(1))
