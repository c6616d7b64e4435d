"""A checkpoint on disk: a folder with an index, and the file of arrays that the index names.

::

    ckpt-3/
        objects.json                 the index: the object graph, and each array's dtype, shape and CRC-32
        arrays-5f1d2c3b.safetensors  the arrays; see ``encoding.py`` for dtypes that the format lacks

The index is::

    {"format": "dualflow checkpoint", "version": 1, "checksum": CRC-32 of the content's JSON, "content": {
        "file": "arrays-5f1d2c3b.safetensors",
        "arrays": {NAME: {"dtype": "float32", "shape": [2, 3], "crc32": 123}},
        "nodes": ...}}      the object graph; see ``saved_graph.py``

        A write creates a new file of arrays and then replaces the index atomically: a folder holds the
            checkpoint
        that its index describes, or none. The older file of arrays is removed last, with the files of killed
        writers, unless another process is writing there.
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
"""Incomplete files of killed writers: of an index, or of arrays, with a name by safetensors."""


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """The index's entry for an array."""

    dtype: DType
    shape: tuple[int, ...]
    crc32: int


class Folder:
    """A checkpoint open for reading. Its file of arrays stays readable after it is removed.

    Attributes:
        path: the folder's path.
        entries: the index's entry for each array, by name.
        nodes: the object graph, as JSON.
    """

    def __init__(self, path: Path, entries: dict[str, ArrayEntry], nodes: Any, arrays: Any) -> None:
        self.path = path
        self.entries = entries
        self.nodes = nodes
        self._arrays = arrays

    def close(self) -> None:
        """Close the file of arrays."""
        self._arrays = None

    def read(self, name: str) -> Array:
        """A copy of an array, verified by its checksum.

        Raises:
            DataLossError: the array is damaged.
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
            raise damaged(self.path, f"the array {name} has a wrong checksum")
        return array.copy()


def write_folder(path: Path, arrays: Mapping[str, Array], nodes: Any) -> None:
    """Write a checkpoint; an existing one is replaced, and unchanged after an error.

    Raises:
        ResourceExhaustedError: the disk is full.
        PermissionDeniedError: the user may not write there.
        FailedPreconditionError: another system error.
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
            for unneeded in _own_files(path) if is_alone() else [older or ""]:
                if unneeded not in ("", _file_of(path)):
                    with suppress(OSError):
                        os.unlink(path / unneeded)


def open_folder(path: Path) -> Folder:
    """Open the checkpoint at ``path``.

    Raises:
        NotFoundError: there is no checkpoint.
        DataLossError: its index is damaged, or its arrays are missing.
        InvalidArgumentError: it has a later version of the format.
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
            tried = content["file"]  # retry: a writer may have replaced both files
            continue
        except (SafetensorError, OSError) as error:
            raise damaged(path, f"the file {content['file']} can't be read: {error}") from error
        return Folder(path, entries, content["nodes"], arrays)


def is_checkpoint(path: Path) -> bool:
    """Whether there is a checkpoint at ``path``."""
    return (path / INDEX).is_file()


def remove_folder(path: Path) -> None:
    """Remove a checkpoint's own files; the index first, so that no incomplete checkpoint is left."""
    for name in [INDEX, *_own_files(path)]:
        with suppress(OSError):
            os.unlink(path / name)
    with suppress(OSError):
        os.rmdir(path)


def damaged(path: Path, what: str) -> DataLossError:
    """The error for a damaged checkpoint."""
    return DataLossError(
        f"The checkpoint {path} is damaged: {what}. Restore another one; nothing has changed."
    )


def _write_arrays(path: Path, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Write the file of arrays; returns the index's entries for them."""
    parts = {name: encoded(name, array) for name, array in arrays.items()}
    try:
        save_file({key: part for stored in parts.values() for key, part in stored.items()}, path)
    except SafetensorError as error:
        raise _as_system_error(error, path) from error
    sync_file(path)
    sync_folder(os.fspath(path.parent))
    return {
        name: {"dtype": as_dtype(array.dtype).name, "shape": list(array.shape), "crc32": _crc(parts[name])}
        for name, array in arrays.items()
    }


def _as_system_error(error: SafetensorError, path: Path) -> OSError:
    """The system error in the message of an error by safetensors: "... (os error 28)"."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1])), str(path)) if number else OSError(str(error))


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
    """The content of an index, after verification."""
    try:
        text = (path / INDEX).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(_nothing_at(path)) from None
    except UnicodeDecodeError:
        raise damaged(path, f"{INDEX} is not text") from None
    except ValueError as error:
        with system_errors(path):
            raise error
    except OSError as error:
        raise damaged(path, f"{INDEX} can't be read: {error}") from error
    try:
        index = json.loads(text)
    except (ValueError, RecursionError):
        raise damaged(path, f"{INDEX} is not JSON") from None
    if not isinstance(index, dict) or index.get("format") != _FORMAT:
        raise damaged(path, f"{INDEX} does not describe a checkpoint")
    version = index.get("version")
    if isinstance(version, int) and version > _VERSION:
        raise InvalidArgumentError(
            f"The checkpoint {path} has format version {version}, and this version of dualflow reads up to "
            f"{_VERSION}: restore it with the version that saved it, or a later one."
        )
    content = index.get("content")
    if version != _VERSION or zlib.crc32(_canonical(content).encode()) != index.get("checksum"):
        raise damaged(path, f"{INDEX} has a wrong checksum")
    if not isinstance(content, dict) or not {"file", "arrays", "nodes"} <= content.keys():
        raise damaged(path, f"{INDEX} lacks one of its parts")
    if not _ARRAYS.fullmatch(str(content["file"])):
        raise damaged(path, f"{INDEX} names the file of arrays {content['file']!r}")
    return content


def _entries(path: Path, arrays: Mapping[str, Any], size: int) -> dict[str, ArrayEntry]:
    """The index's entries for arrays, checked to fit into a file of ``size`` bytes."""
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
    siblings = sorted(_numbered(path))
    if siblings:
        return f"{text} In its folder there is {', '.join(siblings[:3])}."
    return f"{text} save() returns the path, and df.train.latest_checkpoint(folder) finds the last one."


def _numbered(path: Path) -> Iterable[str]:
    try:
        return [p.name for p in path.parent.glob(f"{path.name}-*") if is_checkpoint(p)]
    except (OSError, ValueError):
        return []


def _file_of(path: Path) -> str | None:
    """The file of arrays that the index at ``path`` names; None without a valid index."""
    try:
        name = json.loads((path / INDEX).read_text(encoding="utf-8"))["content"]["file"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and _ARRAYS.fullmatch(name) else None


def _remove_unless_current(path: Path, name: str) -> None:
    """Remove the file of a failed write, unless the index names it, as may be after Ctrl-C."""
    with suppress(OSError):
        if _file_of(path) != name:
            os.unlink(path / name)
    with suppress(OSError):
        os.rmdir(path)  # fails if the folder has other files


def _own_files(path: Path) -> list[str]:
    try:
        return [name for name in os.listdir(path) if _ARRAYS.fullmatch(name) or _LEFT.fullmatch(name)]
    except OSError:
        return []
