"""A linker for the objects that our compiler writes: x86-64 ELF, position-independent, small code model.

An object is sections of bytes, symbols that name places in them, and relocations: places where an address has
to be written. ``load`` copies the sections into fresh memory, finds every symbol, and writes the addresses.
Functions of other libraries may lie further away than the 2 GiB that an instruction can span, so calls to
them go by a stub close at hand, and addresses that instructions load stand in a table close at hand. Linking
this way takes a fraction of a millisecond; importing LLVM to do it takes tens. What is not understood is
refused, and LLVM's linker takes over.

The format: System V Application Binary Interface, AMD64 Architecture Processor Supplement, chapter 4.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dualflow.backends.llvm.runtime.object_file import (
    ABSOLUTE_64,
    BY_TABLE,
    CALL,
    EXECUTE,
    LOCAL,
    UNDEFINED,
    WIDTHS,
    WRITE,
    LoadedSection,
    Table,
    UnsupportedObject,
    read,
)
from dualflow.backends.runtime import switches
from dualflow.core.records import NamedTuple

SUPPORTED = sys.platform == "linux" and sys.maxsize > 1 << 32 and os.uname().machine == "x86_64"
"""Whether this process can run what ``load`` puts into memory."""


class Image(NamedTuple):
    """An object in memory, with the addresses of its global functions and variables."""

    addresses: dict[str, int]
    start: int
    size: int

    def unload(self) -> None:
        """Give the memory back; the addresses are void from then on."""
        _munmap(self.start, self.size)


def unavailable_reason() -> str:
    """Why ``load`` is not to be used in this process; the empty string where it is."""
    if not SUPPORTED:
        return "it is for 64-bit Linux on x86-64: LLVM is loaded to link"
    return switches.off("linker") or _unexecutable()


def load(code: bytes, find: Callable[[str], int]) -> Image:
    """Put an object into memory; ``find`` gives the address of each symbol that it uses and does not define.

    Raises UnsupportedObject, and whatever ``find`` raises.
    """
    file = read(code)
    symbols, names = file.symbols, file.names
    undefined = (symbols["section"] == UNDEFINED) & (np.arange(len(symbols)) > 0)
    outside = {int(i): find(names[i]) for i in np.flatnonzero(undefined)}
    plan = _lay_out(file.sections, len(symbols))
    start = _fresh_memory(plan.size)
    try:
        memory = np.frombuffer(memoryview((ctypes.c_uint8 * plan.size).from_address(start)), np.uint8)
        for index, offset in plan.offsets.items():
            content = file.sections[index].content
            if content is not None:
                memory[offset : offset + content.size] = content
        addresses = _addresses(symbols, plan, start, outside)
        memory[plan.table : plan.table + 8 * len(symbols)] = addresses.view(np.uint8)
        _write_stubs(plan, list(outside), memory)
        starts = np.zeros(max(plan.offsets, default=0) + 1, np.int64)
        starts[list(plan.offsets)] = list(plan.offsets.values())
        at = starts[file.places] + file.relocations["offset"].astype(np.int64)
        _relocate(file.relocations, at, plan, addresses, undefined, start, memory)
        _protect(plan, start)
    except BaseException:
        _munmap(start, plan.size)
        raise
    exported = np.flatnonzero((symbols["info"] >> 4 != LOCAL) & ~undefined & (addresses != 0))
    return Image({names[i]: int(addresses[i]) for i in exported}, start, plan.size)


_PAGE = mmap.PAGESIZE
_STUB_BYTES = 8
_BY_TABLE = np.isin(np.arange(len(WIDTHS)), BY_TABLE)
_JUMP_BY_TABLE = b"\xff\x25"  # jmp [rip + displacement]; the displacement of 4 bytes follows


class _Plan(NamedTuple):
    """Offsets into the memory: first code and stubs, then what is only read and the table, then the rest."""

    offsets: dict[int, int]
    stubs: int
    table: int
    read_only: int
    written: int
    size: int


def _fresh_memory(size: int) -> int:
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start: int = _mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
    if start == _MAP_FAILED:
        raise MemoryError(f"no memory for {size} bytes of machine code")
    return start


def _lay_out(sections: Mapping[int, LoadedSection], symbols: int) -> _Plan:
    offsets: dict[int, int] = {}
    end = 0

    def place(wanted: int) -> None:
        nonlocal end
        for index, section in sections.items():
            if section.flags & (WRITE | EXECUTE) == wanted:
                offsets[index] = end = _up(end, section.alignment)
                end += section.size

    place(EXECUTE)
    stubs = _up(end, _STUB_BYTES)
    read_only = end = _up(stubs + _STUB_BYTES * symbols, _PAGE)
    place(0)
    table = _up(end, 8)
    written = end = _up(table + 8 * symbols, _PAGE)
    place(WRITE)
    return _Plan(offsets, stubs, table, read_only, written, max(_up(end, _PAGE), _PAGE))


def _up(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _addresses(symbols: Table, plan: _Plan, start: int, outside: dict[int, int]) -> Table:
    """Where each symbol is; 0 for those in sections that are not loaded."""
    addresses = np.zeros(len(symbols), np.int64)
    for index, offset in plan.offsets.items():
        inside = symbols["section"] == index
        addresses[inside] = start + offset + symbols["value"][inside].astype(np.int64)
    for i, address in outside.items():
        addresses[i] = address
    return addresses


def _write_stubs(plan: _Plan, outside: list[int], memory: Table) -> None:
    for i in outside:
        stub = plan.stubs + _STUB_BYTES * i
        displacement = plan.table + 8 * i - (stub + 6)
        jump = _JUMP_BY_TABLE + struct.pack("<i", displacement)
        memory[stub : stub + 6] = np.frombuffer(jump, np.uint8)


def _relocate(
    rows: Table, at: Table, plan: _Plan, addresses: Table, undefined: Table, start: int, memory: Table
) -> None:
    """Write S + A, or S + A - P where it is relative to the place P itself, for all the rows at once."""
    kind, symbol = rows["type"], rows["symbol"]
    by_table = _BY_TABLE[kind]
    by_stub = (kind == CALL) & undefined[symbol]
    wide = WIDTHS[kind] == 8
    target = addresses[symbol]
    target = np.where(by_table, start + plan.table + 8 * symbol.astype(np.int64), target)
    target = np.where(by_stub, start + plan.stubs + _STUB_BYTES * symbol.astype(np.int64), target)
    value = target + rows["addend"] - np.where(kind == ABSOLUTE_64, 0, start + at)
    narrow = value[~wide]
    if ((narrow < -(1 << 31)) | (narrow >= 1 << 31)).any():
        raise UnsupportedObject("a relative address beyond 2 GiB")
    for bytes_wide, chosen in ((4, ~wide), (8, wide)):
        written = value[chosen].astype(f"<i{bytes_wide}").view(np.uint8).reshape(-1, bytes_wide)
        memory[at[chosen, None] + np.arange(bytes_wide)] = written


def _protect(plan: _Plan, start: int) -> None:
    parts = (
        (0, plan.read_only, mmap.PROT_READ | mmap.PROT_EXEC),
        (plan.read_only, plan.written, mmap.PROT_READ),
    )
    for begin, end, access in parts:
        if end > begin and _mprotect(start + begin, end - begin, access) != 0:
            raise UnsupportedObject(_NOT_EXECUTABLE)


@functools.cache
def _unexecutable() -> str:
    """What the system says to a page of code."""
    start = _fresh_memory(_PAGE)
    try:
        _protect(_Plan({}, 0, 0, _PAGE, _PAGE, _PAGE), start)
    except UnsupportedObject as refusal:
        return str(refusal)
    finally:
        _munmap(start, _PAGE)
    return ""


def _system_call(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.CFUNCTYPE(result, *arguments)((name, ctypes.CDLL(None))) if SUPPORTED else _not_here


def _not_here(*_: object) -> int:
    raise UnsupportedObject("this linker is for 64-bit Linux on x86-64")


_NOT_EXECUTABLE = "the system does not let this process make memory executable"
_MAP_FAILED = (1 << 64) - 1
_pointer, _size, _int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_mmap = _system_call("mmap", _pointer, _pointer, _size, _int, _int, _int, ctypes.c_long)
_munmap = _system_call("munmap", _int, _pointer, _size)
_mprotect = _system_call("mprotect", _int, _pointer, _size, _int)
