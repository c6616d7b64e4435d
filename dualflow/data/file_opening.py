"""Opening of files that may be compressed."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, BinaryIO, Final, cast

from dualflow.core.errors import InvalidArgumentError, NotFoundError
from dualflow.core.status_errors import DataLossError
from dualflow.core.system_errors import system_errors
from dualflow.data.arguments import positive
from dualflow.function.errors import here


class _Inflated(io.RawIOBase):
    """The content of a file of one zlib stream (RFC 1950)."""

    def __init__(self, name: str) -> None:
        self._file = open(name, "rb")  # noqa: SIM115  # close() closes it
        self._stream = zlib.decompressobj()
        self._began = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` in part; returns the number of bytes, 0 at the end of the stream.

        Raises:
            zlib.error: the stream is damaged.
            EOFError: the file ends before the stream.
        """
        while not self._stream.eof:
            compressed = self._stream.unconsumed_tail or self._file.read(_CHUNK)
            if not compressed and not self._began:  # an empty file has no stream
                return 0
            if not compressed:
                raise EOFError("the file ended before the end of the compressed data")
            self._began = True
            data = self._stream.decompress(compressed, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
        return 0

    def close(self) -> None:
        self._file.close()
        super().close()


_CHUNK: Final = 1 << 16
_RAW_FILES: Final[dict[str, Callable[[str], io.RawIOBase]]] = {
    "": io.FileIO,
    "GZIP": lambda name: cast(io.RawIOBase, gzip.open(name)),  # noqa: SIM115  # its reader closes it
    "ZLIB": _Inflated,
}
Opener = Callable[[str], AbstractContextManager[BinaryIO]]


def opener_of(compression: str | None, buffer_size: Any = None) -> Opener:
    """A function that opens a file by name, and decompresses it.

    The file is read, or decompressed, ``buffer_size`` bytes at a time; by default by Python's number.

    While the file is open, errors about it are raised as dualflow's, with its name: NotFoundError,
    DataLossError for damaged compressed data, and system errors.

    Raises:
        InvalidArgumentError: ``compression`` is not None, "", "GZIP" or "ZLIB"; or ``buffer_size`` is not
            positive.
    """
    size = io.DEFAULT_BUFFER_SIZE if buffer_size is None else positive(buffer_size, "buffer_size")
    if compression not in (None, *_RAW_FILES):
        raise InvalidArgumentError(
            f"compression_type must be None, 'GZIP' or 'ZLIB', not {compression!r}.{here()}"
        )

    @contextmanager
    def open_file(name: str) -> Iterator[BinaryIO]:
        try:
            with io.BufferedReader(_RAW_FILES[compression or ""](name), size) as file:
                yield file
        except FileNotFoundError:
            raise NotFoundError(f"There is no file {name!r}.{here()}") from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataLossError(f"{name!r} is damaged: {error}; write it again.{here()}") from None
        except (OSError, ValueError) as error:
            with system_errors(name):
                raise error

    return open_file
