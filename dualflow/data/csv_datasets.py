"""Datasets of files of comma-separated values: ``df.data.experimental``."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError, NotFoundError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.tree import LEAF, Structure
from dualflow.data.arguments import entries, file_name
from dualflow.data.csv_files import CsvFormat, CsvText, column_of, inferred
from dualflow.data.dataset import Dataset
from dualflow.data.element import ElementLayout
from dualflow.data.file_opening import opener_of
from dualflow.data.mapping import MapIterator
from dualflow.data.sources import FunctionIterator
from dualflow.data.stage import UNKNOWN, Stage, StageIterator
from dualflow.function.errors import here

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike


class CsvDataset(Dataset):
    """The lines of files of comma-separated values, as tuples of scalars.

    Args:
        filenames: the name of a file, or several.
        record_defaults: for each column that is read its dtype, or a default for empty fields, which sets the
            dtype.
        compression_type: None, or "GZIP".
        buffer_size: the number of bytes that are read at a time; Python's default if it is None.
        header: whether the first line of each file has column names.
        field_delim: the separator of fields.
        use_quote_delim: whether fields may be quoted.
        na_value: the text of a missing value, besides the empty one.
        select_cols: the columns to read, ascending numbers from 0; all by default.
        exclude_cols: the columns to leave out, instead of ``select_cols``.

    Raises:
        InvalidArgumentError: the numbers of columns and defaults differ, columns are both selected and
            excluded, the compression is another one, or ``buffer_size`` is not positive; during iteration,
            a field is missing or can't be read, with the file and line.
        NotFoundError: during iteration, a file does not exist.
        DataLossError: during iteration, a compressed file is damaged.

    >>> import dualflow as df, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "points.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("x,n\\n1.5,3\\n,4\\n")
    >>> dataset = df.data.experimental.CsvDataset(path, [0.0, df.int32], header=True)
    >>> [(float(x), int(n)) for x, n in dataset]
    [(1.5, 3), (0.0, 4)]
    """

    __slots__ = ()

    @entry
    def __init__(
        self,
        filenames: TensorLike,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: IntLike | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        text = CsvText(opener_of(compression_type, buffer_size), field_delim, use_quote_delim)
        defaults = entries(record_defaults, "record_defaults")
        columns_read = _column_indices(len(defaults), select_cols, exclude_cols)
        if len(columns_read) != len(defaults):
            raise InvalidArgumentError(
                f"There are {len(columns_read)} columns and {len(defaults)} record_defaults; give one "
                f"for each.{here()}"
            )
        columns = tuple(map(column_of, columns_read, defaults))
        csv_format = CsvFormat(_files(filenames), columns, header, na_value, text)
        dataset: Dataset = self.of(CsvStage(csv_format=csv_format))
        self.stage = dataset.stage


def _files(names: Any) -> tuple[str, ...]:
    return tuple(map(file_name, names if isinstance(names, list | tuple) else [names]))


def _column_indices(
    count: int, selected: Sequence[int] | None, excluded: Sequence[int] | None
) -> Sequence[int]:
    """The columns that are read for ``count`` defaults."""
    if not excluded:
        return range(count) if selected is None else selected
    if selected:
        raise InvalidArgumentError(
            f"Columns are both selected and excluded; leave out select_cols or exclude_cols.{here()}"
        )
    return [column for column in range(count + len(excluded)) if column not in excluded][:count]


@dataclass(frozen=True, eq=False, kw_only=True)
class CsvStage(Stage):
    """The lines of CSV files. After a line that can't be read, iteration can go on with the next one."""

    csv_format: CsvFormat

    @property
    def layout(self) -> ElementLayout:
        columns = self.csv_format.columns
        specs = tuple([TensorSpec([], column.dtype) for column in columns])
        return ElementLayout(Structure(tuple, (), (LEAF,) * len(columns)), specs)

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> StageIterator:
        return MapIterator(FunctionIterator(self.csv_format.lines), self.csv_format.item)


@entry
def make_csv_dataset(
    file_pattern: TensorLike,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Batches of the lines of CSV files: dicts of columns, or pairs of such a dict and the label's column.

    Args:
        file_pattern: the name of a file, or a pattern with ``*``, or several.
        batch_size: how many lines make a batch.
        column_names: the names of all columns; by default those in the first file's first line.
        column_defaults: for each column that is read its dtype or a default; by default inferred from the
            first lines.
        label_name: the column to return separately from the dict.
        select_columns: the names or numbers of the columns to read, including the label's; all by default.
        field_delim, use_quote_delim, na_value, header: as in :class:`CsvDataset`.
        num_epochs: how often the files are read; None for endlessly.
        shuffle: whether lines are shuffled, with a buffer of ``shuffle_buffer_size`` and ``shuffle_seed``.
        prefetch_buffer_size: how many batches are prefetched.
        num_parallel_reads, sloppy: ignored: the files are read one after the other.
        num_rows_for_inference: how many lines dtypes are inferred from.
        compression_type: None, or "GZIP".
        ignore_errors: whether lines that can't be read are skipped.

    Raises:
        NotFoundError: no file matches.
        InvalidArgumentError: there is no such column, the numbers of columns and defaults differ, or the
            compression is another one.
        DataLossError: a compressed file is damaged.

    >>> import dualflow as df, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "points.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("x,label\\n1.5,0\\n2.5,1\\n")
    >>> dataset = df.data.experimental.make_csv_dataset(
    ...     path, batch_size=2, label_name="label", num_epochs=1, shuffle=False
    ... )
    >>> [({k: v.numpy().tolist() for k, v in x.items()}, y.numpy().tolist()) for x, y in dataset]
    [({'x': [1.5, 2.5]}, [0, 1])]
    """
    text = CsvText(opener_of(compression_type), field_delim, use_quote_delim)
    files = _matching(_files(file_pattern))
    names = list(column_names) if column_names is not None else text.names(files[0])
    columns_read = [_column_index(c, names) for c in (names if select_columns is None else select_columns)]
    if column_defaults is None:
        lines = itertools.islice(text.lines(files[0], skip=int(header)), num_rows_for_inference)
        column_defaults = inferred(lines, columns_read, na_value)
    if len(column_defaults) != len(columns_read):
        raise InvalidArgumentError(
            f"There are {len(columns_read)} columns and {len(column_defaults)} column_defaults; give one for "
            f"each.{here()}"
        )
    columns = tuple(map(column_of, columns_read, column_defaults))
    csv_format = CsvFormat(files, columns, header, na_value, text)
    selected = [names[index] for index in columns_read]
    if label_name is not None and label_name not in selected:
        raise InvalidArgumentError(
            f"There is no column {label_name!r} to be the label among {selected}.{here()}"
        )
    dataset: Dataset = Dataset.of(CsvStage(csv_format=csv_format))
    if ignore_errors:
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    dataset = dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)

    def named(*values: Any) -> Any:
        by_name = dict(zip(selected, values, strict=True))
        return by_name if label_name is None else (by_name, by_name.pop(label_name))

    dataset = dataset.map(named)
    return dataset if not prefetch_buffer_size else dataset.prefetch(prefetch_buffer_size)


def _matching(patterns: Sequence[str]) -> tuple[str, ...]:
    paths = sorted({name for pattern in patterns for name in glob.glob(pattern)})
    if not paths:
        raise NotFoundError(f"There is no file {', '.join(patterns)}.{here()}")
    return tuple(paths)


def _column_index(column: Any, names: Sequence[str]) -> int:
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int) and 0 <= column < len(names):
        return column
    raise InvalidArgumentError(f"There is no column {column!r} among {list(names)}.{here()}")
