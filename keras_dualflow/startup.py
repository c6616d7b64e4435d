"""A finder that notices ``import keras``, and installs the import hook where this backend is chosen.

``import dualflow`` calls :func:`watch`. So does the file that ``python -m dualflow keras enable`` writes, at
each start of Python: this module imports nothing that Python has not loaded already.
"""

from __future__ import annotations

import sys

from keras_dualflow.choice import NAME, chosen

TYPE_CHECKING = False  # as type checkers know it: importing typing would take Python's start several ms
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
"""What a new process executes when it starts."""


class _AwaitingKeras:
    """A finder that finds no module: Python calls it before Keras is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "keras" and chosen() == NAME:
            from keras_dualflow.hook import install

            install()
        return None


def watch() -> None:
    """Notice the import of Keras from now on."""
    if not any(type(finder) is _AwaitingKeras for finder in sys.meta_path):
        sys.meta_path.insert(0, _AwaitingKeras())
