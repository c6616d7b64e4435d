"""Import hooks: import a module right after another library is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:  # importing importlib.abc takes 10 ms
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec


def import_after(name: str, then: str) -> None:
    """Import the module ``then`` as soon as the module ``name`` has been imported, which may be now.

    >>> import sys
    >>> import_after("json", "json.tool")  # which is loaded already
    >>> "json.tool" in sys.modules
    True
    """
    if name in sys.modules:
        import_module(then)
    else:
        sys.meta_path.insert(0, _HookFinder(name, then))


class _HookFinder:
    """A meta path finder for one module: delegates to later finders, and imports ``then`` afterwards."""

    def __init__(self, name: str, then: str) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :]:  # which may include another one for the same module
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = cast("Loader", _HookLoader(spec.loader, self._then))
                return spec
        return None


class _HookLoader:
    """Wraps a module's loader during its import, and imports another module afterwards."""

    def __init__(self, loader: Loader, then: str) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        import_module(self._then)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
