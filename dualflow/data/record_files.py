"""Datasets of the records of TFRecord files."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dualflow.core.tracebacks import entry
from dualflow.data.arguments import positive
from dualflow.data.dataset import Dataset
from dualflow.data.file_opening import opener_of
from dualflow.data.text_files import files_stage
from dualflow.ops.records.record_files import read_records
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike


class TFRecordDataset(Dataset[Tensor]):
    """The records of TFRecord files, as scalar strings.

    Args:
        filenames: the name of a file, or several: strings, a tensor of them, or a dataset of such.
        compression_type: None, "GZIP" or "ZLIB".
        buffer_size: the number of bytes that are read at a time, 262,144 by default.
        num_parallel_reads: how many files are read at a time, cyclically, as by ``interleave``;
            by default files are read one after the other.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: ``compression_type`` is unknown, or a number is not positive.
        NotFoundError: during iteration, a file does not exist.
        DataLossError: during iteration, a record is damaged or cut off; with the file's name and the offset.
            Records before it are returned.

    >>> import dualflow as df, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "data.tfrecord")
    >>> with df.io.TFRecordWriter(path) as writer:
    ...     writer.write(b"one")
    >>> list(df.data.TFRecordDataset(path).as_numpy_iterator())
    [b'one']
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
        read = read_records
        if buffer_size is not None:
            read = functools.partial(read_records, chunk=positive(buffer_size, "buffer_size"))
        self.stage = files_stage(filenames, opener_of(compression_type), read, num_parallel_reads)
