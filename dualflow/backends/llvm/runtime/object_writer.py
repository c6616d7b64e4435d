"""Writes an x86-64 ELF object: sections, symbols and relocations."""

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
_INFO_LINK = 0x40
"""The flag SHF_INFO_LINK: the header's info field is the number of another section."""


@dataclass(slots=True, eq=False)
class OutputSection:
    """A section of the output: concatenated sections of one kind, with their relocations."""

    flags: int
    zeros: bool
    alignment: int = 1
    size: int = 0
    parts: list[tuple[int, Table]] = field(default_factory=list)
    relocations: list[Table] = field(default_factory=list)

    def add(self, section: LoadedSection) -> int:
        """Append a section; returns its offset."""
        self.alignment = max(self.alignment, section.alignment)
        start = -(-self.size // section.alignment) * section.alignment
        self.size = start + section.size
        if section.content is not None:
            self.parts.append((start, section.content))
        return start

    @property
    def name(self) -> str:
        """The conventional name of sections of this kind."""
        if self.flags & EXECUTE:
            return ".text"
        if self.flags & WRITE:
            return ".bss" if self.zeros else ".data"
        return ".rodata"

    def content(self) -> bytes:
        """The bytes of the section in the file."""
        content = np.zeros(0 if self.zeros else self.size, np.uint8)
        for start, part in self.parts:
            content[start : start + part.size] = part
        return content.tobytes()


class OutputSymbol(NamedTuple):
    """A symbol: its global name, its binding and kind, its section (from 1) and offset."""

    name: str
    info: int
    section: int = UNDEFINED
    value: int = 0
    size: int = 0


class _Entry(NamedTuple):
    """A section of the file: its content, and the fields of its header except offset and size."""

    name: str
    kind: int
    content: bytes
    flags: int = 0
    alignment: int = 1
    link: int = 0
    info: int = 0
    row: int = 0
    zeros: int = 0


def object_bytes(
    sections: Sequence[OutputSection], symbols: Sequence[OutputSymbol], local_count: int
) -> bytes:
    """The bytes of the file; the first ``local_count`` symbols are local."""
    text, starts = _strings([symbol.name for symbol in symbols])
    rows = np.zeros(len(symbols) + 1, SYMBOL)
    for row, symbol, start in zip(rows[1:], symbols, starts, strict=True):
        row["name"], row["info"], row["section"] = start, symbol.info, symbol.section
        row["value"], row["size"] = symbol.value, symbol.size
    entries = [_loaded(section) for section in sections]
    table = len(entries) + 1
    entries.append(
        _Entry(
            ".symtab",
            SYMBOLS,
            rows.tobytes(),
            alignment=_TABLE_ALIGNMENT,
            link=table + 1,
            info=local_count + 1,
            row=SYMBOL.itemsize,
        )
    )
    entries.append(_Entry(".strtab", STRINGS, text))
    for number, section in enumerate(sections, start=1):
        relocations = np.concatenate([np.zeros(0, RELOCATION), *section.relocations])
        if len(relocations):
            entries.append(
                _Entry(
                    f".rela{section.name}",
                    RELOCATIONS,
                    relocations.tobytes(),
                    flags=_INFO_LINK,
                    alignment=_TABLE_ALIGNMENT,
                    link=table,
                    info=number,
                    row=RELOCATION.itemsize,
                )
            )
    return _file(entries)


def _loaded(section: OutputSection) -> _Entry:
    kind = ZEROS if section.zeros else PROGBITS
    size = section.size if section.zeros else 0
    return _Entry(section.name, kind, section.content(), section.flags, section.alignment, zeros=size)


def _strings(names: Sequence[str]) -> tuple[bytes, list[int]]:
    """The bytes of a string table, and the offset of each name; the empty name is at 0."""
    starts, text = [], bytearray(1)
    for name in names:
        starts.append(len(text) if name else 0)
        text += name.encode() + b"\0" if name else b""
    return bytes(text), starts


def _file(entries: Sequence[_Entry]) -> bytes:
    """The bytes of a file: the header, the contents of sections, and the section headers."""
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
