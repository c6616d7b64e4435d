"""``pickle`` and ``copy`` of traced functions: they copy the Python function, never compiled code.

A function that is an attribute of a module under its own name is pickled as that name, as Python functions
are. Any other function is pickled as its Python function and its options.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any, Final

from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import entry

_BY_VALUE: Final = frozenset({"cloudpickle", "dill"})


class PicklableFunction:
    """The methods of a traced function for ``pickle`` and ``copy``."""

    python_function: Callable[..., Any]
    input_signature: Any
    _name: str
    _options: dict[str, Any]

    @entry
    def __reduce__(self) -> str | tuple[Any, ...]:
        """Its name, or its Python function and options, without its traces.

        Raises:
            DTypeError: another process can't import its Python function.
        """
        if _is_named(self):
            return str(vars(self)["__qualname__"])
        python_function = self.python_function
        if isinstance(python_function, FunctionType) and not (_is_named(python_function) or _by_value()):
            raise DTypeError(
                f"{self!r} can't be pickled: no module has {python_function.__qualname__!r} under that name, "
                "from which another process could import it. Define it at the top of a module, or use "
                "cloudpickle."
            )
        return _new_function, (type(self), python_function, self._all_options())

    def __copy__(self) -> PicklableFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PicklableFunction:
        """``self``, as for a Python function; a bound method is bound to the copied object."""
        python_function = copy.deepcopy(self.python_function, memo)
        if python_function is self.python_function:
            return self
        copied: PicklableFunction = _new_function(type(self), python_function, self._all_options())
        return copied

    def _all_options(self) -> dict[str, Any]:
        return {**self._options, "input_signature": self.input_signature, "name": self._name}


def _new_function(
    cls: Callable[..., Any], python_function: Callable[..., Any], options: dict[str, Any]
) -> Any:
    return cls(python_function, **options)


def _by_value() -> bool:
    """Whether the calling pickler stores functions as code, as cloudpickle does, not as names."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if not _BY_VALUE.isdisjoint(frame.f_globals.get("__name__", "").split(".")):
            return True
        frame = frame.f_back
    return False


def _is_named(thing: Any) -> bool:
    """Whether ``thing`` is the attribute of its module that has its name."""
    attribute: Any = sys.modules.get(getattr(thing, "__module__", None) or "")
    for part in getattr(thing, "__qualname__", "").split("."):
        attribute = getattr(attribute, part, None)
    return attribute is thing
