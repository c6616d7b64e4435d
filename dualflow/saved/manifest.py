"""A saved model on disk: a folder with a manifest, and the files that the manifest names.

::

    model/
        saved_model.json              the manifest
        graphs-5f1d2c3b.txt           the graphs of all functions, as text
        arrays-5f1d2c3b.safetensors   variables, captured tensors and long constants
        assets-5f1d2c3b/              files that the model reads

A save writes these files, flushes them, and then replaces the manifest in one step: a folder holds the model
that its manifest describes, or none. Files of an earlier save are removed last.

Reading trusts nothing: names of files are checked to be those above, links are refused, and sizes are
compared with those of the files before anything is allocated.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from dualflow.core.atomic_files import sync_folder
from dualflow.core.errors import InvalidArgumentError, NotFoundError
from dualflow.core.status_errors import DataLossError
from dualflow.core.system_errors import system_errors
from dualflow.train.array_file import ArrayEntry, entries_of, open_arrays, read_array, write_arrays
from dualflow.train.durable import make_folder, replace_text, sync_file, writing_in
from dualflow.train.encoding import Array
from dualflow.train.folder import canonical_json

MANIFEST: Final = "saved_model.json"
FORMAT: Final = "dualflow saved model"
VERSION: Final = 1
_GRAPHS: Final = re.compile(r"graphs-[0-9a-f]{8}\.txt")
_ARRAYS: Final = re.compile(r"arrays-[0-9a-f]{8}\.safetensors")
_ASSETS: Final = re.compile(r"assets-[0-9a-f]{8}")
_TEMPORARY: Final = re.compile(rf"\.{re.escape(MANIFEST)}\..*|\.tmp\w+")
_ASSET: Final = re.compile(r"[^/\\\0:]{1,200}")
_PARTS: Final = frozenset({"graphs", "arrays", "assets", "objects", "functions", "traces", "signatures"})


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A saved model open for reading, with all checksums verified but those of arrays.

    Attributes:
        path: the folder.
        content: the manifest's content.
        graphs: the text of the graphs.
        entries: the dtype, shape and checksum of each array.
        assets: the paths of the assets, by their numbers.
    """

    path: Path
    content: Mapping[str, Any]
    graphs: str
    graphs_name: str
    entries: Mapping[str, ArrayEntry]
    assets: Sequence[Path]
    arrays: Any

    def read(self, name: Any) -> Array:
        """A copy of an array.

        Raises:
            DataLossError: it is missing or damaged.
        """
        if not isinstance(name, str) or name not in self.entries:
            raise damaged(self.path, f"there is no array {str(name)[:40]!r}")
        return read_array(self.arrays, name, self.entries[name], partial(damaged, self.path))


def damaged(path: Path, what: str) -> DataLossError:
    """The error for a damaged saved model."""
    return DataLossError(f"The saved model {path} is damaged: {what}. Save it again, or load another copy.")


def is_saved_model(path: Path) -> bool:
    """Whether there is a saved model at ``path``."""
    return (path / MANIFEST).is_file()


def write_model(
    path: Path, content: Mapping[str, Any], graphs: str, arrays: Mapping[str, Array], assets: Sequence[Path]
) -> None:
    """Write a saved model; an existing one is replaced, and unchanged after an error.

    Raises:
        OSError: a file operation failed.
    """
    make_folder(path)
    tag = secrets.token_hex(4)
    names = [f"graphs-{tag}.txt", f"arrays-{tag}.safetensors", f"assets-{tag}"]
    with writing_in(path) as is_alone:
        try:
            text = graphs.encode()
            (path / names[0]).write_bytes(text)
            sync_file(path / names[0])
            entries = write_arrays(path / names[1], arrays)
            os.chmod(path / names[1], stat.S_IMODE(os.stat(path / names[0]).st_mode))
            files = {
                "graphs": {"file": names[0], "crc32": zlib.crc32(text)},
                "arrays": {"file": names[1], "entries": entries},
                "assets": {"folder": names[2], "files": _copy_file(assets, path / names[2])},
            }
            replace_text(path / MANIFEST, _manifest({**files, **content}))
        except BaseException:
            if _current_files(path) is None or names[0] not in _current_files(path):  # type: ignore[operator]  # no None left
                _remove(path, names)
            with suppress(OSError):
                os.rmdir(path)  # fails if the folder has other files
            raise
        if is_alone():
            kept = _current_files(path) or set()
            _remove(path, [name for name in os.listdir(path) if _is_model_file(name) and name not in kept])


def open_model(path: Path) -> ModelFolder:
    """Open the saved model at ``path``.

    Raises:
        NotFoundError: there is none.
        DataLossError: it is damaged.
        InvalidArgumentError: it has a later version of the format.
    """
    tried: set[Any] = set()
    while True:
        content = _content(path)
        try:
            return _open_file(path, content)
        except FileNotFoundError as error:
            names = str(error.filename)
            if names in tried:
                raise damaged(path, f"the file {os.path.basename(names)} is missing") from error
            tried.add(names)  # retry: another process may have replaced the model
        except OSError as error:
            raise damaged(path, f"a file can't be read: {error}") from error


def _open_file(path: Path, content: Mapping[str, Any]) -> ModelFolder:
    try:
        graphs, arrays, assets = content["graphs"], content["arrays"], content["assets"]
        graphs_name, arrays_name, folder = graphs["file"], arrays["file"], assets["folder"]
        names, entries, crc = assets["files"], arrays["entries"], graphs["crc32"]
    except (TypeError, LookupError):
        raise damaged(path, f"{MANIFEST} lacks the name of a file") from None
    for name, pattern in [(graphs_name, _GRAPHS), (arrays_name, _ARRAYS), (folder, _ASSETS)]:
        if not isinstance(name, str) or not pattern.fullmatch(name):
            raise damaged(path, f"{MANIFEST} names the file {str(name)[:60]!r}")
    text = _read_regular_file(path / graphs_name)
    if zlib.crc32(text) != crc:
        raise damaged(path, f"{graphs_name} has a wrong checksum")
    _require_regular_file(path / arrays_name)
    opened = open_arrays(path / arrays_name)
    size = os.path.getsize(path / arrays_name)
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        raise damaged(path, f"{graphs_name} is not text") from None
    return ModelFolder(
        path,
        content,
        decoded,
        graphs_name,
        entries_of(entries, size, lambda what: damaged(path, f"{MANIFEST} {what}")),
        _assets(path, folder, names),
        opened,
    )


def _assets(path: Path, folder: str, names: Any) -> list[Path]:
    if not isinstance(names, list):
        raise damaged(path, f"{MANIFEST} has no list of assets")
    if names and (path / folder).is_symlink():
        raise damaged(path, f"{folder} is a link")
    paths = []
    for name in names:
        if not isinstance(name, str) or not _ASSET.fullmatch(name) or name in (".", ".."):
            raise damaged(path, f"{MANIFEST} names the asset {str(name)[:60]!r}")
        _require_regular_file(path / folder / name)
        paths.append(path / folder / name)
    return paths


def _require_regular_file(path: Path) -> None:
    """Raise unless ``path`` is a regular file, and no symbolic link."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise damaged(path.parent, f"{path.name} is a link or no regular file")


def _read_regular_file(path: Path) -> bytes:
    _require_regular_file(path)
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with open(number, "rb") as file:
        return file.read()


def _copy_file(assets: Sequence[Path], folder: Path) -> list[str]:
    """Copy files into a new folder; returns their names there."""
    names: list[str] = []
    for source in assets:
        stem, suffix = os.path.splitext(re.sub(r"[/\\\0:]", "_", source.name)[-150:])
        name, count = stem + suffix, 1
        while name in names:
            name, count = f"{stem}_{count}{suffix}", count + 1
        folder.mkdir(exist_ok=True)
        shutil.copyfile(source, folder / name)
        sync_file(folder / name)
        names.append(name)
    if names:
        sync_folder(os.fspath(folder))
    return names


def _manifest(content: Mapping[str, Any]) -> str:
    text = canonical_json(content)
    head = {"format": FORMAT, "version": VERSION}
    return json.dumps({**head, "checksum": zlib.crc32(text.encode()), "content": content}, indent=1) + "\n"


def _content(path: Path) -> dict[str, Any]:
    """The content of the manifest, after verification."""
    try:
        with system_errors(path):
            text = _read_regular_file(path / MANIFEST).decode()
    except NotFoundError:
        raise NotFoundError(_nothing_at(path)) from None
    except UnicodeDecodeError:
        raise damaged(path, f"{MANIFEST} is not text") from None
    try:
        manifest = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"{MANIFEST} is not JSON ({str(error)[:80]})") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise damaged(path, f"{MANIFEST} does not describe a saved model")
    version = manifest.get("version")
    if type(version) is int and version > VERSION:
        raise InvalidArgumentError(
            f"The saved model {path} has format version {version}, and this version of dualflow reads up to "
            f"{VERSION}: load it with the version that saved it, or a later one."
        )
    content = manifest.get("content")
    try:
        checksum = zlib.crc32(canonical_json(content).encode())
    except RecursionError:
        raise damaged(path, f"{MANIFEST} is nested too deeply") from None
    if version != VERSION or checksum != manifest.get("checksum"):
        raise damaged(path, f"{MANIFEST} has a wrong checksum")
    if not isinstance(content, dict) or not content.keys() >= _PARTS:
        raise damaged(path, f"{MANIFEST} lacks one of its parts")
    return content


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice")
    return members


def _nothing_at(path: Path) -> str:
    if (path / "saved_model.pb").is_file():
        return (
            f"{path} is a SavedModel of TensorFlow, which dualflow does not read: its graphs consist of "
            "TensorFlow's ops. Load its weights with TensorFlow, and save the model with dualflow."
        )
    if (path / "objects.json").is_file():
        return f"{path} is a checkpoint: restore it with df.train.Checkpoint."
    return f"There is no saved model at {path}: it has no file {MANIFEST}."


def _current_files(path: Path) -> set[str] | None:
    """The names of the files of the model at ``path``; None without a valid manifest."""
    try:
        content = json.loads((path / MANIFEST).read_text(encoding="utf-8"))["content"]
        return {content["graphs"]["file"], content["arrays"]["file"], content["assets"]["folder"]}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _is_model_file(name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in (_GRAPHS, _ARRAYS, _ASSETS, _TEMPORARY))


def _remove(path: Path, names: Sequence[str]) -> None:
    for name in names:
        with suppress(OSError):
            if _ASSETS.fullmatch(name):
                shutil.rmtree(path / name)
            else:
                os.unlink(path / name)
