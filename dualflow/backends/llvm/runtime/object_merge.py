"""Several x86-64 ELF objects become one: the kernels of a graph are then one file, read and linked at once.

Sections of a kind are joined, a function that one object defines and others call is one symbol, and what only
an object itself can see loses its name. The result is an object like any other.
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
from dualflow.backends.llvm.runtime.object_writer import WrittenSection, WrittenSymbol, object_bytes
from dualflow.core.records import NamedTuple

_KEPT_FLAGS = WRITE | ALLOCATE | EXECUTE

_Kind = tuple[int, bool]
"""What sections are joined by: flags, and whether they are zeros."""


class _Placed(NamedTuple):
    """Where the sections of a file begin: for each its kind and an offset among what is joined."""

    kinds: dict[int, _Kind]
    starts: dict[int, int]


def merge(codes: Sequence[bytes]) -> bytes:
    """One object with all that ``codes`` define.

    Raises UnsupportedObject for objects that can't be read, or that define the same function.
    """
    files = [read(code) for code in codes]
    joined: dict[_Kind, WrittenSection] = {}
    placed = [_place(file, joined) for file in files]
    numbers = {kind: number for number, kind in enumerate(joined, start=1)}
    private: list[WrittenSymbol] = []
    public: dict[str, WrittenSymbol] = {}
    names = [
        _take_symbols(file, where, numbers, private, public)
        for file, where in zip(files, placed, strict=True)
    ]
    places = {name: len(private) + 1 + i for i, name in enumerate(public)}
    for file, where, known in zip(files, placed, names, strict=True):
        symbols = np.zeros(len(file.symbols), np.uint32)
        for i, name in known.items():
            symbols[i] = places[name] if isinstance(name, str) else name
        _take_relocations(file, where, symbols, joined)
    return object_bytes(list(joined.values()), [*private, *public.values()], len(private))


def _place(file: ObjectFile, joined: dict[_Kind, WrittenSection]) -> _Placed:
    """Put the sections of a file behind those of the files before it."""
    found = _Placed({}, {})
    for index, section in file.sections.items():
        kind = section.flags & _KEPT_FLAGS, section.content is None
        target = joined.setdefault(kind, WrittenSection(kind[0], zeros=kind[1]))
        found.kinds[index], found.starts[index] = kind, target.add(section)
    return found


def _take_symbols(
    file: ObjectFile,
    where: _Placed,
    numbers: dict[_Kind, int],
    private: list[WrittenSymbol],
    public: dict[str, WrittenSymbol],
) -> dict[int, int | str]:
    """Add the symbols of a file: for each the place that it has, or the name that others know it by."""
    known: dict[int, int | str] = {}
    for i in _needed(file):
        row = file.symbols[i]
        section, info = int(row["section"]), int(row["info"])
        if section == UNDEFINED:
            known[i] = file.names[i]
            public.setdefault(file.names[i], WrittenSymbol(file.names[i], info))
            continue
        start = int(row["value"]) + where.starts[section]
        made = WrittenSymbol("", info, numbers[where.kinds[section]], start, int(row["size"]))
        if info >> 4 == LOCAL:
            private.append(made)
            known[i] = len(private)
            continue
        known[i] = name = file.names[i]
        if name in public and public[name].section != UNDEFINED:
            raise UnsupportedObject(f"{name} is defined twice")
        public[name] = made._replace(name=name)
    return known


def _needed(file: ObjectFile) -> Iterable[int]:
    """The symbols that relocations name, or other objects may; all are loaded, or undefined."""
    symbols = file.symbols
    loaded = np.isin(symbols["section"], list(file.sections))
    wanted = loaded & (symbols["info"] >> 4 != LOCAL)
    wanted[file.relocations["symbol"]] = True
    found: list[int] = np.flatnonzero(wanted).tolist()
    return found


def _take_relocations(
    file: ObjectFile, where: _Placed, symbols: Table, joined: dict[_Kind, WrittenSection]
) -> None:
    for index, start in where.starts.items():
        rows: Table = file.relocations[file.places == index].astype(RELOCATION)
        rows["offset"] += np.uint64(start)
        rows["symbol"] = symbols[rows["symbol"]]
        joined[where.kinds[index]].relocations.append(rows)
