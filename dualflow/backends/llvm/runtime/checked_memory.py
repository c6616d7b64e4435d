"""The checked mode, ``DUALFLOW_CHECK_MEMORY``: each buffer of machine code lies between two protected pages.

With ``end`` the last byte of each buffer is the last one before a protected page, with ``begin`` the first
byte is the first one after one. So an access outside is a fault in one of two runs, to the byte: machine code
uses addresses that are multiples of the size of an element, and no vector needs more. A write to what is left
of a buffer's pages is found when the machine code returns. Memory is filled with a pattern before its first
use. Freed memory is protected until 256 more buffers have been freed. Inputs and constants that machine code
must not write to are read-only.

A fault prints what was running and whose memory it was (``faults.ll``), and then ends the process by the
handler that was there before: faulthandler's, or the system's.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import math
import mmap
import signal
import struct
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.backends.llvm.runtime import immortal, jit
from dualflow.backends.runtime import switches
from dualflow.core.errors import InternalError
from dualflow.core.locks import SharedLock, unforkable
from dualflow.core.records import NamedTuple

Array = np.ndarray[Any, Any]

PATTERN: Final = 0x7FF5
"""Unwritten memory in words of 16 bits: a NaN in each float format from 16 bits on, else a large number."""
RECORD: Final = "df_record"
"""The symbol of the record that a fault prints: the driver of steps stores in it which one runs."""

_PAGE: Final = mmap.PAGESIZE
_PATTERNS: Final = struct.pack("<H", PATTERN) * (1 << 15)
_QUARANTINE: Final = 256
_REGIONS: Final = 1 << 14
"""The number of buffers that a fault can name."""
_MAP: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
_FIXED, _NO_ACCESS = 0x10, 0
_READ, _WRITE = mmap.PROT_READ, mmap.PROT_WRITE

# Bytes of %record in faults.ll, and of struct sigaction.
_RECORD_BYTES: Final = 6 * 8 + 2 * 152
_TABLE, _STEPS, _STEP_COUNT, _REGION_TABLE = 8, 16, 24, 32
_ACTIONS: Final = {signal.SIGSEGV: 48, signal.SIGBUS: 200}
_ACTION: Final = struct.Struct("<Q128xi4xQ")
_SIGNAL_INFO, _OWN_STACK = 4, 0x08000000


class GuardedBlock(NamedTuple):
    """Memory that may be used: ``size`` bytes from ``start`` on, in pages from ``page`` on, of one mapping.

    Places are counted from the byte after the mapping's first protected page.
    """

    page: int
    start: int
    size: int

    @classmethod
    def at(cls, page: int, nbytes: int, alignment: int = 1) -> GuardedBlock:
        """The block in pages from ``page`` on, at the end of them or at their beginning."""
        used = -(-nbytes // alignment) * alignment
        margin = _whole_pages(used) - used if switches.checked_side() == "end" else 0
        return cls(page, page + margin, nbytes)

    @property
    def margins(self) -> tuple[tuple[int, int], ...]:
        """What is left of the pages before and after: where, and how many bytes."""
        after = self.start + self.size
        both = (self.page, self.start - self.page), (after, self.page + _whole_pages(self.size) - after)
        return tuple([margin for margin in both if margin[1]])

    @property
    def end(self) -> int:
        """The byte after the protected page that follows."""
        return self.page + _whole_pages(self.size) + _PAGE


class Workspace:
    """Scratch memory of one program: each statement has a block of its own, all of them are one buffer.

    >>> workspace = Workspace()
    >>> one, two = workspace.block(100), workspace.block(100)
    >>> two - one == 2 * mmap.PAGESIZE
    True
    """

    ALIGNMENT: Final = 8
    """A block begins or ends at such an address: the size of the largest part of an element."""

    def __init__(self) -> None:
        self.blocks: list[GuardedBlock] = []

    def block(self, nbytes: int) -> int:
        """Where in the buffer a new block of so many bytes begins."""
        self.blocks.append(GuardedBlock.at(self.nbytes, nbytes, self.ALIGNMENT))
        return self.blocks[-1].start

    @property
    def nbytes(self) -> int:
        """The size of the buffer, protected pages included."""
        return self.blocks[-1].end if self.blocks else 0

    def allocated(self) -> Array:
        """The buffer."""
        blocks = self.blocks or [GuardedBlock.at(0, 0)]
        made: Array = np.asarray(_Allocation(blocks, 0, self.nbytes, "scratch memory"))
        return made


def empty(shape: Sequence[int], dtype: np.dtype[Any], description: str) -> Array:
    """A new array between protected pages, filled with the pattern; freed when nothing refers to it.

    Raises:
        MemoryError: the system has no more memory.
    """
    nbytes = math.prod(shape) * dtype.itemsize
    made: Array = np.asarray(_allocation(nbytes, _described(description, shape, dtype)))
    return made.view(dtype).reshape(shape)


def copied(array: Array, description: str, *, frozen: bool) -> Array:
    """A copy of an array between protected pages; machine code can't write to a ``frozen`` one."""
    allocation = _allocation(array.nbytes, _described(description, array.shape, array.dtype))
    made: Array = np.asarray(allocation).view(array.dtype).reshape(array.shape)
    np.copyto(made, array)
    if frozen:
        allocation.freeze()
        made.flags.writeable = False
    return made


def symbols() -> Mapping[str, int]:
    """The addresses of the functions that stand in for C's in machine code, and of the fault record."""
    return _native().symbols if switches.checked_side() else {}


def free(address: int) -> None:
    """Free memory that machine code has allocated; 0 is none."""
    with _lock.lock:
        if address:
            del _grown[address]


class StepTexts(NamedTuple):
    """What each step of a table does, for faults; ``owner`` keeps the texts alive."""

    address: int
    number: int
    owner: object

    @classmethod
    def of(cls, texts: Sequence[tuple[int, str]]) -> StepTexts:
        """The texts of steps, by the bytes before them in the table, in ascending order."""
        table, kept = np.zeros((len(texts), 4), np.int64), []
        for i, (start, text) in enumerate(texts):
            end = texts[i + 1][0] if i + 1 < len(texts) else 1 << 62
            content = ctypes.create_string_buffer(text.encode())
            kept.append(content)
            table[i] = start, end, ctypes.addressof(content), len(content) - 1
        return cls(table.__array_interface__["data"][0], len(texts), (table, kept))


@contextlib.contextmanager
def native_call(steps: StepTexts, table: int, name: str) -> Iterator[None]:
    """Machine code runs that reads its steps from the integers at ``table``.

    One call runs at a time, so that a fault has one step; a call inside it is that of a signal's handler.

    Raises:
        InternalError: it has written next to a buffer.
    """
    record = _native().record
    with _calls.lock:
        words = (ctypes.c_int64 * 4).from_address(record)
        before = list(words)
        words[1:] = [table, steps.address, steps.number]
        try:
            yield
        finally:
            words[:] = before
            _require_intact(name)


def _require_intact(name: str) -> None:
    """Raise InternalError if there is no pattern around some buffer any more."""
    buffers = [reference() for reference in list(_writable.values())]
    damaged = [x.text for x in buffers if x is not None and not x.intact()]
    if damaged:
        raise InternalError(
            f"the machine code of {name!r} has written next to {', and next to '.join(damaged)}"
        )


class _Allocation:
    """Blocks of one mapping, between protected pages: users have ``nbytes`` bytes from ``address`` on.

    What is left of the pages holds a byte that differs between neighbours, so that a copy of it is found too.
    """

    __slots__ = (
        "__array_interface__",
        "__weakref__",
        "_blocks",
        "_mark",
        "_start",
        "address",
        "nbytes",
        "text",
    )

    def __init__(self, blocks: Sequence[GuardedBlock], start: int, nbytes: int, description: str) -> None:
        self._blocks, self.nbytes = blocks, nbytes
        self._mark = next(_marks)
        length = _PAGE + blocks[-1].end
        self._start = _mapped(0, length, _NO_ACCESS, _MAP)
        self.address = self._address(start)
        self.text = f"{description} ({nbytes} bytes from {self.address:#x} on)"
        region = _regions.describe(self._start, length, f"of {self.text}")
        freed = f"of {self.text}, which is freed"
        # At exit the memory stays: threads may be using it.
        weakref.finalize(self, _retire, id(self), region, self._start, length, freed).atexit = False
        for block in blocks:
            if block.size:
                self._protect(block, _READ | _WRITE)
                self._fill(block)
        self.__array_interface__ = {
            "version": 3,
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (self.address, False),
        }
        _writable[id(self)] = weakref.ref(self)

    def freeze(self) -> None:
        """Make the memory read-only."""
        _writable.pop(id(self), None)
        for block in self._blocks:
            if block.size:
                self._protect(block, _READ)

    def intact(self) -> bool:
        """Whether nothing has been written before or after a block."""
        return all(
            ctypes.string_at(self._address(start), count) == bytes([self._mark]) * count
            for block in self._blocks
            for start, count in block.margins
        )

    def _fill(self, block: GuardedBlock) -> None:
        """The pattern where memory is used, and the allocation's own byte before and after."""
        begin = self._address(block.start)
        for place in range(0, block.size, len(_PATTERNS)):
            ctypes.memmove(begin + place, _PATTERNS, min(len(_PATTERNS), block.size - place))
        for start, count in block.margins:
            ctypes.memset(self._address(start), self._mark, count)

    def _address(self, place: int) -> int:
        return self._start + _PAGE + place

    def _protect(self, block: GuardedBlock, access: int) -> None:
        if _libc().mprotect(self._address(block.page), _whole_pages(block.size), access):
            raise MemoryError("the system lets no more memory be protected")


class _Regions:
    """Whose memory an address is: a table that a fault's handler reads; and freed memory, still protected."""

    def __init__(self) -> None:
        self.table = np.zeros((_REGIONS, 4), np.int64)
        self._texts: list[Any] = [None] * _REGIONS
        self._unused = list(range(_REGIONS - 1, -1, -1))
        self._freed: deque[tuple[int, int, int]] = deque()

    def describe(self, start: int, length: int, text: str) -> int:
        """The number of a new entry; the last one is for all that find no other."""
        with _lock.lock:
            number = self._unused.pop() if self._unused else _REGIONS
        self._write(number, start, length, text)
        return number

    def retire(self, number: int, start: int, length: int, text: str) -> None:
        """Protect memory, and let go of what has been protected longest."""
        _mapped(start, length, _NO_ACCESS, _MAP | _FIXED)
        self._write(number, start, length, text)
        with _lock.lock:
            self._freed.append((number, start, length))
            if len(self._freed) > _QUARANTINE:
                oldest, start, length = self._freed.popleft()
                _libc().munmap(start, length)
                if oldest < _REGIONS:
                    self.table[oldest] = 0
                    self._unused.append(oldest)

    def _write(self, number: int, start: int, length: int, text: str) -> None:
        if number == _REGIONS:
            return
        self._texts[number] = content = ctypes.create_string_buffer(text.encode() + b"\n")
        self.table[number] = start, start + length, ctypes.addressof(content), len(content) - 1


class _Native(NamedTuple):
    """What machine code needs of this file: ``record`` is where a fault's handler looks."""

    record: int
    symbols: Mapping[str, int]
    kept: tuple[object, ...]


def _native() -> _Native:
    with unforkable():
        if not _installed:
            _installed.append(_install())
        return _installed[0]


def _install() -> _Native:
    """The handler of faults, installed, and the functions that allocate for machine code."""
    record = immortal.zeroed(_RECORD_BYTES, 64)
    address = _regions.table.__array_interface__["data"][0]
    (ctypes.c_int64 * 2).from_address(record + _REGION_TABLE)[:] = [address, _REGIONS]
    calls = {name: jit.process_symbol(name) for name in ("write", "sigaction")}
    code = jit.compile_text(jit.shipped_text("faults.ll"), ["df_on_fault"], {**calls, RECORD: record})
    action = _ACTION.pack(code.address("df_on_fault"), _SIGNAL_INFO | _OWN_STACK, 0)
    for number, place in _ACTIONS.items():
        _libc().sigaction(number, action, record + place)
    functions = _REALLOC(_reallocate), _FREE(_free)
    realloc, release = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions)
    return _Native(record, {"realloc": realloc, "free": release, RECORD: record}, (code, functions))


def _reallocate(old: int | None, nbytes: int) -> int:
    """C's realloc for machine code; 0 where there is no memory."""
    try:
        made = _allocation(nbytes, "memory of a size that the run tells")
    except MemoryError:
        return 0
    with _lock.lock:
        if old:
            before = _grown.pop(old)
            ctypes.memmove(made.address, old, min(nbytes, before.nbytes))
        _grown[made.address] = made
    return made.address


def _free(address: int | None) -> None:
    free(address or 0)


def _retire(owner: int, number: int, start: int, length: int, text: str) -> None:
    """Free an allocation."""
    _writable.pop(owner, None)
    _regions.retire(number, start, length, text)


def _allocation(nbytes: int, description: str) -> _Allocation:
    block = GuardedBlock.at(0, nbytes)
    return _Allocation([block], block.start, nbytes, description)


def _described(description: str, shape: Sequence[int], dtype: np.dtype[Any]) -> str:
    return f"{description}, {dtype.name}[{', '.join(map(str, shape))}]"


def _whole_pages(nbytes: int) -> int:
    return -(-nbytes // _PAGE) * _PAGE


def _mapped(address: int, length: int, access: int, flags: int) -> int:
    start: int | None = _libc().mmap(address, length, access, flags, -1, 0)
    if start is None or start == ctypes.c_void_p(-1).value:
        raise MemoryError(f"the system has no {length} bytes more")
    return start


@functools.cache
def _libc() -> Any:
    libc, pointer, size = ctypes.CDLL(None), ctypes.c_void_p, ctypes.c_size_t
    libc.mmap.restype = pointer
    libc.mmap.argtypes = pointer, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64
    libc.mprotect.argtypes = pointer, size, ctypes.c_int
    libc.munmap.argtypes = pointer, size
    libc.sigaction.argtypes = ctypes.c_int, ctypes.c_char_p, pointer
    return libc


_REALLOC: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_FREE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_calls: Final = SharedLock()
_lock: Final = SharedLock()
_regions: Final = _Regions()
_marks: Final = itertools.cycle(range(0x81, 0xC0))
_installed: Final[list[_Native]] = []
_writable: Final[dict[int, weakref.ref[_Allocation]]] = {}
"""What machine code may write to, by identity."""
_grown: Final[dict[int, _Allocation]] = {}
"""What machine code has allocated, by address."""
