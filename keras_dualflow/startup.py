"""A finder that detects ``import keras``, and installs the import hook if this backend is chosen.

``import dualflow`` calls :func:`watch`. So does the file that ``python -m dualflow keras enable`` writes, at
each start of Python; therefore this module imports only modules that Python has loaded already.
"""

from __future__ import annotations

import sys

from keras_dualflow.choice import NAME, chosen_backend

TYPE_CHECKING = False  # recognised by type checkers; importing typing would take several ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


PROGRAM = """\
try:
    from keras_dualflow.startup import watch
except ModuleNotFoundError:  # dualflow was uninstalled, or is not in reach yet
    pass
else:
    watch()
"""
"""The program that a new process executes when it starts."""


class _KerasWatcher:
    """A finder that installs the backend when Keras is imported; it finds no module itself."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "keras" and chosen_backend() == NAME:
            from keras_dualflow.hook import install

            install()
        return None


def watch() -> None:
    """Detect imports of Keras from now on."""
    if not any(type(finder) is _KerasWatcher for finder in sys.meta_path):
        sys.meta_path.insert(0, _KerasWatcher())
