"""Families of ops: sub-packages of this room, whose modules are imported when a name of theirs is asked for.

What ``import dualflow`` loads is the base language, the flat modules of this room. A family may use those and
other families; they use none.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from dualflow.core.tracebacks import make_entries


def load_modules(package: str, path: Iterable[str]) -> None:
    """Import the modules of a package, not its sub-packages, and make entries of their functions for users.

    Entries are made after all are there: among themselves they call the functions as they are.
    """
    names = [f"{package}.{found.name}" for found in iter_modules(path) if not found.ispkg]
    for module in [import_module(name) for name in names]:
        make_entries(vars(module), with_name=True)


def load_families(room: str = "dualflow.ops") -> None:
    """Import all modules of all families: the registry is complete afterwards."""
    for found in iter_modules(import_module(room).__path__):
        if found.ispkg:
            package = import_module(f"{room}.{found.name}")
            load_modules(package.__name__, package.__path__)
