"""A linker for the objects that the compiler emits: x86-64 ELF, position-independent, small code model.

An object consists of sections, symbols (named offsets in sections) and relocations (offsets at which an
address is written). ``load`` copies the sections into new memory, resolves all symbols and applies the
relocations. Functions of other libraries may be further away than the 2 GiB that an instruction can address,
so calls to them go through a stub, and addresses that instructions load are in a table (as with PLT and GOT).
This takes a fraction of a millisecond; importing LLVM to link takes tens. An object with unsupported features
is rejected, and LLVM's linker is used.

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
"""Whether this process can execute what ``load`` links."""
_PAGE = mmap.PAGESIZE
_STUB_BYTES = 8
_BY_TABLE = np.isin(np.arange(len(WIDTHS)), BY_TABLE)
_JUMP_BY_TABLE = b"\xff\x25"  # jmp [rip + displacement]; the displacement of 4 bytes follows
_NOT_EXECUTABLE = "the system does not allow this process to make memory executable"
_MAP_FAILED = (1 << 64) - 1


class Image(NamedTuple):
    """An object in memory, with the addresses of its global functions and variables."""

    addresses: dict[str, int]
    start: int
    size: int

    def unload(self) -> None:
        """Free the memory; the addresses become invalid."""
        _munmap(self.start, self.size)


def unavailable_reason() -> str:
    """The reason that ``load`` is unavailable in this process; the empty string if it is available."""
    if not SUPPORTED:
        return "it requires 64-bit Linux on x86-64: LLVM is loaded to link"
    return switches.off("linker") or _not_executable_reason()


def load(code: bytes, resolve: Callable[[str], int]) -> Image:
    """Link an object into memory; ``resolve`` returns the address of each undefined symbol.

    Raises:
        UnsupportedObject: the object has a feature that this linker has not.
        MemoryError: no memory is left for the object.
        Exception: those of ``resolve``.
    """
    file = read(code)
    symbols, names = file.symbols, file.names
    undefined = (symbols["section"] == UNDEFINED) & (np.arange(len(symbols)) > 0)
    imports = {int(i): resolve(names[i]) for i in np.flatnonzero(undefined)}
    layout = _lay_out(file.sections, len(symbols))
    start = _fresh_memory(layout.size)
    try:
        memory = np.frombuffer(memoryview((ctypes.c_uint8 * layout.size).from_address(start)), np.uint8)
        for index, offset in layout.offsets.items():
            content = file.sections[index].content
            if content is not None:
                memory[offset : offset + content.size] = content
        addresses = _addresses(symbols, layout, start, imports)
        memory[layout.table : layout.table + 8 * len(symbols)] = addresses.view(np.uint8)
        _write_stubs(layout, list(imports), memory)
        starts = np.zeros(max(layout.offsets, default=0) + 1, np.int64)
        starts[list(layout.offsets)] = list(layout.offsets.values())
        targets = starts[file.relocation_sections] + file.relocations["offset"].astype(np.int64)
        _relocate(file.relocations, targets, layout, addresses, undefined, start, memory)
        _protect(layout, start)
    except BaseException:
        _munmap(start, layout.size)
        raise
    exported = np.flatnonzero((symbols["info"] >> 4 != LOCAL) & ~undefined & (addresses != 0))
    return Image({names[i]: int(addresses[i]) for i in exported}, start, layout.size)


class _MemoryLayout(NamedTuple):
    """The offsets in memory of code and stubs, read-only data and the address table, and writable data."""

    offsets: dict[int, int]
    stubs: int
    table: int
    code_end: int
    read_only_end: int
    size: int


def _fresh_memory(size: int) -> int:
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start: int = _mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
    if start == _MAP_FAILED:
        raise MemoryError(f"no memory for {size} bytes of machine code")
    return start


def _lay_out(sections: Mapping[int, LoadedSection], symbols: int) -> _MemoryLayout:
    offsets: dict[int, int] = {}
    end = 0

    def place_sections(flags: int) -> None:
        nonlocal end
        for index, section in sections.items():
            if section.flags & (WRITE | EXECUTE) == flags:
                offsets[index] = end = _align_up(end, section.alignment)
                end += section.size

    place_sections(EXECUTE)
    stubs = _align_up(end, _STUB_BYTES)
    code_end = end = _align_up(stubs + _STUB_BYTES * symbols, _PAGE)
    place_sections(0)
    table = _align_up(end, 8)
    read_only_end = end = _align_up(table + 8 * symbols, _PAGE)
    place_sections(WRITE)
    return _MemoryLayout(offsets, stubs, table, code_end, read_only_end, max(_align_up(end, _PAGE), _PAGE))


def _align_up(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _addresses(symbols: Table, layout: _MemoryLayout, start: int, imports: dict[int, int]) -> Table:
    """The address of each symbol; 0 for those in sections that are not loaded."""
    addresses = np.zeros(len(symbols), np.int64)
    for index, offset in layout.offsets.items():
        inside = symbols["section"] == index
        addresses[inside] = start + offset + symbols["value"][inside].astype(np.int64)
    for i, address in imports.items():
        addresses[i] = address
    return addresses


def _write_stubs(layout: _MemoryLayout, imports: list[int], memory: Table) -> None:
    for i in imports:
        stub = layout.stubs + _STUB_BYTES * i
        displacement = layout.table + 8 * i - (stub + 6)
        jump = _JUMP_BY_TABLE + struct.pack("<i", displacement)
        memory[stub : stub + 6] = np.frombuffer(jump, np.uint8)


def _relocate(
    relocations: Table,
    targets: Table,
    layout: _MemoryLayout,
    addresses: Table,
    undefined: Table,
    start: int,
    memory: Table,
) -> None:
    """Write S + A, or S + A - P for relative relocations, for all relocations at once."""
    kind, symbol = relocations["type"], relocations["symbol"]
    by_table = _BY_TABLE[kind]
    by_stub = (kind == CALL) & undefined[symbol]
    wide = WIDTHS[kind] == 8
    target = addresses[symbol]
    target = np.where(by_table, start + layout.table + 8 * symbol.astype(np.int64), target)
    target = np.where(by_stub, start + layout.stubs + _STUB_BYTES * symbol.astype(np.int64), target)
    value = target + relocations["addend"] - np.where(kind == ABSOLUTE_64, 0, start + targets)
    narrow = value[~wide]
    if ((narrow < -(1 << 31)) | (narrow >= 1 << 31)).any():
        raise UnsupportedObject("a relative address beyond 2 GiB")
    for bytes_wide, selected in ((4, ~wide), (8, wide)):
        written = value[selected].astype(f"<i{bytes_wide}").view(np.uint8).reshape(-1, bytes_wide)
        memory[targets[selected, None] + np.arange(bytes_wide)] = written


def _protect(layout: _MemoryLayout, start: int) -> None:
    parts = (
        (0, layout.code_end, mmap.PROT_READ | mmap.PROT_EXEC),
        (layout.code_end, layout.read_only_end, mmap.PROT_READ),
    )
    for begin, end, access in parts:
        if end > begin and _mprotect(start + begin, end - begin, access) != 0:
            raise UnsupportedObject(_NOT_EXECUTABLE)


@functools.cache
def _not_executable_reason() -> str:
    """The reason that this process can't make memory executable; empty if it can."""
    start = _fresh_memory(_PAGE)
    try:
        _protect(_MemoryLayout({}, 0, 0, _PAGE, _PAGE, _PAGE), start)
    except UnsupportedObject as error:
        return str(error)
    finally:
        _munmap(start, _PAGE)
    return ""


def _system_call(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.CFUNCTYPE(result, *arguments)((name, ctypes.CDLL(None))) if SUPPORTED else _not_here


def _not_here(*_: object) -> int:
    raise UnsupportedObject("this linker requires 64-bit Linux on x86-64")


_pointer, _size, _int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_mmap = _system_call("mmap", _pointer, _pointer, _size, _int, _int, _int, ctypes.c_long)
_munmap = _system_call("munmap", _int, _pointer, _size)
_mprotect = _system_call("mprotect", _int, _pointer, _size, _int)
