"""Public namespaces: a module shows the names that are for users, and says of others what to use instead."""

from __future__ import annotations

import opcode
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, Final

from dualflow.core.errors import MissingAttributeError, MissingNameError
from dualflow.core.locks import imported
from dualflow.core.tracebacks import hide_frames

ABSENT: Final = object()
"""What is no value of a name."""
_IMPORT_FROM: Final = opcode.opmap["IMPORT_FROM"]


def publish(
    namespace: dict[str, Any],
    *,
    modules: Iterable[str] = (),
    internal: Iterable[str] = (),
    later: Mapping[str, str] | None = None,
    others: Iterable[str] = (),
    fallback: Callable[[str], Any] | None = None,
) -> None:
    """Give a module its ``__all__``, ``__dir__`` and ``__getattr__``; called at its end with ``globals()``.

    Type checkers don't see these, and so report every name that isn't written in the module.

    Args:
        namespace: the module's names. Public are those of its ``__all__``, or else all that don't begin with
            an underscore.
        modules: the public names among those of modules; other modules are internal.
        internal: more names that are internal.
        later: more public names, each with its ``module`` or ``module:attribute``, imported when asked for.
        others: more public names, which ``fallback`` knows.
        fallback: returns the value of a name that the module doesn't have, or :data:`ABSENT`.
    """
    places = later or {}
    module = namespace["__name__"]
    shown = namespace.get("__all__") or [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and (not isinstance(value, ModuleType) or name in modules)
    ]
    public = sorted({*shown, *places, *others}.difference(internal))

    def attribute(name: str) -> Any:
        try:
            if name in places:
                value = _imported(places[name])
            else:
                value = ABSENT if fallback is None or name.startswith("_") else fallback(name)
            if value is ABSENT:
                raise _missing(module, name, public, sys._getframe(1))
        except Exception as error:
            hide_frames(error)
            raise
        namespace[name] = value
        return value

    namespace.update(__all__=public, __dir__=lambda: list(public), __getattr__=attribute)


def _imported(place: str) -> Any:
    module, _, attribute = place.partition(":")
    found = imported(module)
    return getattr(found, attribute) if attribute else found


def _missing(module: str, name: str, public: list[str], frame: FrameType) -> Exception:
    """The error for a name that a module doesn't have, which code in ``frame`` asks for."""
    if name.startswith("_") or f"{module}.{name}" in sys.modules:  # as Python asks, or an import under way
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    text = import_module("dualflow.core.absent").explain(module, name, public)
    imports = frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM
    return MissingNameError(text, name=name) if imports else MissingAttributeError(text, name=name)
