"""The checked mode, ``DUALFLOW_CHECK_MEMORY``: each buffer of machine code is between two protected pages.

With ``end`` the last byte of each buffer is right before a protected page, with ``begin`` its first byte is
right after one. So an access outside, even by one byte, faults in one of two runs: machine code requires
addresses that are multiples of the element size, and no vector needs more. A write to the remaining bytes of
a buffer's pages is detected when the machine code returns. Memory is filled with a pattern before its first
use. Freed memory is protected until 256 more buffers have been freed. Inputs and constants that machine code
must not write to are read-only.

A fault prints the running step and the buffer (``faults.ll``). Then the previous handler, faulthandler's or
the system's, ends the process.
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
"""The 16-bit words of unwritten memory: a NaN in each float format from 16 bits on, else a large number."""
RECORD: Final = "df_record"
"""The symbol of the record that a fault prints: the driver stores the running step in it."""

_PAGE: Final = mmap.PAGESIZE
_PATTERNS: Final = struct.pack("<H", PATTERN) * (1 << 15)
_QUARANTINE: Final = 256
"""The number of freed allocations that stay mapped and protected."""
_MAX_BUFFERS: Final = 1 << 14
"""The maximum number of buffers that a fault can name."""
_MAP: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
_FIXED, _NO_ACCESS = 0x10, 0
_READ, _WRITE = mmap.PROT_READ, mmap.PROT_WRITE

_ACTION: Final = struct.Struct("<Q128xi4xQ")
"""Linux's struct sigaction: the handler, the mask of blocked signals, the flags, the restorer."""
_SIGNAL_INFO, _OWN_STACK = 4, 0x08000000
"""The flags SA_SIGINFO and SA_ONSTACK."""

# The offsets in bytes of the fields of %record in faults.ll: six words, and two handlers.
_BUFFER_TABLE: Final = 4 * 8
_SAVED_ACTIONS: Final = {signal.SIGSEGV: 6 * 8, signal.SIGBUS: 6 * 8 + _ACTION.size}
_RECORD_BYTES: Final = 6 * 8 + 2 * _ACTION.size


class GuardedBlock(NamedTuple):
    """A usable block of a mapping: ``size`` bytes from ``start`` on, in pages from ``page`` on.

    Offsets are from the byte after the mapping's first protected page.
    """

    page: int
    start: int
    size: int

    @classmethod
    def at(cls, page: int, nbytes: int, alignment: int = 1) -> GuardedBlock:
        """The block at the end, or the beginning, of the pages from ``page`` on."""
        used = -(-nbytes // alignment) * alignment
        margin = _whole_pages(used) - used if switches.checked_side() == "end" else 0
        return cls(page, page + margin, nbytes)

    @property
    def margins(self) -> tuple[tuple[int, int], ...]:
        """The offset and size of the unused bytes of the pages before and after the block."""
        after = self.start + self.size
        both = (self.page, self.start - self.page), (after, self.page + _whole_pages(self.size) - after)
        return tuple([margin for margin in both if margin[1]])

    @property
    def end(self) -> int:
        """The offset after the protected page that follows."""
        return self.page + _whole_pages(self.size) + _PAGE


class Workspace:
    """Scratch memory of one program: a buffer in which each statement has its own block.

    >>> workspace = Workspace()
    >>> one, two = workspace.block(100), workspace.block(100)
    >>> two - one == 2 * mmap.PAGESIZE
    True
    """

    ALIGNMENT: Final = 8
    """The alignment of a block's beginning or end: the size of the largest part of an element."""

    def __init__(self) -> None:
        self.blocks: list[GuardedBlock] = []

    def block(self, nbytes: int) -> int:
        """Add a block of ``nbytes``; returns its offset in the buffer."""
        self.blocks.append(GuardedBlock.at(self.nbytes, nbytes, self.ALIGNMENT))
        return self.blocks[-1].start

    @property
    def nbytes(self) -> int:
        """The size of the buffer in bytes, protected pages included."""
        return self.blocks[-1].end if self.blocks else 0

    def allocated(self) -> Array:
        """A new buffer for all blocks."""
        blocks = self.blocks or [GuardedBlock.at(0, 0)]
        array: Array = np.asarray(_Allocation(blocks, 0, self.nbytes, "scratch memory"))
        return array


def empty(shape: Sequence[int], dtype: np.dtype[Any], description: str) -> Array:
    """A new array between protected pages, filled with the pattern; freed with its last reference.

    Raises:
        MemoryError: the system is out of memory.
    """
    nbytes = math.prod(shape) * dtype.itemsize
    content: Array = np.asarray(_allocation(nbytes, _described(description, shape, dtype)))
    return content.view(dtype).reshape(shape)


def copied(array: Array, description: str, *, frozen: bool) -> Array:
    """A copy of an array between protected pages; read-only if ``frozen``."""
    allocation = _allocation(array.nbytes, _described(description, array.shape, array.dtype))
    copy: Array = np.asarray(allocation).view(array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    if frozen:
        allocation.freeze()
        copy.flags.writeable = False
    return copy


def symbols() -> Mapping[str, int]:
    """The addresses of the functions that replace C's in machine code, and of the fault record."""
    return _native().symbols if switches.checked_side() else {}


def free(address: int) -> None:
    """Free memory that machine code has allocated; does nothing for 0."""
    with _lock.lock:
        if address:
            del _allocated[address]


class StepTexts(NamedTuple):
    """A table of descriptions of steps, which the fault handler reads; ``owner`` keeps the texts alive."""

    address: int
    number: int
    owner: object

    @classmethod
    def of(cls, texts: Sequence[tuple[int, str]]) -> StepTexts:
        """The table for (byte offset in the parameter table, text) of each step, in ascending order."""
        table, owners = np.zeros((len(texts), 4), np.int64), []
        for i, (start, text) in enumerate(texts):
            end = texts[i + 1][0] if i + 1 < len(texts) else 1 << 62
            content = ctypes.create_string_buffer(text.encode())
            owners.append(content)
            table[i] = start, end, ctypes.addressof(content), len(content) - 1
        return cls(table.__array_interface__["data"][0], len(texts), (table, owners))


@contextlib.contextmanager
def native_call(steps: StepTexts, table: int, name: str) -> Iterator[None]:
    """Surround a call of machine code that reads its steps from the parameter table at ``table``.

    One call runs at a time, so that a fault has one step; nested calls come from signal handlers.

    Raises:
        InternalError: the machine code has written next to a buffer.
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
    """Raise InternalError if the bytes around a buffer were overwritten."""
    buffers = [reference() for reference in list(_writable.values())]
    damaged = [x.text for x in buffers if x is not None and not x.intact()]
    if damaged:
        raise InternalError(
            f"the machine code of {name!r} has written next to {', and next to '.join(damaged)}"
        )


class _Allocation:
    """A mapping with blocks between protected pages; its ``nbytes`` usable bytes begin at ``address``.

    The unused bytes of its pages have a value that differs between allocations, so that copying them is
    detected too.
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
        number = _buffers.add(self._start, length, f"of {self.text}")
        freed = f"of {self.text}, which is freed"
        # Not freed at exit: threads may still use it.
        weakref.finalize(
            self, _release_allocation, id(self), number, self._start, length, freed
        ).atexit = False
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
        """Whether no byte before or after a block was overwritten."""
        return all(
            ctypes.string_at(self._address(start), count) == bytes([self._mark]) * count
            for block in self._blocks
            for start, count in block.margins
        )

    def _fill(self, block: GuardedBlock) -> None:
        """Write the pattern to a block, and the allocation's mark before and after it."""
        begin = self._address(block.start)
        for offset in range(0, block.size, len(_PATTERNS)):
            ctypes.memmove(begin + offset, _PATTERNS, min(len(_PATTERNS), block.size - offset))
        for start, count in block.margins:
            ctypes.memset(self._address(start), self._mark, count)

    def _address(self, offset: int) -> int:
        return self._start + _PAGE + offset

    def _protect(self, block: GuardedBlock, access: int) -> None:
        if _libc().mprotect(self._address(block.page), _whole_pages(block.size), access):
            raise MemoryError("the system can't protect more memory")


class _BufferTable:
    """The table in which the fault handler finds the description of the buffer at an address."""

    def __init__(self) -> None:
        self.table = np.zeros((_MAX_BUFFERS, 4), np.int64)
        self._texts: list[Any] = [None] * _MAX_BUFFERS
        self._unused = list(range(_MAX_BUFFERS - 1, -1, -1))

    def add(self, start: int, length: int, text: str) -> int:
        """Add an entry; returns its index, or ``_MAX_BUFFERS`` if the table is full."""
        with _lock.lock:
            number = self._unused.pop() if self._unused else _MAX_BUFFERS
        self.replace(number, start, length, text)
        return number

    def clear(self, number: int) -> None:
        """Clear an entry, for another buffer; the caller holds the lock."""
        if number < _MAX_BUFFERS:
            self.table[number] = 0
            self._unused.append(number)

    def replace(self, number: int, start: int, length: int, text: str) -> None:
        """Write an entry; does nothing for a buffer that has none."""
        if number == _MAX_BUFFERS:
            return
        self._texts[number] = content = ctypes.create_string_buffer(text.encode() + b"\n")
        self.table[number] = start, start + length, ctypes.addressof(content), len(content) - 1


class _Quarantine:
    """A queue of freed buffers: each stays protected until :data:`_QUARANTINE` more are freed."""

    def __init__(self) -> None:
        self._freed: deque[tuple[int, int, int]] = deque()

    def push(self, number: int, start: int, length: int) -> None:
        """Append a freed buffer, ``number`` in the table; if the queue is full, unmap the oldest."""
        with _lock.lock:
            self._freed.append((number, start, length))
            if len(self._freed) > _QUARANTINE:
                oldest, start, length = self._freed.popleft()
                _libc().munmap(start, length)
                _buffers.clear(oldest)


class _Native(NamedTuple):
    """The symbols for machine code, and the address of the record that the fault handler reads."""

    record: int
    symbols: Mapping[str, int]
    owners: tuple[object, ...]


def _native() -> _Native:
    with unforkable():
        if not _installed:
            _installed.append(_install())
        return _installed[0]


def _install() -> _Native:
    """Install the fault handler; returns it with the functions that allocate for machine code."""
    record = immortal.zeroed(_RECORD_BYTES, 64)
    address = _buffers.table.__array_interface__["data"][0]
    (ctypes.c_int64 * 2).from_address(record + _BUFFER_TABLE)[:] = [address, _MAX_BUFFERS]
    calls = {name: jit.process_symbol(name) for name in ("write", "sigaction")}
    code = jit.compile_text(jit.shipped_text("faults.ll"), ["df_on_fault"], {**calls, RECORD: record})
    action = _ACTION.pack(code.address("df_on_fault"), _SIGNAL_INFO | _OWN_STACK, 0)
    for number, offset in _SAVED_ACTIONS.items():
        _libc().sigaction(number, action, record + offset)
    functions = _REALLOC(_reallocate), _FREE(_free)
    realloc, release = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions)
    return _Native(record, {"realloc": realloc, "free": release, RECORD: record}, (code, functions))


def _reallocate(old: int | None, nbytes: int) -> int:
    """C's realloc for machine code; 0 if memory is exhausted."""
    try:
        allocation = _allocation(nbytes, "memory of a dynamic size")
    except MemoryError:
        return 0
    with _lock.lock:
        if old:
            before = _allocated.pop(old)
            ctypes.memmove(allocation.address, old, min(nbytes, before.nbytes))
        _allocated[allocation.address] = allocation
    return allocation.address


def _free(address: int | None) -> None:
    free(address or 0)


def _release_allocation(owner: int, number: int, start: int, length: int, text: str) -> None:
    """Free an allocation: its addresses stay protected, and a fault there has the description ``text``."""
    _writable.pop(owner, None)
    _mapped(start, length, _NO_ACCESS, _MAP | _FIXED)
    _buffers.replace(number, start, length, text)
    _quarantine.push(number, start, length)


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
        raise MemoryError(f"the system can't allocate {length} more bytes")
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
_buffers: Final = _BufferTable()
_quarantine: Final = _Quarantine()
_marks: Final = itertools.cycle(range(0x81, 0xC0))
_installed: Final[list[_Native]] = []
_writable: Final[dict[int, weakref.ref[_Allocation]]] = {}
"""The allocations that machine code may write to, by identity."""
_allocated: Final[dict[int, _Allocation]] = {}
"""The allocations of machine code, by address."""
