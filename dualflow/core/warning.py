"""Warnings at the user's line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Final

import numpy as np

from dualflow.core.own_files import OWN_FILES

_OURS, _KERAS_BACKEND = OWN_FILES
_NUMPY: Final = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_LIBRARIES: Final = (os.sep + "site-packages" + os.sep, _KERAS_BACKEND, "<frozen ")

_silenced: Final[ContextVar[bool]] = ContextVar("dualflow_silenced", default=False)


@contextmanager
def silenced() -> Iterator[None]:
    """A context in which the current thread gives no warnings of dualflow: they have been given before."""
    token = _silenced.set(True)
    try:
        yield
    finally:
        _silenced.reset(token)


def warn_user(message: str, frame: FrameType | None = None, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: that of the innermost frame outside of dualflow and installed packages.

    In functions converted by autograph it is the original line. ``frame`` is where the search begins, by
    default the caller. Like other warnings it is shown once per line.
    """
    if _silenced.get():
        return
    outside = [f for f in _outwards(frame or sys._getframe(1)) if not _is_in(f, _OURS)]
    user_frame = next((f for f in outside if not any(x in f.f_code.co_filename for x in _LIBRARIES)), None)
    at = user_frame or outside[0]
    registry = at.f_globals.setdefault("__warningregistry__", {})
    name = at.f_globals.get("__name__", "<unknown>")
    file, line = at.f_code.co_filename, at.f_lineno
    warnings.warn_explicit(message, category, file, line, name, registry)


def warn_at(message: str, place: tuple[str, int] | None, category: type[Warning]) -> None:
    """Warn at a line of a file; at the user's line if ``place`` is None."""
    if place is None:
        warn_user(message, sys._getframe(1), category)
    elif not _silenced.get():
        warnings.warn_explicit(message, category, *place)


def called_by_user(frame: FrameType) -> bool:
    """Whether ``frame`` is of code outside of dualflow, or of a NumPy function that such code called."""
    return not _is_in(next(f for f in _outwards(frame) if not _is_in(f, _NUMPY)), _OURS)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_in(frame: FrameType, folder: str) -> bool:
    return frame.f_code.co_filename.startswith(folder)
