"""Datasets of the lines of text files, and of records of one length."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import file_name, positive, whole_number
from dualflow.data.dataset import Dataset
from dualflow.data.element import Item, leaf_array, single
from dualflow.data.functions import on_trial
from dualflow.data.opening import Opening, opening
from dualflow.data.sources import IteratedStage
from dualflow.data.stage import Stage
from dualflow.eager.engine import EAGER
from dualflow.function.errors import here
from dualflow.ops.static import known_value


class TextLineDataset(Dataset):
    """The lines of text files, as scalars of strings without their ends.

    Args:
        filenames: the name of a file, or several: strings, a tensor of them, or a dataset of such.
        compression_type: None, or "GZIP".
        buffer_size, num_parallel_reads, name: ignored: files are read one after the other; ``interleave``
            reads several at a time.

    Raises:
        InvalidArgumentError: another compression.
        NotFoundError: in the loop, there is no such file.
        DataLossError: in the loop, a compressed file is damaged.

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
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        self.stage = _files_stage(filenames, opening(compression_type), _lines)


class FixedLengthRecordDataset(Dataset):
    """The records of binary files, each of so many bytes, as scalars of strings.

    Args:
        filenames: the name of a file, or several: strings, a tensor of them, or a dataset of such.
        record_bytes: the length of a record.
        header_bytes: how many bytes are left out at the beginning of each file,
        footer_bytes: and at its end.
        buffer_size, num_parallel_reads, name: ignored.
        compression_type: None, or "GZIP".

    Raises:
        InvalidArgumentError: ``record_bytes`` is not positive; or in the loop, a file has more than records.
        NotFoundError: in the loop, there is no such file.

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
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: str | None = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        size = positive(record_bytes, "record_bytes")
        before, behind = (
            0 if n is None else whole_number(n, "a length") for n in (header_bytes, footer_bytes)
        )
        read = functools.partial(_records, size=size, before=before, behind=behind)
        self.stage = _files_stage(filenames, opening(compression_type), read)


def _files_stage(names: Any, opened: Opening, read: Callable[[BinaryIO, str], Iterator[bytes]]) -> Stage:
    """The stage of what ``read`` finds in files."""
    listed = names if isinstance(names, Dataset) else _listed(names)

    def items() -> Iterator[Item]:
        for name in _names(listed):
            with opened(name) as file:
                for found in read(file, name):
                    yield (np.array(found, object),)

    made: Dataset = Dataset.of(
        IteratedStage(iterate=items, elements=single(TensorSpec([], as_dtype("string"))))
    )
    return made.stage


def _listed(names: Any) -> Sequence[str]:
    """The names of files that a user gives."""
    if isinstance(names, AbstractTensor):
        known = known_value(names)
        if known is None and on_trial():
            return ()
        if known is None:
            raise InvalidArgumentError(
                "The names of a dataset's files are known before it is read; make the dataset outside of "
                "the traced "
                f"function.{here()}"
            )
        names = known.reshape(-1).tolist()
    several = names if isinstance(names, list | tuple | np.ndarray) else [names]
    return tuple(map(file_name, several))


def _names(listed: Any) -> Iterator[str]:
    if not isinstance(listed, Dataset):
        yield from listed
        return
    if [s.dtype.is_string for s in listed.stage.layout.specs] != [True]:
        raise DTypeError(f"The names of files are strings, not {listed.element_spec!r}.")
    cursor = listed.stage.start()
    while True:
        with dispatch.using(EAGER):
            items = cursor.pull(1)
        if not len(items):
            return
        yield from map(file_name, leaf_array(items[0][0]).reshape(-1).tolist())


def _lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    for line in file:
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _records(file: BinaryIO, name: str, *, size: int, before: int, behind: int) -> Iterator[bytes]:
    file.read(before)
    kept = b""
    while chunk := file.read(size + behind - len(kept)):
        kept += chunk
        if len(kept) == size + behind:
            yield kept[:size]
            kept = kept[size:]
    if len(kept) != behind:
        raise InvalidArgumentError(
            f"{name!r} has {len(kept) - behind} bytes beyond its last record of {size} bytes; give "
            "header_bytes and "
            "footer_bytes."
        )
