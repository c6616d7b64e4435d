"""What waits for ``import keras``, and puts the backend in where it has been chosen.

``startup.pth``, which the wheel puts where Python reads it when it starts, calls :func:`watch`, and so does
``import dualflow``: this module imports nothing that Python has not loaded already.
"""

from __future__ import annotations

import sys

from keras_dualflow.choice import NAME, chosen

TYPE_CHECKING = False  # as type checkers know it: importing typing would take Python's start several ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _AwaitingKeras:
    """A finder that finds nothing: it notices that Keras is about to be imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "keras" and chosen() == NAME:
            from keras_dualflow.hook import install

            install()
        return None


def watch() -> None:
    """Look out for the import of Keras, from now on."""
    if not any(type(finder) is _AwaitingKeras for finder in sys.meta_path):
        sys.meta_path.insert(0, _AwaitingKeras())
