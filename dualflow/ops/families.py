"""Families of ops: sub-packages whose modules are imported at the first use of one of their names.

``import dualflow`` loads the base language: the modules of this package itself. A family may use those and
other families. The base language imports no family.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from dualflow.core.tracebacks import make_entries


def load_modules(package: str, path: Iterable[str]) -> None:
    """Import the modules of a package, not its sub-packages, and wrap their functions for users as entries.

    They are wrapped after all are imported: among themselves they call the functions unwrapped.
    """
    names = [f"{package}.{info.name}" for info in iter_modules(path) if not info.ispkg]
    for module in [import_module(name) for name in names]:
        make_entries(vars(module), with_name=True)


def load_families(root: str = "dualflow.ops") -> None:
    """Import all modules of all families: the registry is complete afterwards."""
    for info in iter_modules(import_module(root).__path__):
        if info.ispkg:
            package = import_module(f"{root}.{info.name}")
            load_modules(package.__name__, package.__path__)
