"""Merges x86-64 ELF objects, so that the kernels of a graph are one file that is read and linked at once.

Sections of one kind are concatenated, a function that one object defines and others call becomes one symbol,
and local symbols lose their names. The result is a relocatable object (as of ``ld -r``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dualflow.backends.llvm.runtime.object_file import (
    ALLOCATE,
    EXECUTE,
    LOCAL,
    RELOCATION,
    UNDEFINED,
    WRITE,
    ObjectFile,
    Table,
    UnsupportedObject,
    read,
)
from dualflow.backends.llvm.runtime.object_writer import OutputSection, OutputSymbol, object_bytes
from dualflow.core.records import NamedTuple

_MERGED_FLAGS = WRITE | ALLOCATE | EXECUTE

_Kind = tuple[int, bool]
"""The key by which sections are concatenated: flags, and whether they are zeros."""


class _SectionOffsets(NamedTuple):
    """The kind of each section of a file, and its offset in the output section of that kind."""

    kinds: dict[int, _Kind]
    starts: dict[int, int]


def merge(codes: Sequence[bytes]) -> bytes:
    """One object with all definitions of ``codes``.

    Raises UnsupportedObject for invalid objects, and if two define the same function.
    """
    files = [read(code) for code in codes]
    joined: dict[_Kind, OutputSection] = {}
    section_offsets = [_add_sections(file, joined) for file in files]
    numbers = {kind: number for number, kind in enumerate(joined, start=1)}
    local_symbols: list[OutputSymbol] = []
    global_symbols: dict[str, OutputSymbol] = {}
    file_targets = [
        _add_symbols(file, offsets, numbers, local_symbols, global_symbols)
        for file, offsets in zip(files, section_offsets, strict=True)
    ]
    global_indices = {name: len(local_symbols) + 1 + i for i, name in enumerate(global_symbols)}
    for file, offsets, targets in zip(files, section_offsets, file_targets, strict=True):
        symbols = np.zeros(len(file.symbols), np.uint32)
        for i, name in targets.items():
            symbols[i] = global_indices[name] if isinstance(name, str) else name
        _add_relocations(file, offsets, symbols, joined)
    return object_bytes(list(joined.values()), [*local_symbols, *global_symbols.values()], len(local_symbols))


def _add_sections(file: ObjectFile, joined: dict[_Kind, OutputSection]) -> _SectionOffsets:
    """Append the sections of a file to the output sections."""
    offsets = _SectionOffsets({}, {})
    for index, section in file.sections.items():
        kind = section.flags & _MERGED_FLAGS, section.content is None
        target = joined.setdefault(kind, OutputSection(kind[0], zeros=kind[1]))
        offsets.kinds[index], offsets.starts[index] = kind, target.add(section)
    return offsets


def _add_symbols(
    file: ObjectFile,
    offsets: _SectionOffsets,
    numbers: dict[_Kind, int],
    local_symbols: list[OutputSymbol],
    global_symbols: dict[str, OutputSymbol],
) -> dict[int, int | str]:
    """Add the symbols of a file; returns the index of each local one, and the name of each global one."""
    targets: dict[int, int | str] = {}
    for i in _needed(file):
        row = file.symbols[i]
        section, info = int(row["section"]), int(row["info"])
        if section == UNDEFINED:
            targets[i] = file.names[i]
            global_symbols.setdefault(file.names[i], OutputSymbol(file.names[i], info))
            continue
        start = int(row["value"]) + offsets.starts[section]
        symbol = OutputSymbol("", info, numbers[offsets.kinds[section]], start, int(row["size"]))
        if info >> 4 == LOCAL:
            local_symbols.append(symbol)
            targets[i] = len(local_symbols)
            continue
        targets[i] = name = file.names[i]
        if name in global_symbols and global_symbols[name].section != UNDEFINED:
            raise UnsupportedObject(f"{name} is defined twice")
        global_symbols[name] = symbol._replace(name=name)
    return targets


def _needed(file: ObjectFile) -> Iterable[int]:
    """The indices of the symbols to keep: global ones, and those that relocations refer to."""
    symbols = file.symbols
    loaded = np.isin(symbols["section"], list(file.sections))
    needed = loaded & (symbols["info"] >> 4 != LOCAL)
    needed[file.relocations["symbol"]] = True
    indices: list[int] = np.flatnonzero(needed).tolist()
    return indices


def _add_relocations(
    file: ObjectFile, offsets: _SectionOffsets, symbols: Table, joined: dict[_Kind, OutputSection]
) -> None:
    for index, start in offsets.starts.items():
        rows: Table = file.relocations[file.relocation_sections == index].astype(RELOCATION)
        rows["offset"] += np.uint64(start)
        rows["symbol"] = symbols[rows["symbol"]]
        joined[offsets.kinds[index]].relocations.append(rows)
