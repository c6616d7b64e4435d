"""Families of ops: sub-packages of this room, loaded when the public namespace that shows them is first used.

What ``import dualflow`` loads is the base language, the flat modules of this room. A family may use those and
other families; they use none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from dualflow.core.tracebacks import make_entries

_ROOM: Final = (os.path.dirname(__file__),)
_PACKAGE: Final = __name__.rpartition(".")[0]


def load_modules(package: str, path: Iterable[str]) -> None:
    """Import the modules of a package, not its sub-packages, and make entries of their functions for users.

    Entries are made after all are there: among themselves they call the functions as they are.
    """
    names = [f"{package}.{found.name}" for found in iter_modules(path) if not found.ispkg]
    for module in [import_module(name) for name in names]:
        make_entries(module)


def load_families() -> None:
    """Import every family: the registry is complete afterwards."""
    for found in iter_modules(_ROOM):
        if found.ispkg:
            import_module(f"{_PACKAGE}.{found.name}")
