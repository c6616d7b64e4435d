"""Files of arrays in the safetensors format, and the entries that describe them in an index of JSON.

An entry is ``{"dtype": "float32", "shape": [2, 3], "crc32": 123}``. ``encoding.py`` has the dtypes that the
format lacks.
"""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dualflow.core.atomic_files import sync_folder
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import DTypeError
from dualflow.core.progress import progress
from dualflow.core.status_errors import DataLossError
from dualflow.train.durable import sync_file
from dualflow.train.encoding import Array, bytes_of, decoded, encoded

DamageHandler = Callable[[str], DataLossError]
"""Returns the error for a damaged file, whose message is the argument."""


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """The dtype, shape and checksum of an array."""

    dtype: DType
    shape: tuple[int, ...]
    crc32: int


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Write a new file of arrays, flushed to the disk; returns the entries for them, as JSON.

    Raises:
        OSError: a file operation failed.
    """
    parts = {name: encoded(name, array) for name, array in arrays.items()}
    try:
        with progress(f"write {path.name}"):
            save_file({key: part for stored in parts.values() for key, part in stored.items()}, path)
    except SafetensorError as error:
        raise _as_system_error(error, path) from error
    sync_file(path)
    sync_folder(os.fspath(path.parent))
    return {
        name: {"dtype": as_dtype(array.dtype).name, "shape": list(array.shape), "crc32": _crc(parts[name])}
        for name, array in arrays.items()
    }


def open_arrays(path: Path) -> Any:
    """A file of arrays, open for :func:`read_array`.

    Raises:
        OSError: it can't be read, or is no such file.
    """
    try:
        return safe_open(path, framework="np")
    except SafetensorError as error:
        raise OSError(str(error)) from error


def _as_system_error(error: SafetensorError, path: Path) -> OSError:
    """The system error in the message of an error by safetensors: "... (os error 28)"."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1])), str(path)) if number else OSError(str(error))


def _crc(parts: Mapping[str, Array]) -> int:
    value = 0
    for part in bytes_of(parts):
        value = zlib.crc32(part, value)
    return value


def entries_of(arrays: Any, size: int, damaged: DamageHandler) -> dict[str, ArrayEntry]:
    """The entries of an index, checked to fit into a file of ``size`` bytes.

    Raises:
        DataLossError: they are invalid, or describe more than the file can hold.
    """
    try:
        entries = {
            name: ArrayEntry(as_dtype(e["dtype"]), tuple(map(int, e["shape"])), int(e["crc32"]))
            for name, e in arrays.items()
        }
        for name, entry in entries.items():
            if min(entry.shape, default=0) < 0 or math.prod(entry.shape) * entry.dtype.size > size:
                raise ValueError(f"{name} has shape {entry.shape}")
        return entries
    except (DTypeError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise damaged(f"describes an array wrongly: {error}") from error


def read_array(arrays: Any, name: str, entry: ArrayEntry, damaged: DamageHandler) -> Array:
    """A copy of an array of an open safetensors file, verified by its entry.

    Raises:
        DataLossError: the array is damaged.
    """
    try:
        array = decoded(arrays.get_tensor, name, entry.dtype.dtype)
    except (SafetensorError, OSError, AttributeError, ValueError, TypeError) as error:
        raise damaged(f"the array {name} can't be read: {error}") from error
    if array.dtype != entry.dtype.dtype or array.shape != entry.shape:
        raise damaged(f"the array {name} has dtype {array.dtype} and shape {array.shape}, unlike the index")
    if _crc(encoded(name, array)) != entry.crc32:
        raise damaged(f"the array {name} has a wrong checksum")
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise damaged(f"the array {name} holds bools other than 0 and 1")
    return array.copy()
