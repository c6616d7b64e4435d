"""The collectives that this worker has begun and finished, for the job's monitor."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b
from types import FrameType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from dualflow.core.own_files import OWN_FILES
from dualflow.distribute.mutex import MUTEX_BYTES, Mutex, is_available

RING: Final = 1 << 14
"""The number of latest collectives whose signatures are kept."""
MAX_DYNAMIC_SIZES: Final = 4
"""The largest number of dynamic sizes of a tensor that machine code exchanges."""
_LIBRARIES: Final = ("keras", "mpi4py", "keras_dualflow")
"""Packages whose frames are not the user's."""


class StateField(IntEnum):
    """The first word of each field of the state that machine code shares.

    ``backends/llvm/runtime/collective.ll`` has the same fields.
    """

    BEGUN = 0
    FINISHED = 1
    RETURN_CODE = 2
    MUTEX = 3
    SIGNATURES = MUTEX + MUTEX_BYTES // 8
    TIMES = SIGNATURES + RING
    """Of the begin and the end of each collective in the ring."""
    SIZES = TIMES + 2 * RING
    """The dynamic sizes of each collective in the ring."""


class NativeSpan(NamedTuple):
    """A collective of machine code: op, dtype and shape, and the nanoseconds at which it began and ended."""

    text: str
    begin: int
    end: int


_Key: TypeAlias = tuple[str, np.dtype[Any], tuple[int | str, ...]]
"""The op, dtype and sizes that determine a signature; "any" is a size that may differ between workers."""


class _Template(NamedTuple):
    """A signature of tensors of dynamic sizes, which are None: machine code stores their numbers."""

    kind: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]


class Progress:
    """The collectives of this worker: those that Python runs, and those of machine code.

    Attributes:
        descriptions: the text of each signature: op, dtype and shape.
        lock: held during a collective, so that one runs at a time.
        address: of the state that machine code writes; 0 without POSIX mutexes: then Python runs them all.
    """

    def __init__(self) -> None:
        self.descriptions: dict[int, str] = {}
        self._words: Final = np.zeros(StateField.SIZES + MAX_DYNAMIC_SIZES * RING, np.int64)
        self._view: Final = self._words.data  # whose items are read faster
        self._cached: dict[_Key, int] = {}
        self._templates: dict[int, _Template] = {}
        address = self._words.ctypes.data
        self.lock: Any = Mutex(address + 8 * StateField.MUTEX) if is_available() else threading.Lock()
        self.address: Final = address if is_available() else 0

    @property
    def begun(self) -> int:
        """The number of collectives that the worker has begun."""
        return self._view[StateField.BEGUN]

    @property
    def finished(self) -> int:
        """The number of collectives that the worker has finished."""
        return self._view[StateField.FINISHED]

    @property
    def code(self) -> int:
        """MPI's error code of the collective that failed in machine code."""
        return self._view[StateField.RETURN_CODE]

    def begin(self, signature: int) -> None:
        """Record that a collective begins; the caller holds the lock."""
        begun = self._view[StateField.BEGUN]
        place = begun % RING
        self._view[StateField.SIGNATURES + place] = signature
        self._view[StateField.TIMES + 2 * place] = 0  # machine code stores the time at which it begins
        self._view[StateField.BEGUN] = begun + 1

    def finish(self) -> None:
        """Record that the collective has finished."""
        self._view[StateField.FINISHED] = self._view[StateField.BEGUN]

    def signatures(self, begin: int, end: int) -> list[int]:
        """The signatures of the collectives from ``begin`` to before ``end`` that are still kept."""
        return [self._signature(i % RING) for i in range(max(begin, end - RING), end)]

    def native_spans(self, start: int) -> list[NativeSpan]:
        """The collectives of machine code that began since ``start``, in nanoseconds of ``perf_counter``."""
        spans: list[NativeSpan] = []
        finished = self.finished
        for number in range(finished - 1, max(finished - RING, 0) - 1, -1):
            place = number % RING
            first = StateField.TIMES + 2 * place
            begin, end = self._view[first], self._view[first + 1]
            if begin and begin < start:
                break
            if begin:
                spans.append(NativeSpan(self.descriptions[self._signature(place)], begin, end))
        return spans[::-1]

    def signature(
        self, kind: str, dtype: np.dtype[Any], shape: tuple[int, ...], *, any_length: bool = False
    ) -> int:
        """The signature of a collective; with ``any_length`` the first sizes may differ between workers."""
        return self._cached_signature((kind, dtype, ("any", *shape[1:]) if any_length else shape))

    def signature_of_rows(self, dtype: np.dtype[Any], rank: int) -> int:
        """The signature of an exchange of numbers of rows, of tensors that are gathered next."""
        return self._cached_signature(("all_gather", dtype, ("any",) * rank))

    def template(self, kind: str, dtype: np.dtype[Any], shape: tuple[int | None, ...]) -> int:
        """The signature with placeholders for dynamic sizes, which are None; machine code fills them in.

        It stores at most :data:`MAX_DYNAMIC_SIZES` sizes in addition to the signature.
        """
        number = _hash(f"template {_text(kind, dtype, shape)}")
        self._templates[number] = _Template(kind, dtype, shape)
        return number

    def description(self) -> str:
        """The text of the collective that has begun last."""
        return self.descriptions[self._signature((self.begun - 1) % RING)]

    def _signature(self, place: int) -> int:
        """The signature in a ring entry; a template is resolved with the sizes that machine code stored."""
        signature = self._view[StateField.SIGNATURES + place]
        template = self._templates.get(signature)
        if template is None:
            return signature
        first = StateField.SIZES + MAX_DYNAMIC_SIZES * place
        numbers = iter(self._view[first : first + MAX_DYNAMIC_SIZES])
        shape = tuple([next(numbers) if size is None else size for size in template.shape])
        return self.signature(template.kind, template.dtype, shape)

    def _cached_signature(self, key: _Key) -> int:
        signature = self._cached.get(key)
        if signature is None:
            text = _text(*key)
            signature = _hash(text)
            self.descriptions[signature] = text
            self._cached[key] = signature
        return signature


def _text(kind: str, dtype: np.dtype[Any], shape: Sequence[object]) -> str:
    return f"{kind} of {dtype.name}[{', '.join(map(str, shape))}]"


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big")


def user_line() -> str:
    """The line of the user's program at which the main thread is; "" if it has none."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        code = frame.f_code
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if not code.co_filename.startswith((*OWN_FILES, "<frozen ")) and package not in _LIBRARIES:
            return f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'
        frame = frame.f_back
    return ""
