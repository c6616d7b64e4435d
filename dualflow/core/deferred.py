"""Names of a namespace that are imported when they are asked for.

A namespace writes their imports in ``if TYPE_CHECKING:``, where type checkers and people read them. Python
doesn't run that block, so they are found by running the namespace's code once more, with an ``__import__``
that imports nothing and notes what it is asked for. Such a namespace holds imports and aliases only.
"""

from __future__ import annotations

from types import CodeType
from typing import Any, Final, NamedTuple

from dualflow.core.locks import imported
from dualflow.core.tracebacks import make_entries

_MISSING: Final = object()


class NamePlace(NamedTuple):
    """Where a name comes from: a module and the name there."""

    module: str
    name: str


class _NotedName:
    """Stands for what was not imported; calls and attributes of it do nothing."""

    __slots__ = ("_place",)

    def __init__(self, place: NamePlace) -> None:
        self._place = place

    def __getattr__(self, name: str) -> _NotedName:
        return _NotedName(NamePlace(self._place.module, name))

    def __call__(self, *args: Any, **kwargs: Any) -> _NotedName:
        return self


def _note(module: str, *_: Any) -> _NotedName:
    return _NotedName(NamePlace(module, ""))


def deferred_names(code: CodeType) -> dict[str, NamePlace]:
    """The names that the code of a module imports, also where only a type checker looks.

    >>> lines = "from typing import TYPE_CHECKING as T", "if T:", "  from json import loads as parsed"
    >>> deferred_names(compile("\\n".join(lines), "example", "exec"))["parsed"]
    NamePlace(module='json', name='loads')
    """
    names: dict[str, Any] = {"__name__": "", "__builtins__": {"__import__": _note, "globals": dict}}
    exec(code, names)
    return {name: value._place for name, value in names.items() if type(value) is _NotedName}


def value_at(place: NamePlace, asking: str) -> Any:
    """Import what ``place`` names, for the namespace ``asking``; functions for users become entries."""
    if place.module == asking:
        return imported(f"{asking}.{place.name}")
    module = imported(place.module)
    make_entries(module)
    value = getattr(module, place.name, _MISSING)
    return imported(f"{place.module}.{place.name}") if value is _MISSING else value
