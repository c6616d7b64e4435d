"""Source as files in the cache folder: Numba compiles and caches them, and tracebacks show them.

A file is named by the hash of its text. It is written to a temporary file, which is renamed. An existing file
is compared with the text before it is used, so that a damaged or foreign file is replaced, never run.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import itertools
import linecache
import os
import sys
from types import ModuleType
from typing import Final

from dualflow.backends.runtime import object_cache
from dualflow.core.locks import SharedLock

_lock: Final = SharedLock()
_modules: dict[str, ModuleType] = {}
_serial: Final = itertools.count()


def module_name(text: str) -> str:
    """The name of the module whose source is ``text``."""
    return f"dualflow_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def module_of(text: str) -> ModuleType:
    """The module whose source is ``text``, the same one for equal texts; other modules may import it.

    Without a cache folder it has no file: Numba then compiles it anew in each process.
    """
    name = module_name(text)
    with _lock.lock:
        module = _modules.get(name)
        if module is None:
            path = _file(name, text)
            module = _modules[name] = _without_file(name, text) if path is None else _from_file(name, path)
        return module


def _file(name: str, text: str) -> str | None:
    """The path of a file with ``text``; None without a usable cache folder."""
    where = object_cache.folder()
    if where is None or object_cache.unavailable_reason():
        return None
    folder = os.path.join(where, "numba")
    path = os.path.join(folder, f"{name}.py")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if _read(path) != text:
            _write(path, text)
    except OSError:
        return None
    return path


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def _write(path: str, text: str) -> None:
    temporary = f"{path}.{os.getpid()}.{next(_serial)}.tmp"
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _from_file(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Numba's cache, and other files, find it by its name
    spec.loader.exec_module(module)
    return module


def _without_file(name: str, text: str) -> ModuleType:
    path = f"<{name}>"
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    module = sys.modules[name] = ModuleType(name)
    exec(compile(text.replace("cache=True", "cache=False"), path, "exec"), module.__dict__)
    return module
