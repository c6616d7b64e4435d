"""Finds the modules of dualflow faster than the standard finder: an import has 280, a first call 150 more.

Without its code, a module takes 12 us here and 25 us in the standard finder, which looks at the folder and
twice at the source file. That one remains responsible for all that is unusual: absent or outdated bytecode,
bytecode with a hash, archives.
"""

from __future__ import annotations

import io
import marshal
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType
from typing import Final

_PREFIX: Final = __name__.partition(".")[0] + "."
_BY_TIME: Final = MAGIC_NUMBER + bytes(4)
"""How bytecode begins that is valid for a time and a size of its source, which are the next eight bytes."""
_HEADER: Final = 16
_SUFFIX: Final = f".{sys.implementation.cache_tag}.pyc"


class _Loader(SourceFileLoader):
    """The standard loader of a module whose bytecode has been read."""

    code: CodeType | None = None

    def get_code(self, fullname: str) -> CodeType | None:
        code, self.code = self.code, None
        return super().get_code(fullname) if code is None else code


class ModuleFinder:
    """Finds the modules of this package that have valid bytecode; ``find_spec`` is that of finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or len(path) != 1 or not fullname.startswith(_PREFIX):
            return None
        folder, stem = path[0] + os.sep, fullname.rpartition(".")[2]
        return _spec(fullname, folder, stem) or _spec(fullname, f"{folder}{stem}{os.sep}", "__init__")


def _spec(fullname: str, folder: str, stem: str) -> ModuleSpec | None:
    """The spec of the module in the file ``stem`` of ``folder``; None if its bytecode isn't valid."""
    source, cached = f"{folder}{stem}.py", f"{folder}__pycache__{os.sep}{stem}{_SUFFIX}"
    try:
        with io.open_code(cached) as file:
            content = file.read()
        status = os.stat(source)
        expected = _BY_TIME + _word(int(status.st_mtime)) + _word(status.st_size)
        if content[:_HEADER] != expected:
            return None
        code = marshal.loads(memoryview(content)[_HEADER:])
    except (OSError, EOFError, ValueError, TypeError):
        return None
    if not isinstance(code, CodeType) or code.co_filename != source:
        return None
    loader = _Loader(fullname, source)
    loader.code = code
    spec = ModuleSpec(fullname, loader, origin=source, is_package=stem == "__init__")
    spec.has_location, spec.cached = True, cached
    if spec.submodule_search_locations is not None:
        spec.submodule_search_locations.append(folder.removesuffix(os.sep))
    return spec


def _word(number: int) -> bytes:
    return (number & 0xFFFFFFFF).to_bytes(4, "little")


def install() -> None:
    """Use the finder from now on, right before the standard one, whose settings must be the default ones."""
    default = sys.pycache_prefix is None and not sys.flags.optimize
    if default and PathFinder in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), ModuleFinder())
