"""Public namespaces: a module shows the names that are for users, and says of others what to use instead."""

from __future__ import annotations

import opcode
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, Final

from dualflow.core.deferred import NamePlace, deferred_names, value_at
from dualflow.core.errors import MissingAttributeError, MissingNameError
from dualflow.core.tracebacks import hide_frames

ABSENT: Final = object()
"""What is no value of a name."""
_IMPORT_FROM: Final = opcode.opmap["IMPORT_FROM"]


def publish(
    namespace: dict[str, Any],
    *,
    modules: Iterable[str] = (),
    internal: Iterable[str] = (),
    others: Iterable[str] = (),
    fallback: Callable[[str], Any] | None = None,
    deferred: bool = False,
    later: Mapping[str, NamePlace] | None = None,
) -> None:
    """Give a module its ``__all__``, ``__dir__`` and ``__getattr__``; called at its end with ``globals()``.

    Type checkers don't see these, and so report every name that isn't written in the module.

    Args:
        namespace: the module's names. Public are those of its ``__all__``, or else all that don't begin with
            an underscore.
        modules: the public names among those of modules; other modules are internal.
        internal: more names that are internal.
        others: more public names, which ``fallback`` knows.
        fallback: returns the value of a name that the module doesn't have, or :data:`ABSENT`.
        deferred: whether the names that the module imports in ``if TYPE_CHECKING:`` are public too, and
            imported when asked for; the module then holds imports and aliases only.
        later: more names that are imported when asked for, of rooms that this one can't import from.
    """
    module, own = namespace["__name__"], frozenset(namespace)
    code = sys._getframe(1).f_code if deferred else None
    shown = namespace.get("__all__") or [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and (not isinstance(value, ModuleType) or name in modules)
    ]

    @cache
    def places() -> dict[str, NamePlace]:
        noted = deferred_names(code) if code else {}
        return {name: place for name, place in noted.items() if name not in own} | dict(later or {})

    @cache
    def public() -> list[str]:
        return sorted({*shown, *places(), *others}.difference(internal))

    def attribute(name: str) -> Any:
        try:
            value = _looked_up(name)
            if value is ABSENT:
                raise _missing(module, name, public(), sys._getframe(1))
        except Exception as error:
            hide_frames(error)
            raise
        namespace[name] = value
        return value

    def _looked_up(name: str) -> Any:
        if name.startswith("_"):
            return public() if name == "__all__" else ABSENT
        if name in places():
            return value_at(places()[name], module)
        return ABSENT if fallback is None else fallback(name)

    namespace.pop("__all__", None)
    namespace.update(__dir__=lambda: list(public()), __getattr__=attribute)


def _missing(module: str, name: str, public: list[str], frame: FrameType) -> Exception:
    """The error for a name that a module doesn't have, which code in ``frame`` asks for."""
    if name.startswith("_") or f"{module}.{name}" in sys.modules:  # as Python asks, or an import under way
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    text = import_module("dualflow.core.absent").explain(module, name, public)
    imports = frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM
    return MissingNameError(text, name=name) if imports else MissingAttributeError(text, name=name)
