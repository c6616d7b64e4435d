"""Memory-mapped arrays of ``.npy`` and ``.npz`` files."""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import Final

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.errors import NotFoundError
from dualflow.core.status_errors import DataLossError
from dualflow.core.system_errors import system_errors
from dualflow.function.errors import here

_LOCAL: Final = struct.Struct("<26xHH")
"""The header of a member of a zip archive: the lengths of its name and of its extra field."""


def mapped_arrays(path: str) -> Array | dict[str, Array]:
    """The array of a ``.npy`` file, or the arrays of a ``.npz`` file by name; compressed ones are loaded.

    Raises:
        NotFoundError: the file does not exist.
        DataLossError: it has another format, is damaged, or holds Python objects.
    """
    try:
        if not zipfile.is_zipfile(path):
            return np.lib.format.open_memmap(path, "r")
        with zipfile.ZipFile(path) as archive:
            names = [i.filename.removesuffix(".npy") for i in archive.infolist()]
            return dict(zip(names, [_member(path, archive, i) for i in archive.infolist()], strict=True))
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path!r}.{here()}") from None
    except OSError as error:
        with system_errors(path):
            raise error
    except (ValueError, EOFError, zipfile.BadZipFile, struct.error, zlib.error) as error:
        raise DataLossError(
            f"{path!r} is not a file of NumPy arrays of numbers, or damaged: {error}{here()}"
        ) from None


def _member(path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    if info.compress_type != zipfile.ZIP_STORED:
        with archive.open(info) as member:
            array: Array = np.lib.format.read_array(member, allow_pickle=False)
            return array
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        lengths = _LOCAL.unpack(file.read(_LOCAL.size))
        file.seek(sum(lengths), 1)
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(file)
        if dtype.hasobject:
            raise ValueError("it holds Python objects")
        return np.memmap(path, dtype, "r", file.tell(), shape, "F" if fortran else "C")
