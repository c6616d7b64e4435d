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
import mmap
import os
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Table = np.ndarray[Any, Any]

SUPPORTED = sys.platform == "linux" and sys.maxsize > 1 << 32 and os.uname().machine == "x86_64"
"""Whether this process can run what ``load`` puts into memory."""


class UnsupportedObject(Exception):
    """The bytes are no object file, or one that uses more of ELF than this linker knows."""


@dataclass(frozen=True, slots=True)
class Image:
    """An object in memory, with the addresses of its global functions and variables."""

    addresses: dict[str, int]
    start: int
    size: int

    def unload(self) -> None:
        """Give the memory back; the addresses are void from then on."""
        _munmap(self.start, self.size)


def load(code: bytes, find: Callable[[str], int]) -> Image:
    """Put an object into memory; ``find`` gives the address of each symbol that it uses and does not define.

    Raises UnsupportedObject, and whatever ``find`` raises.
    """
    try:
        sections, symbols, names = _read(code)
    except (ValueError, IndexError, struct.error) as damage:
        raise UnsupportedObject(f"not an object file: {damage}") from damage
    undefined = (symbols["section"] == _UNDEFINED) & (np.arange(len(symbols)) > 0)
    outside = {int(i): find(names[i]) for i in np.flatnonzero(undefined)}
    plan = _lay_out(sections, len(symbols))
    start = _fresh_memory(plan.size)
    try:
        memory = np.frombuffer(memoryview((ctypes.c_uint8 * plan.size).from_address(start)), np.uint8)
        for index, offset in plan.offsets.items():
            if sections[index]["type"] != _ZEROS:
                memory[offset : offset + int(sections[index]["size"])] = _content(code, sections[index])
        addresses = _addresses(symbols, plan, start, outside)
        memory[plan.table : plan.table + 8 * len(symbols)] = addresses.view(np.uint8)
        _write_stubs(plan, list(outside), memory)
        for rows in sections[sections["type"] == _RELOCATIONS]:
            if int(rows["info"]) in plan.offsets:
                table = np.frombuffer(_content(code, rows), _RELOCATION)
                _relocate(table, plan.offsets[int(rows["info"])], plan, addresses, undefined, start, memory)
        _protect(plan, start)
    except BaseException:
        _munmap(start, plan.size)
        raise
    exported = np.flatnonzero((symbols["info"] >> 4 != _LOCAL) & ~undefined)
    return Image({names[i]: int(addresses[i]) for i in exported}, start, plan.size)


# The parts of the format, by their names in the specification without the prefixes.
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = np.dtype(
    [
        ("name", "<u4"),
        ("type", "<u4"),
        ("flags", "<u8"),
        ("address", "<u8"),
        ("offset", "<u8"),
        ("size", "<u8"),
        ("link", "<u4"),
        ("info", "<u4"),
        ("alignment", "<u8"),
        ("entry_size", "<u8"),
    ]
)
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])

_IDENTITY = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMBOLS, _RELOCATIONS, _ZEROS, _UNWIND = 1, 2, 4, 8, 0x70000001  # kinds of section
_WRITE, _ALLOCATE, _EXECUTE = 1, 2, 4  # flags of a section
_UNDEFINED, _FIRST_RESERVED, _ABSOLUTE = 0, 0xFF00, 0xFFF1  # indices of sections
_LOCAL = 0  # binding of a symbol
_PLAIN_SYMBOLS = 4  # kinds NOTYPE, OBJECT, FUNC, SECTION and FILE; thread-local and indirect ones are beyond
_64, _PC32, _PLT32, _GOTPCREL, _PC64 = 1, 2, 4, 9, 24  # kinds of relocation
_GOTPCRELX, _REX_GOTPCRELX = 41, 42

_PAGE = mmap.PAGESIZE
_STUB_BYTES = 8
_JUMP_BY_TABLE = b"\xff\x25"  # jmp [rip + displacement]; the displacement of 4 bytes follows


@dataclass(frozen=True, slots=True)
class _Plan:
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


def _read(code: bytes) -> tuple[Table, Table, list[str]]:
    """The sections, the symbols and their names."""
    identity, kind, machine, _, _, _, at, _, _, _, _, entry_size, count, _ = _HEADER.unpack_from(code)
    if not identity.startswith(_IDENTITY) or (kind, machine) != (_RELOCATABLE, _X86_64):
        raise UnsupportedObject("not an x86-64 ELF object")
    if entry_size != _SECTION.itemsize:
        raise UnsupportedObject(f"section headers of {entry_size} bytes")
    sections = np.frombuffer(code, _SECTION, count, at)
    (of_symbols,) = sections[sections["type"] == _SYMBOLS]
    symbols = np.frombuffer(_content(code, of_symbols), _SYMBOL)
    strings = bytes(_content(code, sections[of_symbols["link"]]))
    names = [strings[i : strings.index(b"\0", i)].decode() for i in symbols["name"].tolist()]
    reserved = symbols["section"] >= _FIRST_RESERVED
    if (symbols["info"] & 15 > _PLAIN_SYMBOLS).any() or (reserved & (symbols["section"] != _ABSOLUTE)).any():
        raise UnsupportedObject("thread-local, indirect or common symbols")
    return sections, symbols, names


def _content(code: bytes, section: Any) -> Table:
    return np.frombuffer(code, np.uint8, int(section["size"]), int(section["offset"]))


def _lay_out(sections: Table, symbols: int) -> _Plan:
    offsets: dict[int, int] = {}
    end = 0

    def place(wanted: int) -> None:
        nonlocal end
        for index, section in enumerate(sections):
            flags = int(section["flags"])
            wanted_here = flags & _ALLOCATE and flags & (_WRITE | _EXECUTE) == wanted
            if not wanted_here or section["type"] == _UNWIND:
                continue
            if section["size"] and section["type"] not in (_PROGBITS, _ZEROS):
                raise UnsupportedObject(f"a section of type {section['type']}")
            offsets[index] = end = _up(end, max(1, int(section["alignment"])))
            end += int(section["size"])

    place(_EXECUTE)
    stubs = _up(end, _STUB_BYTES)
    read_only = end = _up(stubs + _STUB_BYTES * symbols, _PAGE)
    place(0)
    table = _up(end, 8)
    written = end = _up(table + 8 * symbols, _PAGE)
    place(_WRITE)
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
    rows: Table, section: int, plan: _Plan, addresses: Table, undefined: Table, start: int, memory: Table
) -> None:
    """Write S + A, or S + A - P where it is relative to the place P itself, for all the rows at once."""
    kind, symbol = rows["type"], rows["symbol"]
    by_table = np.isin(kind, (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX))
    by_stub = (kind == _PLT32) & undefined[symbol]
    wide = np.isin(kind, (_64, _PC64))
    if not (by_table | wide | np.isin(kind, (_PC32, _PLT32))).all():
        raise UnsupportedObject(f"relocations of the types {sorted(set(kind.tolist()))}")
    target = addresses[symbol]
    target = np.where(by_table, start + plan.table + 8 * symbol.astype(np.int64), target)
    target = np.where(by_stub, start + plan.stubs + _STUB_BYTES * symbol.astype(np.int64), target)
    at = section + rows["offset"].astype(np.int64)
    value = target + rows["addend"] - np.where(kind == _64, 0, start + at)
    if (np.abs(value[~wide]) >= 1 << 31).any():
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
            raise UnsupportedObject("the system does not let this process make memory executable")


def _system_call(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.CFUNCTYPE(result, *arguments)((name, ctypes.CDLL(None))) if SUPPORTED else _not_here


def _not_here(*_: object) -> int:
    raise UnsupportedObject("this linker is for 64-bit Linux on x86-64")


_MAP_FAILED = (1 << 64) - 1
_pointer, _size, _int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_mmap = _system_call("mmap", _pointer, _pointer, _size, _int, _int, _int, ctypes.c_long)
_munmap = _system_call("munmap", _int, _pointer, _size)
_mprotect = _system_call("mprotect", _int, _pointer, _size, _int)
