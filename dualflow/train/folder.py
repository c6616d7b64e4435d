"""A checkpoint on disk: a folder with an index, and the file of arrays that the index names.

::

    ckpt-3/
        objects.json                 the index: the object graph, and each array's dtype, shape and CRC-32
        arrays-5f1d2c3b.safetensors  the arrays; see ``encoding.py`` for dtypes that the format lacks

The index is::

    {"format": "dualflow checkpoint", "version": 1, "checksum": CRC-32 of the content's JSON, "content": {
        "file": "arrays-5f1d2c3b.safetensors",
        "arrays": {NAME: {"dtype": "float32", "shape": [2, 3], "crc32": 123}},
        "nodes": ...}}      what ``saved_graph.py`` makes of it

A write makes a new file of arrays and then replaces the index, in one step: a folder holds the checkpoint
that its index describes, or none. The older file of arrays is removed last, with what savers have left that
were killed, unless somebody else is writing there.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dualflow.core.atomic_files import sync_folder
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError, NotFoundError
from dualflow.core.status_errors import DataLossError
from dualflow.core.system_errors import system_errors
from dualflow.train.durable import explaining, make_folder, replace_text, sync_file, writing_in
from dualflow.train.encoding import Array, bytes_of, decoded, encoded

INDEX: Final = "objects.json"
_FORMAT: Final = "dualflow checkpoint"
_VERSION: Final = 1
_ARRAYS: Final = re.compile(r"arrays-[0-9a-f]{8}\.safetensors")
_LEFT: Final = re.compile(rf"\.{re.escape(INDEX)}\..*|\.tmp\w+")
"""What a killed writer leaves: half an index, or half a file of arrays, which safetensors names."""


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """What the index says of one array."""

    dtype: DType
    shape: tuple[int, ...]
    crc32: int


class Folder:
    """A checkpoint that is open for reading: its file of arrays stays readable if it is removed meanwhile.

    Attributes:
        path: of the folder.
        entries: what the index says of each array, by name.
        nodes: the object graph, as JSON.
    """

    def __init__(self, path: Path, entries: dict[str, ArrayEntry], nodes: Any, arrays: Any) -> None:
        self.path = path
        self.entries = entries
        self.nodes = nodes
        self._arrays = arrays

    def close(self) -> None:
        """Let the file of arrays go."""
        self._arrays = None

    def read(self, name: str) -> Array:
        """An array with memory of its own, held against its checksum.

        Raises:
            DataLossError: it is damaged.
        """
        entry = self.entries[name]
        try:
            array = decoded(self._arrays.get_tensor, name, entry.dtype.dtype)
        except (SafetensorError, OSError, AttributeError) as error:
            raise damaged(self.path, f"the array {name} can't be read: {error}") from error
        if array.dtype != entry.dtype.dtype or array.shape != entry.shape:
            raise damaged(
                self.path,
                f"the array {name} has dtype {array.dtype} and shape {array.shape}, unlike the index",
            )
        if _crc(encoded(name, array)) != entry.crc32:
            raise damaged(self.path, f"the array {name} is not what was written")
        return array.copy()


def write_folder(path: Path, arrays: Mapping[str, Array], nodes: Any) -> None:
    """Write a checkpoint; one that is there is replaced, and stays as it is if anything fails.

    Raises:
        ResourceExhaustedError: the disk is full.
        PermissionDeniedError: this user may not write there.
        FailedPreconditionError: the system refuses for another reason.
    """
    with explaining(f"Saving the checkpoint {path}"):
        make_folder(path)
        older = _file_of(path)
        name = f"arrays-{secrets.token_hex(4)}.safetensors"
        with writing_in(path) as is_alone:
            try:
                entries = _write_arrays(path / name, arrays)
                replace_text(path / INDEX, _index({"file": name, "arrays": entries, "nodes": nodes}))
            except BaseException:
                _remove_unless_current(path, name)
                raise
            for rest in _own_files(path) if is_alone() else [older or ""]:
                if rest not in ("", _file_of(path)):
                    with suppress(OSError):
                        os.unlink(path / rest)


def open_folder(path: Path) -> Folder:
    """The checkpoint at ``path``.

    Raises:
        NotFoundError: there is none.
        DataLossError: its index is damaged, or its arrays are missing.
        InvalidArgumentError: a later version has written it.
    """
    tried = None
    while True:
        content = _content(path)
        try:
            arrays = safe_open(path / content["file"], framework="np")
            entries = _entries(path, content["arrays"], os.path.getsize(path / content["file"]))
        except FileNotFoundError as error:
            if tried == content["file"]:
                raise damaged(path, f"the file {tried} is missing") from error
            tried = content["file"]  # a writer may have replaced both
            continue
        except (SafetensorError, OSError) as error:
            raise damaged(path, f"the file {content['file']} can't be read: {error}") from error
        return Folder(path, entries, content["nodes"], arrays)


def is_checkpoint(path: Path) -> bool:
    """Whether a checkpoint lies at ``path``."""
    return (path / INDEX).is_file()


def remove_folder(path: Path) -> None:
    """Remove a checkpoint: first its index, so that no half of it is left, and nothing but its own files."""
    for name in [INDEX, *_own_files(path)]:
        with suppress(OSError):
            os.unlink(path / name)
    with suppress(OSError):
        os.rmdir(path)


def damaged(path: Path, what: str) -> DataLossError:
    """The error for a checkpoint that is not what was written."""
    return DataLossError(
        f"The checkpoint {path} is damaged: {what}. Restore another one; nothing has changed."
    )


def _write_arrays(path: Path, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Write the file of arrays; what the index says of them."""
    parts = {name: encoded(name, array) for name, array in arrays.items()}
    try:
        save_file({key: part for found in parts.values() for key, part in found.items()}, path)
    except SafetensorError as error:
        raise _as_system_error(error, path) from error
    sync_file(path)
    sync_folder(os.fspath(path.parent))
    return {
        name: {"dtype": as_dtype(array.dtype).name, "shape": list(array.shape), "crc32": _crc(parts[name])}
        for name, array in arrays.items()
    }


def _as_system_error(error: SafetensorError, path: Path) -> OSError:
    """The system's error that safetensors has put into words: "... (os error 28)"."""
    found = re.search(r"\(os error (\d+)\)", str(error))
    return OSError(int(found[1]), os.strerror(int(found[1])), str(path)) if found else OSError(str(error))


def _crc(parts: Mapping[str, Array]) -> int:
    value = 0
    for part in bytes_of(parts):
        value = zlib.crc32(part, value)
    return value


def _index(content: Any) -> str:
    text = _canonical(content)
    head = {"format": _FORMAT, "version": _VERSION, "checksum": zlib.crc32(text.encode())}
    return json.dumps(head)[:-1] + f', "content": {text}}}\n'


def _canonical(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def _content(path: Path) -> dict[str, Any]:
    """The content of an index, which is what was written."""
    try:
        text = (path / INDEX).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(_nothing_at(path)) from None
    except UnicodeDecodeError:
        raise damaged(path, f"{INDEX} is no text") from None
    except ValueError as error:
        with system_errors(path):
            raise error
    except OSError as error:
        raise damaged(path, f"{INDEX} can't be read: {error}") from error
    try:
        index = json.loads(text)
    except (ValueError, RecursionError):
        raise damaged(path, f"{INDEX} is no JSON") from None
    if not isinstance(index, dict) or index.get("format") != _FORMAT:
        raise damaged(path, f"{INDEX} does not describe a checkpoint")
    version = index.get("version")
    if isinstance(version, int) and version > _VERSION:
        raise InvalidArgumentError(
            f"The checkpoint {path} has format version {version}, and this dualflow reads up to {_VERSION}: "
            "restore it with the version that saved it, or a later one."
        )
    content = index.get("content")
    if version != _VERSION or zlib.crc32(_canonical(content).encode()) != index.get("checksum"):
        raise damaged(path, f"{INDEX} is not what was written")
    if not isinstance(content, dict) or not {"file", "arrays", "nodes"} <= content.keys():
        raise damaged(path, f"{INDEX} lacks a part")
    if not _ARRAYS.fullmatch(str(content["file"])):
        raise damaged(path, f"{INDEX} names the file of arrays {content['file']!r}")
    return content


def _entries(path: Path, arrays: Mapping[str, Any], size: int) -> dict[str, ArrayEntry]:
    """What an index says of its arrays, each of which fits into a file of ``size`` bytes."""
    try:
        entries = {
            name: ArrayEntry(as_dtype(e["dtype"]), tuple(map(int, e["shape"])), int(e["crc32"]))
            for name, e in arrays.items()
        }
        for name, entry in entries.items():
            if min(entry.shape, default=0) < 0 or math.prod(entry.shape) * entry.dtype.size > size:
                raise ValueError(f"{name} has shape {entry.shape}")
        return entries
    except (DTypeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path, f"{INDEX} describes an array wrongly: {error}") from error


def _nothing_at(path: Path) -> str:
    if path.with_name(f"{path.name}.index").is_file():
        return (
            f"{path} is a checkpoint of TensorFlow, which dualflow does not read: load its arrays with "
            "TensorFlow, and assign them."
        )
    text = f"There is no checkpoint at {path}."
    if (path / "checkpoint").is_file():
        return f"{text} It is a folder of checkpoints: take the path from df.train.latest_checkpoint."
    beside = sorted(_numbered(path))
    if beside:
        return f"{text} Beside it is {', '.join(beside[:3])}."
    return f"{text} save() returns the path, and df.train.latest_checkpoint(folder) finds the last one."


def _numbered(path: Path) -> Iterable[str]:
    try:
        return [p.name for p in path.parent.glob(f"{path.name}-*") if is_checkpoint(p)]
    except (OSError, ValueError):
        return []


def _file_of(path: Path) -> str | None:
    """The file of arrays that the index at ``path`` names, if there is one."""
    try:
        name = json.loads((path / INDEX).read_text(encoding="utf-8"))["content"]["file"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and _ARRAYS.fullmatch(name) else None


def _remove_unless_current(path: Path, name: str) -> None:
    """Remove what a failed write has left, if the index does not name it, which Ctrl-C may leave open."""
    with suppress(OSError):
        if _file_of(path) != name:
            os.unlink(path / name)
    with suppress(OSError):
        os.rmdir(path)  # which fails where there is anything else


def _own_files(path: Path) -> list[str]:
    try:
        return [name for name in os.listdir(path) if _ARRAYS.fullmatch(name) or _LEFT.fullmatch(name)]
    except OSError:
        return []
