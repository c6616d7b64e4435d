"""Reads an x86-64 ELF object, and validates it.

The result of ``read`` is consistent: sections are within the file and have a limited size, symbols are within
their sections, and relocations within theirs. So a damaged file is rejected here, and never makes the linker
write outside of the memory that it is loaded into. A changed instruction, or a relocation with another valid
offset, is not detected here, but by the digest of the cache.

The format: System V Application Binary Interface, AMD64 Architecture Processor Supplement, chapter 4.
"""

from __future__ import annotations

import mmap
import struct
from typing import Any

import numpy as np

from dualflow.core.records import NamedTuple

Table = np.ndarray[Any, Any]

MAX_BYTES = 256 << 20
"""The maximum memory of all sections of an object that the compiler emits."""

PROGBITS, SYMBOLS, STRINGS, RELOCATIONS, ZEROS, UNWIND = 1, 2, 3, 4, 8, 0x70000001  # kinds of section
WRITE, ALLOCATE, EXECUTE = 1, 2, 4  # flags of a section
UNDEFINED = 0  # the section of a symbol that is defined elsewhere
LOCAL = 0  # binding of a symbol
RELATIVE_32, CALL, ABSOLUTE_64, RELATIVE_64 = 2, 4, 1, 24  # R_X86_64_PC32, PLT32, 64, PC64
BY_TABLE = 9, 41, 42  # R_X86_64_GOTPCREL, GOTPCRELX, REX_GOTPCRELX: by the address in a table
WIDTHS = np.zeros(64, np.int64)  # the bytes that each kind of relocation writes; 0 for unsupported ones
WIDTHS[[RELATIVE_32, CALL, *BY_TABLE]] = 4
WIDTHS[[ABSOLUTE_64, RELATIVE_64]] = 8

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])

# The parts of the format, by their names in the specification without the prefixes.
IDENTITY = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
RELOCATABLE, X86_64 = 1, 62
_NULL, _NOTE = 0, 7  # kinds of section that are left out
_SUPPORTED_SECTIONS = (_NULL, PROGBITS, SYMBOLS, STRINGS, RELOCATIONS, _NOTE, ZEROS, UNWIND)
_FIRST_RESERVED, _ABSOLUTE = 0xFF00, 0xFFF1  # indices of sections
_FUNCTION, _FILE = 2, 4  # kinds of symbol; larger ones (thread-local, indirect) aren't supported


class SectionHeader(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class UnsupportedObject(Exception):
    """The bytes are no object file, a damaged one, or one with unsupported features of ELF."""


class LoadedSection(NamedTuple):
    """A section that is loaded: ``content``, or ``size`` zeros if it is None."""

    flags: int
    alignment: int
    size: int
    content: Table | None


class ObjectFile(NamedTuple):
    """The parts of an ELF object that the linker uses: loaded sections, symbols and relocations.

    Attributes:
        sections: by their index in the file.
        symbols: with the fields of the format; each is undefined, in a section that is loaded, or unused.
        names: of the symbols.
        relocations: with the fields of the format.
        relocation_sections: the index of the section that each relocation is in.
    """

    sections: dict[int, LoadedSection]
    symbols: Table
    names: list[str]
    relocations: Table
    relocation_sections: Table


def read(code: bytes) -> ObjectFile:
    """The parts of an object. Raises UnsupportedObject if it is invalid or has unsupported features."""
    headers = _section_headers(code)
    contents = [_content(code, header) for header in headers]
    sections = {
        i: LoadedSection(header.flags, max(1, header.alignment), header.size, content)
        for i, (header, content) in enumerate(zip(headers, contents, strict=True))
        if i and header.flags & ALLOCATE and header.type != UNWIND
    }
    total = sum(section.size + section.alignment for section in sections.values())
    _require(total <= MAX_BYTES, f"sections of {total} bytes")
    tables = [i for i, header in enumerate(headers) if header.type == SYMBOLS]
    _require(len(tables) == 1, f"{len(tables)} tables of symbols")
    symbols = _table(contents[tables[0]], SYMBOL, "symbols")
    strings = headers[tables[0]].link
    _require(strings < len(contents), f"strings in section {strings}, which does not exist")
    names = _names(symbols, contents[strings])
    empty = np.zeros(0, RELOCATION)
    tables_of_targets = [(0, empty)]
    for header, content in zip(headers, contents, strict=True):
        if header.type == RELOCATIONS:
            _require(header.link == tables[0], "relocations by another table of symbols")
            tables_of_targets.append((header.info, _table(content, RELOCATION, "relocations")))
    loaded = [table if target in sections else empty for target, table in tables_of_targets]
    relocations = np.concatenate(loaded)
    targets = np.array([target for target, _ in tables_of_targets])
    relocation_sections = np.repeat(targets, [len(table) for table in loaded])
    sizes = np.array([sections[i].size if i in sections else -1 for i in range(len(headers))])
    is_code = np.array([header.flags & EXECUTE != 0 for header in headers])
    resolvable = _check_symbols(symbols, sizes, is_code)
    _check_relocations(relocations, sizes[relocation_sections], resolvable)
    return ObjectFile(sections, symbols, names, relocations, relocation_sections)


def _require(condition: object, otherwise: str) -> None:
    if not condition:
        raise UnsupportedObject(otherwise)


def _section_headers(code: bytes) -> list[SectionHeader]:
    _require(len(code) >= HEADER.size, "not an object file: it ends within its header")
    identity, kind, machine, _, _, _, at, _, _, _, _, entry_size, count, _ = HEADER.unpack_from(code)
    is_supported = identity.startswith(IDENTITY) and (kind, machine) == (RELOCATABLE, X86_64)
    _require(is_supported, "not an x86-64 ELF object")
    _require(entry_size == SECTION.size, f"section headers of {entry_size} bytes")
    _require(at + count * entry_size <= len(code), "not an object file: section headers beyond its end")
    return [SectionHeader(*SECTION.unpack_from(code, at + i * entry_size)) for i in range(count)]


def _content(code: bytes, header: SectionHeader) -> Table | None:
    """The bytes of a section; None if the file has none for it."""
    kind, flags, size, alignment = header.type, header.flags, header.size, header.alignment
    _require(kind in _SUPPORTED_SECTIONS, f"a section of type {kind}")
    if flags & ALLOCATE and kind != UNWIND:
        _require(kind in (PROGBITS, ZEROS) or not size, f"a section of type {kind}")
        _require(flags & (WRITE | EXECUTE) != WRITE | EXECUTE, "code that may be written to")
        _require(alignment & (alignment - 1) == 0 and alignment <= mmap.PAGESIZE, f"alignment {alignment}")
        _require(size <= MAX_BYTES, f"a section of {size} bytes")
    if kind in (_NULL, ZEROS):
        return None
    _require(header.offset + size <= len(code), "not an object file: a section beyond its end")
    return np.frombuffer(code, np.uint8, size, header.offset)


def _table(content: Table | None, row: np.dtype[Any], what: str) -> Table:
    if content is None or content.size % row.itemsize:
        raise UnsupportedObject(f"{what} in {0 if content is None else content.size} bytes")
    return content.view(row)


def _names(symbols: Table, strings: Table | None) -> list[str]:
    text = b"" if strings is None else strings.tobytes()
    _require(text.endswith(b"\0"), "strings without an end")
    starts = symbols["name"].tolist()
    _require(max(starts, default=0) < len(text), "a name beyond the strings")
    try:
        return [text[start : text.index(b"\0", start)].decode() for start in starts]
    except UnicodeDecodeError:
        raise UnsupportedObject("a name that is no text") from None


def _check_symbols(symbols: Table, sizes: Table, code: Table) -> Table:
    """Validate symbols: within their section, functions in code. Returns a mask of those with an address."""
    kind, section = symbols["info"] & 15, symbols["section"]
    reserved = section >= _FIRST_RESERVED
    plain = (kind <= _FILE).all() and not (reserved & (section != _ABSOLUTE)).any()
    _require(plain, "thread-local, indirect or common symbols")
    _require((reserved | (section < len(sizes))).all(), "a symbol in a section that does not exist")
    section = np.where(reserved, 0, section)
    size = sizes[section]
    loaded = (size >= 0) & ~reserved
    available = np.maximum(size, 0).astype(np.uint64)
    function = loaded & (kind == _FUNCTION)
    beyond = (symbols["value"] > available) | (function & (symbols["value"] == available))
    _require(not (loaded & beyond).any(), "a symbol beyond its section")
    _require(not (function & ~code[section]).any(), "a function among data")
    resolvable: Table = loaded | ((section == UNDEFINED) & ~reserved)
    resolvable[:1] = False  # the first symbol is reserved for none
    return resolvable


def _check_relocations(relocations: Table, section_sizes: Table, resolvable: Table) -> None:
    """Require that each relocation has a supported kind, a resolvable symbol, and is within its section."""
    kind, symbol = relocations["type"], relocations["symbol"]
    supported = kind < len(WIDTHS)
    width = WIDTHS[np.where(supported, kind, 0)]
    _require(width.all(), f"relocations of the types {sorted(set(kind.tolist()))}")
    _require((symbol < len(resolvable)).all(), "a relocation by a symbol that does not exist")
    _require(resolvable[symbol].all(), "a relocation by a symbol that is not loaded")
    last = np.maximum(section_sizes - width, 0).astype(np.uint64)
    within = (section_sizes >= width) & (relocations["offset"] <= last)
    _require(within.all(), "a relocation beyond its section")
