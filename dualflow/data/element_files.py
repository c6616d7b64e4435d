"""Files of elements: written sequentially, and read by index.

A file consists of:

* a line with the version of the format;
* the elements: for each leaf its number of axes, its sizes and its bytes;
* a table with the offset of each element and the CRC-32 of its bytes;
* a JSON object that describes the elements;
* the lengths of the last two, their CRC-32, and the first line again.

So damage is detected wherever it is. A file gets its name once it is complete.
"""

from __future__ import annotations

import json
import math
import os
import struct
import threading
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.atomic_files import AtomicFile
from dualflow.core.convert import Array
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError, NotFoundError
from dualflow.core.progress import progress
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spec import TensorSpec
from dualflow.core.status_errors import DataLossError
from dualflow.core.system_errors import system_errors
from dualflow.core.tree import LEAF, Keys, Structure
from dualflow.data.element import ElementLayout, Item
from dualflow.data.rows import stack_rows
from dualflow.function.errors import here

_FORMAT: Final = b"dualflow elements "
_VERSION_LINE: Final = _FORMAT + b"2\n"
_FOOTER: Final = struct.Struct("<QQI")
_INT64: Final = struct.Struct("<q")
_TABLE_ENTRY: Final = np.dtype([("offset", "<u8"), ("crc32", "<u4")])
_WINDOW: Final = 1 << 16
"""Bytes to read at once when elements are read sequentially."""
_reading: Final = threading.Lock()
"""Held while a file is read on systems without ``pread``."""


class ElementWriter:
    """Writes elements to a file, which appears under its name once it is complete.

    Args:
        path: the file's name.
        layout: of the elements.

    Raises:
        DTypeError: the elements have a dtype that can't be written.
        DualflowError: a file operation fails, here or in any method. No file is left.
    """

    def __init__(self, path: str, layout: ElementLayout) -> None:
        for spec in layout.specs:
            if not isinstance(spec, TensorSpec) or spec.dtype.dtype.kind not in "biufcV":
                raise DTypeError(
                    f"Only elements of numbers can be written to a file, not {spec!r}; map them to "
                    f"numbers.{here()}"
                )
        self._header = json.dumps(
            {"structure": _structure_to_json(layout.structure), "specs": _specs(layout)}
        )
        self._path = path
        self._places: list[tuple[int, int]] = []
        with system_errors(path):
            self._file = AtomicFile(path)
        self._write(_VERSION_LINE)

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked process, and the file belongs to its parent."""
        return self._file.is_inherited

    def write(self, item: Item) -> None:
        """Add an element."""
        begin, checksum = self._file.size, 0
        with system_errors(self._path):
            for leaf in item:
                sizes = _INT64.pack(leaf.ndim) + b"".join(map(_INT64.pack, leaf.shape))
                for part in (sizes, np.ascontiguousarray(leaf).tobytes()):
                    checksum = zlib.crc32(part, checksum)
                    self._file.write(part)
        self._places.append((begin, checksum))

    def finish(self) -> None:
        """Write the table and the header, and give the file its name."""
        table, header = np.array(self._places, _TABLE_ENTRY).tobytes(), self._header.encode()
        self._write(
            table + header + _FOOTER.pack(len(table), len(header), _checksum(table + header)) + _VERSION_LINE
        )
        with system_errors(self._path):
            self._file.commit()

    def drop(self) -> None:
        """Remove an incomplete file."""
        self._file.discard()

    def _write(self, content: bytes) -> None:
        with system_errors(self._path):
            self._file.write(content)


def write_elements(path: str, layout: ElementLayout, next_items: Callable[[int], Sequence[Item]]) -> None:
    """Write all elements that ``next_items(count)`` returns to a file."""
    writer = ElementWriter(path, layout)
    try:
        with progress(f"write {os.path.basename(path)}") as written:
            while len(items := next_items(1)):
                writer.write(items[0])
                written.step()
            writer.finish()
    finally:
        writer.drop()


class FileRows:
    """The elements of a file, by index.

    Args:
        path: its name.

    Raises:
        NotFoundError: the file does not exist.
        DataLossError: it is not a file of elements, or damaged; also when an element is read.
        InvalidArgumentError: the file has another version of the format.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._window = (0, b"")
        self._next = 0
        try:
            with system_errors(path):
                self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # read as long as this lives
                self._size = os.fstat(self._file.fileno()).st_size
                self._read_end()
        except NotFoundError:
            raise NotFoundError(f"There is no file {path!r} of elements.{here()}") from None

    def __len__(self) -> int:
        return len(self._checksums)

    def has_elements_of(self, layout: ElementLayout) -> bool:
        """Whether the elements' dtypes and shapes are those of ``layout``, whose structure may be another."""
        stored = self.layout.specs
        return len(layout.specs) == len(stored) and all(
            isinstance(spec, TensorSpec) and spec.is_compatible_with(own)
            for spec, own in zip(layout.specs, stored, strict=True)
        )

    def row(self, index: int) -> Item:
        begin, end = self._offsets[index], self._offsets[index + 1]
        first, window = self._window
        if not first <= begin <= end <= first + len(window):
            with system_errors(self._path):
                window = self._read(
                    begin, end - begin if index != self._next else self._read_size(begin, end)
                )
            first, self._window = begin, (begin, window)
        self._next = index + 1
        content = window[begin - first : end - first]
        if zlib.crc32(content) != self._checksums[index]:
            raise self._damaged(f"element {index}, at byte {begin}, has a wrong checksum")
        try:
            return self._leaves(content)
        except (struct.error, ValueError, OverflowError) as error:
            raise self._damaged(f"element {index}, at byte {begin}, can't be read: {error}") from None

    def gather(self, indices: Sequence[int]) -> list[Array]:
        return stack_rows([self.row(i) for i in indices])

    def _read_size(self, begin: int, end: int) -> int:
        """The number of bytes to read at an element in sequential reading: several small elements at once."""
        size = end - begin
        return size if size > _WINDOW // 8 else min(_WINDOW, self._offsets[-1] - begin)

    def _leaves(self, content: bytes) -> Item:
        at, leaves = 0, []
        for spec in self.layout.specs:
            (rank,) = _INT64.unpack_from(content, at)
            sizes = struct.unpack_from(f"<{rank}q", content, at + _INT64.size)
            begin, dtype = at + (rank + 1) * _INT64.size, spec.dtype.dtype
            at = begin + math.prod(sizes) * dtype.itemsize
            leaves.append(np.frombuffer(content[begin:at], dtype).reshape(sizes))  # a copy, and aligned
        return tuple(leaves)

    def _read_end(self) -> None:
        smallest = 2 * len(_VERSION_LINE) + _FOOTER.size
        first = self._read(0, min(self._size, len(_VERSION_LINE)))
        if self._size < smallest or not first.startswith(_FORMAT):
            raise self._damaged("it is cut off, or not a file of elements")
        tail = self._size - len(_VERSION_LINE) - _FOOTER.size
        end = self._read(tail, self._size - tail)
        if end[_FOOTER.size :] != first:
            raise self._damaged("it is cut off, or its first and last lines differ")
        if first != _VERSION_LINE:
            self._check_version(first)
        table_size, header_size, checksum = _FOOTER.unpack_from(end)
        begin = tail - header_size - table_size
        if begin < len(_VERSION_LINE):
            raise self._damaged(f"the lengths at byte {tail} are impossible")
        content = self._read(begin, tail - begin)
        if _checksum(content) != checksum:
            raise self._damaged(f"the table at byte {begin} has a wrong checksum")
        try:
            places = np.frombuffer(content[:table_size], _TABLE_ENTRY)
            self.layout = _layout(json.loads(content[table_size:]))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            raise self._damaged(f"the table at byte {begin} can't be read: {error}") from None
        offsets = np.append(places["offset"].astype(np.int64), begin)
        if (np.diff(offsets) < 0).any() or offsets[0] < len(_VERSION_LINE):
            raise self._damaged(f"the table at byte {begin} has offsets outside of the file")
        self._offsets: list[int] = offsets.tolist()
        self._checksums: list[int] = places["crc32"].tolist()

    def _read(self, begin: int, size: int) -> bytes:
        """Bytes of the file; its position, which threads and forked processes share, isn't moved."""
        parts = []
        while size:
            part = _read_at(self._file, begin, size)
            if not part:
                raise self._damaged(f"it ends at byte {begin}: it was truncated after it was opened")
            parts.append(part)
            begin, size = begin + len(part), size - len(part)
        return b"".join(parts) if len(parts) != 1 else parts[0]

    def _check_version(self, word: bytes) -> None:
        version = word[len(_FORMAT) :].strip().decode("ascii", "replace")
        raise InvalidArgumentError(
            f"{self._path!r} has version {version} of the element format, and this version of dualflow reads "
            "version 2, which has checksums. If it is a cache, remove it, and it is written again; otherwise "
            f"load it with the dualflow that wrote it, and save it with this one.{here()}"
        )

    def _damaged(self, what: str) -> DataLossError:
        return DataLossError(f"{self._path!r} is damaged: {what}. Remove it, and write it again.{here()}")


def _read_at(file: Any, begin: int, size: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file.fileno(), size, begin)
    with _reading:
        file.seek(begin)
        content: bytes = file.read(size)
    return content


def _checksum(content: bytes) -> int:
    return zlib.crc32(content, len(content) & 0xFFFFFFFF)


def _structure_to_json(structure: Structure) -> Any:
    """A structure as JSON: tuples as lists, dicts with their keys, leaves as null."""
    children = [_structure_to_json(child) for child in structure.children]
    if structure.kind is None:
        return None
    if structure.kind is dict and all(isinstance(k, str) for k in structure.keys):
        return {"keys": list(structure.keys), "order": list(structure.orders[0]), "parts": children}
    return children


def _structure_from_json(described: Any) -> Structure:
    if described is None:
        return LEAF
    if isinstance(described, list):
        return Structure(tuple, (), tuple(map(_structure_from_json, described)))
    keys = Keys(described["keys"])
    keys.order = tuple(described["order"])
    return Structure(dict, keys, tuple(map(_structure_from_json, described["parts"])))


def _specs(layout: ElementLayout) -> list[Any]:
    return [[None if s.shape is UNKNOWN_RANK else list(s.shape), s.dtype.name] for s in layout.specs]


def _layout(header: dict[str, Any]) -> ElementLayout:
    specs = tuple([TensorSpec(shape, as_dtype(name)) for shape, name in header["specs"]])
    return ElementLayout(_structure_from_json(header["structure"]), specs)
