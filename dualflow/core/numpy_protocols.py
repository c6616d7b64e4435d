"""NumPy's override protocols, ``__array_ufunc__`` and ``__array_function__``, for tensors.

Tensors have them only if the current engine overrides NumPy. Otherwise NumPy converts tensors by
``__array__``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.locks import imported
from dualflow.core.slot import Slot


class NumPyProtocol:
    """A method that NumPy looks up on the class of a tensor; absent unless the engine overrides NumPy."""

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
"""The name of the module whose functions replace NumPy's; imported at the first call."""


def array_ufunc(tensor: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Run a universal function of NumPy on tensors."""
    return imported(OVERRIDES.value).universal_function(ufunc, method, inputs, options, sys._getframe(1))


def array_function(tensor: Any, function: Any, types: Any, inputs: Any, options: Any) -> Any:
    """Run a function of NumPy that is no ufunc on tensors: the method ``__array_function__``."""
    return imported(OVERRIDES.value).function(function, inputs, options, sys._getframe(1))
