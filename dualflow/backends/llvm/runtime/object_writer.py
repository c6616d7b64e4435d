"""Writes an x86-64 ELF object: sections, symbols, and relocations by these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualflow.backends.llvm.runtime.object_file import (
    EXECUTE,
    HEADER,
    IDENTITY,
    PROGBITS,
    RELOCATABLE,
    RELOCATION,
    RELOCATIONS,
    SECTION,
    STRINGS,
    SYMBOL,
    SYMBOLS,
    UNDEFINED,
    WRITE,
    X86_64,
    ZEROS,
    LoadedSection,
    SectionHeader,
    Table,
)
from dualflow.core.records import NamedTuple, dataclass, field

_VERSION = 1
_TABLE_ALIGNMENT = 8
_ABOUT_ANOTHER = 0x40
"""That a section is about another one, which its header names."""


@dataclass(slots=True, eq=False)
class WrittenSection:
    """Sections of one kind, one behind another, with the relocations in them."""

    flags: int
    zeros: bool
    alignment: int = 1
    size: int = 0
    parts: list[tuple[int, Table]] = field(default_factory=list)
    relocations: list[Table] = field(default_factory=list)

    def add(self, section: LoadedSection) -> int:
        """Append a section: where it begins."""
        self.alignment = max(self.alignment, section.alignment)
        start = -(-self.size // section.alignment) * section.alignment
        self.size = start + section.size
        if section.content is not None:
            self.parts.append((start, section.content))
        return start

    @property
    def name(self) -> str:
        """What sections of this kind are usually called."""
        if self.flags & EXECUTE:
            return ".text"
        if self.flags & WRITE:
            return ".bss" if self.zeros else ".data"
        return ".rodata"

    def content(self) -> bytes:
        """The bytes that the file has for it."""
        made = np.zeros(0 if self.zeros else self.size, np.uint8)
        for start, part in self.parts:
            made[start : start + part.size] = part
        return made.tobytes()


class WrittenSymbol(NamedTuple):
    """A symbol: the name that others know it by, its binding and kind, its place; sections count from 1."""

    name: str
    info: int
    section: int = UNDEFINED
    value: int = 0
    size: int = 0


class _Entry(NamedTuple):
    """A section of the file: its content, and what its header says of it beside place and size."""

    name: str
    kind: int
    content: bytes
    flags: int = 0
    alignment: int = 1
    link: int = 0
    info: int = 0
    row: int = 0
    zeros: int = 0


def object_bytes(sections: Sequence[WrittenSection], symbols: Sequence[WrittenSymbol], private: int) -> bytes:
    """The file; the first ``private`` symbols are those that only the object itself knows."""
    text, starts = _strings([symbol.name for symbol in symbols])
    rows = np.zeros(len(symbols) + 1, SYMBOL)
    for row, symbol, start in zip(rows[1:], symbols, starts, strict=True):
        row["name"], row["info"], row["section"] = start, symbol.info, symbol.section
        row["value"], row["size"] = symbol.value, symbol.size
    entries = [_loaded(section) for section in sections]
    table = len(entries) + 1
    entries.append(
        _Entry(
            ".symtab", SYMBOLS, rows.tobytes(), 0, _TABLE_ALIGNMENT, table + 1, private + 1, SYMBOL.itemsize
        )
    )
    entries.append(_Entry(".strtab", STRINGS, text))
    for number, section in enumerate(sections, start=1):
        found = np.concatenate([np.zeros(0, RELOCATION), *section.relocations])
        if len(found):
            entries.append(
                _Entry(
                    f".rela{section.name}",
                    RELOCATIONS,
                    found.tobytes(),
                    _ABOUT_ANOTHER,
                    _TABLE_ALIGNMENT,
                    table,
                    number,
                    RELOCATION.itemsize,
                )
            )
    return _file(entries)


def _loaded(section: WrittenSection) -> _Entry:
    kind = ZEROS if section.zeros else PROGBITS
    size = section.size if section.zeros else 0
    return _Entry(section.name, kind, section.content(), section.flags, section.alignment, zeros=size)


def _strings(names: Sequence[str]) -> tuple[bytes, list[int]]:
    """Names with an end each, and where they begin; no name is the first."""
    starts, text = [], bytearray(1)
    for name in names:
        starts.append(len(text) if name else 0)
        text += name.encode() + b"\0" if name else b""
    return bytes(text), starts


def _file(entries: Sequence[_Entry]) -> bytes:
    """The header, the contents, and a header for each of them."""
    names = [*(entry.name for entry in entries), ".shstrtab"]
    text, starts = _strings(names)
    body = bytearray(HEADER.size)
    headers = [SectionHeader(*[0] * 10)]
    for entry, name in zip([*entries, _Entry(".shstrtab", STRINGS, text)], starts, strict=True):
        body += bytes(-len(body) % entry.alignment)
        size = entry.zeros or len(entry.content)
        headers.append(
            SectionHeader(
                name,
                entry.kind,
                entry.flags,
                0,
                len(body),
                size,
                entry.link,
                entry.info,
                entry.alignment,
                entry.row,
            )
        )
        body += entry.content
    body += bytes(-len(body) % _TABLE_ALIGNMENT)
    head = HEADER.pack(
        IDENTITY.ljust(16, b"\0"),
        RELOCATABLE,
        X86_64,
        _VERSION,
        0,
        0,
        len(body),
        0,
        HEADER.size,
        0,
        0,
        SECTION.size,
        len(headers),
        len(headers) - 1,
    )
    body[: HEADER.size] = head
    return bytes(body) + b"".join([SECTION.pack(*header) for header in headers])
