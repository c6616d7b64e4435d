"""``python -m dualflow keras``: whether a plain ``import keras`` can take dualflow as its backend.

A file in site-packages, which Python reads when it starts, installs the import hook that ``import dualflow``
installs otherwise. Programs that import dualflow before Keras do not need it.
"""

from __future__ import annotations

import os
import sysconfig
from typing import Final

from dualflow.cli.call import CommandError
from dualflow.core.atomic_files import AtomicFile
from keras_dualflow.startup import PROGRAM

ACTIONS: Final = ("enable", "disable", "status")
_FILE: Final = "dualflow_keras.pth"
CONTENT: Final = f"""\
# Written by python -m dualflow keras enable; python -m dualflow keras disable removes it.
import sys; exec({PROGRAM!r})
"""
"""The content of the startup file: Python executes each line that begins with ``import``."""


def run_action(action: str, folder: str | None = None) -> str:
    """Perform one of :data:`ACTIONS`; returns a message with the new state.

    Args:
        action: what to do.
        folder: site-packages; by default that of the running environment.

    Raises:
        CommandError: the file can't be read, written or removed.
    """
    path = os.path.join(folder or sysconfig.get_path("purelib"), _FILE)
    try:
        if action == "enable":
            _write(path)
        elif action == "disable":
            _remove(path)
        return _status(path)
    except OSError as error:
        raise CommandError(
            f"{path} can't be {_DONE[action]}: {error.strerror}. Use an environment whose site-packages you "
            "may write to, such as a virtual one, or import dualflow before keras, which needs no file."
        ) from None


_DONE: Final = {"enable": "written", "disable": "removed", "status": "read"}


def _write(path: str) -> None:
    if _content(path) != CONTENT:
        with AtomicFile(path) as file:
            file.write(CONTENT.encode())


def _remove(path: str) -> None:
    if _content(path) is not None:
        os.unlink(path)


def _content(path: str) -> str | None:
    """The text of the file; None if it does not exist."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _status(path: str) -> str:
    content = _content(path)
    if content is None:
        return (
            f"disabled: {path} does not exist. With KERAS_BACKEND=dualflow, import dualflow before keras, or "
            "run python -m dualflow keras enable."
        )
    if content != CONTENT:
        return f"enabled: {path}, written by another version; python -m dualflow keras enable replaces it."
    return f"enabled: {path}. With KERAS_BACKEND=dualflow, import keras takes dualflow as its backend."
