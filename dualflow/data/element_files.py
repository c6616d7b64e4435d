"""Elements in a file: written as they come, and then found by their number.

A file begins with a word, and ends with a table of where its elements begin, a JSON object that says what
they are, the lengths of both, and the word again. It gets its name once it is complete.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import secrets
import struct
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError, NotFoundError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spec import TensorSpec
from dualflow.core.status_errors import DataLossError
from dualflow.core.tree import LEAF, Keys, Structure
from dualflow.data.element import ElementLayout, Item
from dualflow.function.errors import here

_WORD: Final = b"dualflow elements 1\n"
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_END: Final = struct.Struct("<QQ")
_SIZE: Final = struct.Struct("<q")


class ElementWriter:
    """Writes elements to a file, which is there only once it is complete.

    Args:
        path: the file's name.
        layout: of the elements.

    Raises:
        DTypeError: they are of a kind that can't be written.
    """

    def __init__(self, path: str, layout: ElementLayout) -> None:
        for spec in layout.specs:
            if not isinstance(spec, TensorSpec) or spec.dtype.dtype.kind not in "biufcV":
                raise DTypeError(
                    f"Elements in files are of numbers, not {spec!r}; map them to numbers.{here()}"
                )
        self._about = json.dumps({"structure": _described(layout.structure), "specs": _specs(layout)})
        self._path = path
        self._name = f"{path}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
        self._file: BinaryIO = os.fdopen(os.open(self._name, _NEW, 0o666), "wb")
        self._file.write(_WORD)
        self._offsets: list[int] = []

    def write(self, item: Item) -> None:
        """Add an element."""
        self._offsets.append(self._file.tell())
        for leaf in item:
            self._file.write(_SIZE.pack(leaf.ndim) + b"".join(map(_SIZE.pack, leaf.shape)))
            self._file.write(np.ascontiguousarray(leaf).tobytes())

    def finish(self) -> None:
        """Write the end, and give the file its name."""
        table, about = np.array(self._offsets, "<i8").tobytes(), self._about.encode()
        self._file.write(table + about + _END.pack(len(table), len(about)) + _WORD)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._name, self._path)

    def drop(self) -> None:
        """Remove what was written, if it isn't complete."""
        if not self._file.closed:
            self._file.close()
            os.unlink(self._name)


def write_elements(path: str, layout: ElementLayout, pull: Callable[[int], Sequence[Item]]) -> None:
    """Write all elements that ``pull`` gives to a file."""
    writer = ElementWriter(path, layout)
    try:
        while len(items := pull(1)):
            writer.write(items[0])
        writer.finish()
    finally:
        writer.drop()


class FileRows:
    """The elements of a file.

    Args:
        path: its name.

    Raises:
        NotFoundError: it is not there.
        DataLossError: it is no file of elements, or not whole.
    """

    def __init__(self, path: str) -> None:
        try:
            with open(path, "rb") as file:
                self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._read_end()
        except FileNotFoundError:
            raise NotFoundError(f"There is no file {path!r} of elements.{here()}") from None
        except (struct.error, ValueError, KeyError, OSError, TypeError):
            raise DataLossError(
                f"{path!r} is damaged, or no file of elements; remove it and write it again.{here()}"
            ) from None

    def __len__(self) -> int:
        return len(self._offsets)

    def row(self, index: int) -> Item:
        at, leaves = self._offsets[index], []
        for spec in self.layout.specs:
            (rank,) = _SIZE.unpack_from(self._content, at)
            sizes = struct.unpack_from(f"<{rank}q", self._content, at + _SIZE.size)
            begin, dtype = at + (rank + 1) * _SIZE.size, spec.dtype.dtype
            at = begin + math.prod(sizes) * dtype.itemsize
            leaves.append(np.frombuffer(self._content[begin:at], dtype).reshape(sizes))  # a copy, and aligned
        return tuple(leaves)

    def gather(self, indices: Sequence[int]) -> list[Array]:
        return [np.stack(column) for column in zip(*map(self.row, indices), strict=True)]

    def _read_end(self) -> None:
        content = self._content
        tail = len(content) - len(_WORD) - _END.size
        if content[: len(_WORD)] != _WORD or content[-len(_WORD) :] != _WORD:
            raise ValueError
        table, about = _END.unpack_from(content, tail)
        begin = tail - about - table
        self._offsets: list[int] = np.frombuffer(content[begin : begin + table], "<i8").tolist()
        self.layout = _layout(json.loads(content[begin + table : tail]))


def _described(structure: Structure) -> Any:
    """A structure as JSON: tuples and lists as such, dicts with their keys."""
    children = [_described(c) for c in structure.children]
    if structure.kind is None:
        return None
    if structure.kind is dict and all(isinstance(k, str) for k in structure.keys):
        return {"keys": list(structure.keys), "order": list(structure.orders[0]), "parts": children}
    return children


def _structure(described: Any) -> Structure:
    if described is None:
        return LEAF
    if isinstance(described, list):
        return Structure(tuple, (), tuple(map(_structure, described)))
    keys = Keys(described["keys"])
    keys.order = tuple(described["order"])
    return Structure(dict, keys, tuple(map(_structure, described["parts"])))


def _specs(layout: ElementLayout) -> list[Any]:
    return [[None if s.shape is UNKNOWN_RANK else list(s.shape), s.dtype.name] for s in layout.specs]


def _layout(about: dict[str, Any]) -> ElementLayout:
    specs = tuple([TensorSpec(shape, as_dtype(name)) for shape, name in about["specs"]])
    return ElementLayout(_structure(about["structure"]), specs)
