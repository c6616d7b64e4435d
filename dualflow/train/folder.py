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

A write creates a new file of arrays and then replaces the index atomically: a folder holds the checkpoint
that its index describes, or none. The older file of arrays is removed last, with the files of killed
writers, unless another process is writing there.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError, NotFoundError
from dualflow.core.status_errors import DataLossError
from dualflow.core.system_errors import system_errors
from dualflow.train.array_file import ArrayEntry, entries_of, open_arrays, read_array, write_arrays
from dualflow.train.durable import file_errors, make_folder, replace_text, writing_in
from dualflow.train.encoding import Array

INDEX: Final = "objects.json"
_FORMAT: Final = "dualflow checkpoint"
_VERSION: Final = 1
_ARRAYS: Final = re.compile(r"arrays-[0-9a-f]{8}\.safetensors")
_LEFTOVER: Final = re.compile(rf"\.{re.escape(INDEX)}\..*|\.tmp\w+")
"""Incomplete files of killed writers: of an index, or of arrays, with a name by safetensors."""


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
        if self._arrays is None:
            raise damaged(self.path, "it was closed before its arrays were read")
        return read_array(self._arrays, name, self.entries[name], partial(damaged, self.path))


def write_folder(path: Path, arrays: Mapping[str, Array], nodes: Any) -> None:
    """Write a checkpoint; an existing one is replaced, and unchanged after an error.

    Raises:
        ResourceExhaustedError: the disk is full.
        PermissionDeniedError: the user may not write there.
        FailedPreconditionError: another system error.
    """
    with file_errors(f"Saving the checkpoint {path}"):
        make_folder(path)
        older = _current_array_file(path)
        name = f"arrays-{secrets.token_hex(4)}.safetensors"
        with writing_in(path) as is_alone:
            try:
                entries = write_arrays(path / name, arrays)
                replace_text(path / INDEX, _index({"file": name, "arrays": entries, "nodes": nodes}))
            except BaseException:
                _remove_unless_current(path, name)
                raise
            for unneeded in _own_files(path) if is_alone() else [older or ""]:
                if unneeded not in ("", _current_array_file(path)):
                    with suppress(OSError):
                        os.unlink(path / unneeded)


def open_folder(path: Path) -> Folder:
    """Open the checkpoint at ``path``.

    Raises:
        NotFoundError: there is no checkpoint.
        DataLossError: its index is damaged, or its arrays are missing.
        InvalidArgumentError: it has a later version of the format.
    """
    attempted = None
    while True:
        content = _verified_content(path)
        try:
            arrays = open_arrays(path / content["file"])
            size = os.path.getsize(path / content["file"])
            entries = entries_of(content["arrays"], size, lambda what: damaged(path, f"{INDEX} {what}"))
        except FileNotFoundError as error:
            if attempted == content["file"]:
                raise damaged(path, f"the file {attempted} is missing") from error
            attempted = content["file"]  # retry: a writer may have replaced both files
            continue
        except OSError as error:
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


def _index(content: Any) -> str:
    text = canonical_json(content)
    head = {"format": _FORMAT, "version": _VERSION, "checksum": zlib.crc32(text.encode())}
    return json.dumps(head)[:-1] + f', "content": {text}}}\n'


def canonical_json(content: Any) -> str:
    """JSON of which a checksum is computed: with sorted keys and without spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def _verified_content(path: Path) -> dict[str, Any]:
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
    if version != _VERSION or zlib.crc32(canonical_json(content).encode()) != index.get("checksum"):
        raise damaged(path, f"{INDEX} has a wrong checksum")
    if not isinstance(content, dict) or not {"file", "arrays", "nodes"} <= content.keys():
        raise damaged(path, f"{INDEX} lacks one of its parts")
    if not _ARRAYS.fullmatch(str(content["file"])):
        raise damaged(path, f"{INDEX} names the file of arrays {content['file']!r}")
    return content


def _nothing_at(path: Path) -> str:
    if path.with_name(f"{path.name}.index").is_file():
        return (
            f"{path} is a checkpoint of TensorFlow, which dualflow does not read: load its arrays with "
            "TensorFlow, and assign them."
        )
    text = f"There is no checkpoint at {path}."
    if (path / "checkpoint").is_file():
        return f"{text} It is a folder of checkpoints: take the path from df.train.latest_checkpoint."
    siblings = sorted(_sibling_checkpoints(path))
    if siblings:
        return f"{text} In its folder there is {', '.join(siblings[:3])}."
    return f"{text} save() returns the path, and df.train.latest_checkpoint(folder) finds the last one."


def _sibling_checkpoints(path: Path) -> Iterable[str]:
    try:
        return [p.name for p in path.parent.glob(f"{path.name}-*") if is_checkpoint(p)]
    except (OSError, ValueError):
        return []


def _current_array_file(path: Path) -> str | None:
    """The file of arrays that the index at ``path`` names; None without a valid index."""
    try:
        name = json.loads((path / INDEX).read_text(encoding="utf-8"))["content"]["file"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and _ARRAYS.fullmatch(name) else None


def _remove_unless_current(path: Path, name: str) -> None:
    """Remove the file of a failed write, unless the index names it, as may be after Ctrl-C."""
    with suppress(OSError):
        if _current_array_file(path) != name:
            os.unlink(path / name)
    with suppress(OSError):
        os.rmdir(path)  # fails if the folder has other files


def _own_files(path: Path) -> list[str]:
    try:
        return [name for name in os.listdir(path) if _ARRAYS.fullmatch(name) or _LEFTOVER.fullmatch(name)]
    except OSError:
        return []
