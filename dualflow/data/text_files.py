"""Datasets of the lines of text files, and of fixed-length records."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import file_name, positive, whole_number
from dualflow.data.dataset import Dataset
from dualflow.data.element import ElementLayout, Item, leaf_array, single_tensor_layout
from dualflow.data.file_opening import Opener, opener_of
from dualflow.data.functions import is_tracing_layout
from dualflow.data.sources import FunctionIterator
from dualflow.data.stage import UNKNOWN, Stage, StageIterator
from dualflow.eager.engine import EAGER
from dualflow.function.errors import here
from dualflow.ops.static import static_value
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike


class TextLineDataset(Dataset[Tensor]):
    """The lines of text files, as scalar strings without line ends.

    Args:
        filenames: the name of a file, or several: strings, a tensor of them, or a dataset of such.
        compression_type: None, "GZIP" or "ZLIB".
        buffer_size: the number of bytes that are read at a time; Python's default if it is None.
        num_parallel_reads: how many files are read at a time, cyclically, as by ``interleave``;
            by default files are read one after the other.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: ``compression_type`` is unknown, or a number is not positive.
        NotFoundError: during iteration, a file does not exist.
        DataLossError: during iteration, a compressed file is damaged.

    >>> import dualflow as df, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "poem.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write("one\\ntwo\\n")
    >>> list(df.data.TextLineDataset(path).as_numpy_iterator())
    [b'one', b'two']
    """

    __slots__ = ()

    @entry
    def __init__(
        self,
        filenames: TensorLike,
        compression_type: str | None = None,
        buffer_size: IntLike | None = None,
        num_parallel_reads: IntLike | None = None,
        name: str | None = None,
    ) -> None:
        opener = opener_of(compression_type, buffer_size)
        self.stage = files_stage(filenames, opener, _lines, num_parallel_reads)


class FixedLengthRecordDataset(Dataset[Tensor]):
    """The records of binary files, each of ``record_bytes`` bytes, as scalar strings.

    Args:
        filenames: the name of a file, or several: strings, a tensor of them, or a dataset of such.
        record_bytes: the length of a record.
        header_bytes: how many bytes to skip at the beginning of each file.
        footer_bytes: how many bytes to skip at its end.
        buffer_size: the number of bytes that are read at a time; Python's default if it is None.
        compression_type: None, "GZIP" or "ZLIB".
        num_parallel_reads: how many files are read at a time, cyclically, as by ``interleave``;
            by default files are read one after the other.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: a number is not positive, or a header or footer is negative; during iteration, a
            file is shorter than both, or has bytes beyond its last record.
        NotFoundError: during iteration, a file does not exist.

    >>> import dualflow as df, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "pairs")
    >>> with open(path, "wb") as file:
    ...     _ = file.write(b"headaabb")
    >>> list(df.data.FixedLengthRecordDataset(path, 2, header_bytes=4).as_numpy_iterator())
    [b'aa', b'bb']
    """

    __slots__ = ()

    @entry
    def __init__(
        self,
        filenames: TensorLike,
        record_bytes: IntLike,
        header_bytes: IntLike | None = None,
        footer_bytes: IntLike | None = None,
        buffer_size: IntLike | None = None,
        compression_type: str | None = None,
        num_parallel_reads: IntLike | None = None,
        name: str | None = None,
    ) -> None:
        size = positive(record_bytes, "record_bytes")
        header, footer = (
            0 if n is None else _length(n, name)
            for n, name in ((header_bytes, "header_bytes"), (footer_bytes, "footer_bytes"))
        )
        read = functools.partial(_records, size=size, header=header, footer=footer)
        opener = opener_of(compression_type, buffer_size)
        self.stage = files_stage(filenames, opener, read, num_parallel_reads)


def _length(value: Any, what: str) -> int:
    length = whole_number(value, what)
    if length < 0:
        raise InvalidArgumentError(f"{what} must not be negative, but is {length}.{here()}")
    return length


FileReader = Callable[[BinaryIO, str], Iterator[bytes]]
"""Yields the strings of an open file; the name is for errors."""


def files_stage(names: Any, open_file: Opener, read: FileReader, num_parallel_reads: IntLike | None) -> Stage:
    """The stage of the strings that ``read`` yields for each file: one file after the other, or several."""
    if num_parallel_reads is None:
        return _serial_stage(names, open_file, read)
    files = names if isinstance(names, Dataset) else _dataset_of(_static_names(names))
    strings = files.interleave(
        lambda file: Dataset.of(_serial_stage(file, open_file, read)),
        cycle_length=num_parallel_reads,
        num_parallel_calls=num_parallel_reads,
    )
    stage: Stage = strings.stage
    return stage


def _dataset_of(names: Sequence[str]) -> Dataset[Tensor]:
    return Dataset.from_tensor_slices(np.array([os.fsencode(name) for name in names], object))


@dataclass(frozen=True, eq=False, kw_only=True)
class FilesStage(Stage):
    """The strings that a reader yields for each file, one file after the other.

    Attributes:
        names: the names of the files, or the stage of a dataset of names.
        open_file: opens a file by its name.
        read: yields the strings of an open file.
    """

    names: Sequence[str] | Stage
    open_file: Opener
    read: FileReader

    @property
    def layout(self) -> ElementLayout:
        return single_tensor_layout(TensorSpec([], as_dtype("string")))

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> StageIterator:
        return FunctionIterator(self._items)

    def _items(self) -> Iterator[Item]:
        for name in _iterate_names(self.names):
            with self.open_file(name) as file:
                for string in self.read(file, name):
                    yield (np.array(string, object),)


def _serial_stage(names: Any, open_file: Opener, read: FileReader) -> Stage:
    listed = names.stage if isinstance(names, Dataset) else _static_names(names)
    if isinstance(listed, Stage) and [s.dtype.is_string for s in listed.layout.specs] != [True]:
        raise DTypeError(f"The names of files must be strings, not {names.element_spec!r}.{here()}")
    dataset: Dataset = Dataset.of(FilesStage(names=listed, open_file=open_file, read=read))
    return dataset.stage


def _static_names(names: Any) -> Sequence[str]:
    """The names of files, from a name, several names, or a tensor of names."""
    if isinstance(names, AbstractTensor):
        array = static_value(names)
        if array is None and is_tracing_layout():
            return ()
        if array is None:
            raise InvalidArgumentError(
                "The names of a dataset's files must be known when it is created; create the dataset outside "
                f"of the traced function.{here()}"
            )
        names = array.reshape(-1).tolist()
    several = names if isinstance(names, list | tuple | np.ndarray) else [names]
    return tuple(map(file_name, several))


def _iterate_names(names: Sequence[str] | Stage) -> Iterator[str]:
    if not isinstance(names, Stage):
        yield from names
        return
    iterator = names.start()
    try:
        while True:
            with dispatch.using(EAGER):
                items = iterator.next(1)
            if not len(items):
                return
            yield from map(file_name, leaf_array(items[0][0]).reshape(-1).tolist())
    finally:
        iterator.close()


def _lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    for line in file:
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _records(file: BinaryIO, name: str, *, size: int, header: int, footer: int) -> Iterator[bytes]:
    skipped, pending = len(file.read(header)), b""
    while chunk := file.read(size + footer - len(pending)):
        pending += chunk
        if len(pending) == size + footer:
            yield pending[:size]
            pending = pending[size:]
    if skipped < header or len(pending) < footer:
        raise InvalidArgumentError(
            f"{name!r} has {skipped + len(pending)} bytes, fewer than header_bytes and footer_bytes, "
            f"{header} and {footer}."
        )
    if len(pending) > footer:
        raise InvalidArgumentError(
            f"{name!r} has {len(pending) - footer} bytes beyond its last record of {size} bytes; give "
            "header_bytes and footer_bytes."
        )
