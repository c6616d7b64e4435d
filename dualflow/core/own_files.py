"""The files of dualflow and of its Keras backend, whose frames are not those of the user."""

from __future__ import annotations

import os
from typing import Final

FOLDER: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of the package."""
_KERAS_BACKEND: Final = os.path.join(os.path.dirname(FOLDER), f"keras_{os.path.basename(FOLDER)}")

OWN_FILES: Final = (os.path.join(FOLDER, ""), os.path.join(_KERAS_BACKEND, ""))
"""What the paths of the files of dualflow, and of its Keras backend, begin with."""


def own_text(*path: str) -> str:
    """The text of a file of dualflow, by its path in :data:`FOLDER`."""
    with open(os.path.join(FOLDER, *path), encoding="utf-8") as file:
        return file.read()
