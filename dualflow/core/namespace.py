"""Public namespaces of modules: ``__all__``, lazy imports, and errors with advice for missing names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import FrameType, ModuleType
from typing import Any, Final

from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import hide_frames, make_entries

ABSENT: Final = object()
"""A marker for names without a value."""
_NEVER_PUBLIC: Final = ("TYPE_CHECKING", "annotations")
"""Names that a module imports for type checkers, or for its own annotations."""


class LazyName(NamedTuple):
    """The origin of a lazy name: a module and the name in it, or a package and the name of its module."""

    module: str
    name: str


def origins(table: Mapping[str, str]) -> dict[str, LazyName]:
    """The origin of each name in a table of lazy names.

    The table has the names of each module, with spaces between them; ``public=original`` is a name whose
    original is called otherwise.

    >>> origins({"json": "dumps parsed=loads"})["parsed"]
    LazyName(module='json', name='loads')
    """
    entries = ((module, *entry.partition("=")) for module, names in table.items() for entry in names.split())
    return {name: LazyName(module, original or name) for module, name, _, original in entries}


def publish(
    namespace: dict[str, Any],
    *,
    modules: Iterable[str] = (),
    internal: Iterable[str] = (),
    others: Iterable[str] = (),
    fallback: Callable[[str], Any] | None = None,
    lazy: Mapping[str, str] | None = None,
    later: Mapping[str, str] | None = None,
    requires: Mapping[str, str] | None = None,
) -> None:
    """Define a module's ``__all__``, ``__dir__`` and ``__getattr__``; called at its end with ``globals()``.

    Type checkers don't see these, and so report every name that isn't defined in the module.

    Args:
        namespace: the module's names. Public are those of its ``__all__``, or else all that don't begin with
            an underscore.
        modules: the public names among those of modules; other modules are internal.
        internal: more names that are internal.
        others: more public names, whose values ``fallback`` returns.
        fallback: returns the value of a name that the module doesn't have, or :data:`ABSENT`.
        lazy: a table of names (see :func:`origins`) that are imported at their first use. The module imports
            the same names in ``if TYPE_CHECKING:``, for type checkers and readers.
        later: another such table, of names that the module can't import in ``if TYPE_CHECKING:``, since their
            packages import this one.
        requires: for optional packages, the names that need each. Without the package they are not listed,
            and their use raises an error.
    """
    module, own = namespace["__name__"], frozenset(namespace)
    hidden = {*internal, *_NEVER_PUBLIC}
    shown = namespace.get("__all__") or _own_public_names(namespace, modules)

    @cache
    def lazy_names() -> dict[str, LazyName]:
        tables = {**origins(lazy or {}), **origins(later or {})}
        return {name: origin for name, origin in tables.items() if name not in own}

    @cache
    def public() -> list[str]:
        absent = [names for package, names in (requires or {}).items() if not _is_installed(package)]
        return sorted({*shown, *lazy_names(), *others}.difference(hidden, " ".join(absent).split()))

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
        if name in lazy_names():
            return _value(lazy_names()[name], module)
        return ABSENT if fallback is None else fallback(name)

    namespace.pop("__all__", None)
    namespace.setdefault("__path__", [])  # of a package, `from package import name` calls `__getattr__` first
    namespace.update(__dir__=lambda: list(public()), __getattr__=attribute)


def _own_public_names(namespace: Mapping[str, Any], modules: Iterable[str]) -> list[str]:
    """The names without a leading underscore; of those of modules only ``modules``."""
    return [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and (not isinstance(value, ModuleType) or name in modules)
    ]


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # raised by a finder
        return False


def _value(origin: LazyName, namespace: str) -> Any:
    """Import the value of a lazy name of ``namespace``; wrap the public functions of its module."""
    if origin.module == namespace:
        return imported(f"{namespace}.{origin.name}")
    module = imported(origin.module)
    make_entries(vars(module), with_name=True)
    value = getattr(module, origin.name, ABSENT)
    return imported(f"{origin.module}.{origin.name}") if value is ABSENT else value


def _missing(module: str, name: str, public: list[str], caller: FrameType) -> Exception:
    """The error for a name that a module lacks; ``caller`` is the frame that looked it up."""
    # for Python itself, or of an import under way
    if name.startswith("_") or f"{module}.{name}" in sys.modules:
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    importing = caller.f_globals.get("__name__") == "importlib._bootstrap"
    if importing and find_spec(f"{module}.{name}") is not None:  # the import system tries a submodule next
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    error: Exception = import_module("dualflow.core.absent").missing(module, name, public, importing)
    return error
