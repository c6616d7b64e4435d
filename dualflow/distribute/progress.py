"""Which exchanges this worker has begun and finished, for the monitor of the job."""

from __future__ import annotations

import sys
import threading
from hashlib import blake2b
from types import FrameType
from typing import Final

import numpy as np

from dualflow.core.convert import Array
from dualflow.graph.origin import PACKAGE

RING: Final = 1 << 14
"""The number of latest exchanges whose signatures are kept."""
_LIBRARIES: Final = ("keras", "mpi4py", "keras_dualflow")
"""Packages whose frames are not the user's."""


class Progress:
    """The exchanges of this worker.

    Attributes:
        begun: the number of exchanges that it has begun.
        finished: the number of those that it has finished.
        descriptions: the text of each signature: op, dtype and shape.
    """

    def __init__(self) -> None:
        self.begun = 0
        self.finished = 0
        self.descriptions: dict[int, str] = {}
        self._signatures: Final = [0] * RING
        self._known: dict[tuple[str, str, tuple[int, ...]], int] = {}

    def begin(self, kind: str, array: Array, *, any_length: bool = False) -> None:
        """Note that an exchange begins; with ``any_length`` the first sizes may differ between workers."""
        shape = array.shape[1:] if any_length else array.shape
        key = (kind, array.dtype.str, shape)
        signature = self._known.get(key)
        if signature is None:
            signature = self._add(key, any_length)
        self._signatures[self.begun % RING] = signature
        self.begun += 1

    def finish(self) -> None:
        """Note that the exchange has finished."""
        self.finished = self.begun

    def signatures(self, begin: int, end: int) -> list[int]:
        """The signatures of the exchanges from ``begin`` to before ``end`` that are still kept."""
        return [self._signatures[i % RING] for i in range(max(begin, end - RING), end)]

    def _add(self, key: tuple[str, str, tuple[int, ...]], any_length: bool) -> int:
        kind, dtype, shape = key
        sizes = ", ".join([*(["any"] if any_length else []), *map(str, shape)])
        text = f"{kind} of {np.dtype(dtype).name}[{sizes}]"
        signature = int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big")
        self.descriptions[signature] = text
        self._known[key] = signature
        return signature


def user_line() -> str:
    """The line of the user's program at which the main thread is; "" if it has none."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        code = frame.f_code
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if not code.co_filename.startswith((*PACKAGE, "<frozen ")) and package not in _LIBRARIES:
            return f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'
        frame = frame.f_back
    return ""
