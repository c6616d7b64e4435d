"""TFRecord files: records of bytes with checksums.

A record is the length of its data (8 bytes, the lowest first), the checksum of the length, the data, and the
checksum of the data; both are masked CRC-32Cs of 4 bytes. A file may be compressed as a whole.

Records are written and checked many at a time, since NumPy computes the checksums of many strings at once.
"""

from __future__ import annotations

import gzip
import os
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Protocol, Self

from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.status_errors import DataLossError
from dualflow.core.system_errors import system_errors
from dualflow.core.tracebacks import entry
from dualflow.ops.records.checksums import checksum, checksums, masked

_HEADER: Final = struct.Struct("<QI")
_CHECKSUM: Final = struct.Struct("<I")
_FRAME: Final = _HEADER.size + _CHECKSUM.size
_CHUNK: Final = 1 << 18
"""The number of bytes that are read, or collected for writing, at a time."""
_DAMAGED_STREAM: Final = (gzip.BadGzipFile, EOFError, zlib.error)
_COMPRESSIONS: Final = ("", "GZIP", "ZLIB")


def framed(records: Sequence[bytes]) -> bytes:
    """The records with their lengths and checksums, as they are in a file.

    >>> framed([b"ab"]).hex()
    '020000000000000078270b3461621cb0f0f4'
    """
    lengths = [len(record).to_bytes(8, "little") for record in records]
    computed = checksums([*lengths, *records]).tolist()
    parts: list[bytes] = []
    for i, record in enumerate(records):
        parts += [
            lengths[i],
            _CHECKSUM.pack(masked(computed[i])),
            record,
            _CHECKSUM.pack(masked(computed[len(records) + i])),
        ]
    return b"".join(parts)


def read_records(file: BinaryIO, name: str, chunk: int = _CHUNK) -> Iterator[bytes]:
    """The records of an open file, from its current position on.

    Memory is that of a chunk and of a record that is there: a length is used after its checksum is checked,
    and bytes are read as far as the file has them.

    Raises:
        DataLossError: a record is damaged or cut off, with its offset in the uncompressed data; records
            before it are yielded first.
    """
    offset, buffer = 0, b""
    while True:
        records, used, lost = _whole_records(buffer, offset)
        yield from records
        if lost is not None:
            raise _damaged(name, *lost)
        offset += used
        buffer = buffer[used:]
        missing = _missing(buffer, name, offset)
        try:
            more = _read(file, max(missing, chunk))
        except _DAMAGED_STREAM as error:
            raise _damaged(name, offset, f"the compressed data are damaged ({error})") from None
        if not more and buffer:
            what = f"{missing} bytes of it are missing at the end of the file"
            raise _damaged(name, offset, what)
        if not more:
            return
        buffer += more


def _missing(buffer: bytes, name: str, offset: int) -> int:
    """The number of bytes after ``buffer`` of the record that begins in it; negative if more follows it."""
    if len(buffer) < _HEADER.size:
        return _HEADER.size - len(buffer)
    length, stored = _HEADER.unpack_from(buffer)
    if masked(checksum(buffer[:8])) != stored:
        raise _damaged(name, offset, "the checksum of its length is wrong")
    return int(length) + _FRAME - len(buffer)


def _read(file: BinaryIO, count: int) -> bytes:
    """At most ``count`` bytes; fewer only at the end of the file. Memory grows with what is read."""
    parts: list[bytes] = []
    size = 0
    while size < count:
        try:
            part = file.read1(min(count - size, _CHUNK))  # type: ignore[attr-defined]  # of buffered files
        except _DAMAGED_STREAM:
            if not parts:
                raise
            break  # the next call raises it again, after the records that are whole
        if not part:
            break
        parts.append(part)
        size += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _whole_records(buffer: bytes, offset: int) -> tuple[list[bytes], int, tuple[int, str] | None]:
    """The right records at the beginning of ``buffer``, their size with frames, and the damage after them."""
    lengths: list[bytes] = []
    records: list[bytes] = []
    stored: list[tuple[int, int]] = []
    at = 0
    while len(buffer) - at >= _FRAME:
        length, of_length = _HEADER.unpack_from(buffer, at)
        end = at + _HEADER.size + length
        if end + _CHECKSUM.size > len(buffer):
            break
        lengths.append(buffer[at : at + 8])
        records.append(buffer[at + _HEADER.size : end])
        stored.append((of_length, _CHECKSUM.unpack_from(buffer, end)[0]))
        at = end + _CHECKSUM.size
    computed = checksums([*lengths, *records]).tolist()
    index = 0
    for i, (of_length, of_data) in enumerate(stored):
        what = (
            "length" if masked(computed[i]) != of_length
            else "data" if masked(computed[len(records) + i]) != of_data else None
        )  # fmt: skip
        if what is not None:
            return records[:i], index, (offset + index, f"the checksum of its {what} is wrong")
        index += _FRAME + len(records[i])
    return records, at, None


def _damaged(name: str, offset: int, what: str) -> DataLossError:
    return DataLossError(f"corrupted record at {offset} in {name!r}: {what}. Write the file again.")


@dataclass(frozen=True, slots=True)
class TFRecordOptions:
    """How a TFRecord file is compressed.

    Args:
        compression_type: None or "" for none, "GZIP" or "ZLIB"; or options, whose type is taken.
        flush_mode, input_buffer_size, output_buffer_size, window_bits: ignored; as in TensorFlow.
        compression_method, mem_level, compression_strategy: ignored; as in TensorFlow.
        compression_level: from 0, fast, to 9, small.

    Raises:
        InvalidArgumentError: another compression or level.

    >>> import dualflow as df
    >>> df.io.TFRecordOptions(compression_type="GZIP").compression_type
    'GZIP'
    """

    compression_type: str | TFRecordOptions | None = None
    flush_mode: int | None = None
    input_buffer_size: int | None = None
    output_buffer_size: int | None = None
    window_bits: int | None = None
    compression_level: int | None = None
    compression_method: int | None = None
    mem_level: int | None = None
    compression_strategy: int | None = None

    @entry
    def __post_init__(self) -> None:
        compression = self.compression_type
        if isinstance(compression, TFRecordOptions):
            compression = compression.compression_type
        if compression not in (None, *_COMPRESSIONS):
            raise InvalidArgumentError(
                f"compression_type is None, 'GZIP' or 'ZLIB', not {self.compression_type!r}."
            )
        object.__setattr__(self, "compression_type", compression or "")
        if self.compression_level is not None and self.compression_level not in range(-1, 10):
            raise InvalidArgumentError(f"compression_level is 0 to 9, not {self.compression_level!r}.")


class _Compressor(Protocol):
    def compress(self, data: bytes) -> bytes: ...
    def flush(self, mode: int = ...) -> bytes: ...


@entry
class TFRecordWriter:
    """Writes records to a new TFRecord file. Threads may share it.

    Records are buffered and written as a whole: if writing fails, the file is cut to its last whole record.

    Args:
        path: the file, which is replaced.
        options: a :class:`TFRecordOptions`, or its compression.

    Raises:
        InvalidArgumentError: the compression is unknown.
        NotFoundError, PermissionDeniedError, FailedPreconditionError: the file can't be created.

    >>> import dualflow as df, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "data.tfrecord")
    >>> with df.io.TFRecordWriter(path) as writer:
    ...     writer.write(b"one")
    ...     writer.write(b"two")
    >>> list(df.data.TFRecordDataset(path).as_numpy_iterator())
    [b'one', b'two']
    """

    @entry
    def __init__(self, path: str | os.PathLike[str], options: TFRecordOptions | str | None = None) -> None:
        chosen = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        level = zlib.Z_DEFAULT_COMPRESSION if chosen.compression_level is None else chosen.compression_level
        windows = {"GZIP": zlib.MAX_WBITS | 16, "ZLIB": zlib.MAX_WBITS}
        bits = windows.get(str(chosen.compression_type))
        self._compressor: _Compressor | None = None if bits is None else zlib.compressobj(level, wbits=bits)
        try:
            self._path = os.fspath(path)
        except TypeError:
            raise DTypeError(f"A file is named by a path, not by {path!r}.") from None
        self._lock = threading.Lock()
        self._pending: list[bytes] = []
        self._size = 0
        with system_errors(self._path):
            self._file: Any = open(self._path, "wb", buffering=0)  # noqa: SIM115  # close() closes it

    def write(self, record: bytes) -> None:
        """Add a record.

        Args:
            record: bytes, such as of a message's ``SerializeToString()``.

        Raises:
            DTypeError: ``record`` is no bytes.
            FailedPreconditionError: the writer is closed.
            ResourceExhaustedError, UnknownError: the file can't be written to, such as on a full disk.
        """
        if not isinstance(record, bytes | bytearray | memoryview):
            raise DTypeError(
                f"A record is bytes, not {type(record).__name__}; a message has SerializeToString(), and "
                "text encode()."
            )
        with self._lock:
            self._require_open()
            self._pending.append(bytes(record))
            self._size += len(record)
            if self._size >= _CHUNK or len(self._pending) >= 4096:
                self._write_pending()

    def flush(self) -> None:
        """Write all records, so that readers find them.

        Raises:
            FailedPreconditionError: the writer is closed.
            ResourceExhaustedError, UnknownError: the file can't be written to.
        """
        with self._lock:
            self._require_open()
            self._write_pending()
            if self._compressor is not None:
                self._append(self._compressor.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        """Write all records and close the file; further calls do nothing."""
        with self._lock:
            if self._file is None:
                return
            try:
                self._write_pending()
                if self._compressor is not None:
                    self._append(self._compressor.flush(zlib.Z_FINISH))
            finally:
                self._file.close()
                self._file = None

    def _write_pending(self) -> None:
        records, self._pending, self._size = self._pending, [], 0
        data = framed(records)
        self._append(data if self._compressor is None else self._compressor.compress(data))

    def _append(self, data: bytes) -> None:
        with system_errors(self._path):
            start = self._file.tell()
            view = memoryview(data)
            try:
                while view:
                    view = view[self._file.write(view) :]
            except OSError:
                self._file.truncate(start)
                self._file.seek(start)
                raise

    def _require_open(self) -> None:
        if self._file is None:
            raise FailedPreconditionError(f"The writer of {self._path!r} is closed.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()
