"""Datasets of files of comma-separated values: ``df.data.experimental``."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from typing import Any

from dualflow.core.errors import InvalidArgumentError, NotFoundError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.tree import LEAF, Structure
from dualflow.data.arguments import file_name
from dualflow.data.csv_files import CsvFormat, CsvText, column_of, inferred
from dualflow.data.dataset import Dataset
from dualflow.data.element import ElementLayout
from dualflow.data.opening import opening
from dualflow.data.sources import IteratedStage
from dualflow.function.errors import here


class CsvDataset(Dataset):
    """The lines of files of comma-separated values, as tuples of scalars.

    Args:
        filenames: the name of a file, or several.
        record_defaults: for each column that is read its dtype, or a default for empty fields, whose dtype it
            has.
        compression_type: None, or "GZIP".
        buffer_size: ignored.
        header: whether the first line of each file has names.
        field_delim: what stands between fields.
        use_quote_delim: whether fields may stand in quotation marks.
        na_value: what stands for a missing value, beside nothing.
        select_cols: which columns are read, rising numbers from 0; all by default.
        exclude_cols: in place of these, which columns are left out.

    Raises:
        InvalidArgumentError: the numbers of columns and defaults differ, columns are both selected and
            excluded, or another compression; or in the loop, a field is missing or can't be read, with the
            file and line.
        NotFoundError: in the loop, there is no such file.
        DataLossError: in the loop, a compressed file is damaged.

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
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        text = CsvText(opening(compression_type), field_delim, use_quote_delim)
        places = _places(len(record_defaults), select_cols, exclude_cols)
        if len(places) != len(record_defaults):
            raise InvalidArgumentError(
                f"There are {len(places)} columns and {len(record_defaults)} record_defaults; give one for "
                "each."
                f"{here()}"
            )
        columns = tuple(map(column_of, places, record_defaults))
        form = CsvFormat(_files(filenames), columns, header, na_value, text)
        made: Dataset = self.of(_stage(form, Structure(tuple, (), (LEAF,) * len(columns))))
        self.stage = made.stage


def _files(names: Any) -> tuple[str, ...]:
    return tuple(map(file_name, names if isinstance(names, list | tuple) else [names]))


def _places(count: int, selected: Sequence[int] | None, excluded: Sequence[int] | None) -> Sequence[int]:
    """Which columns are read for ``count`` defaults."""
    if not excluded:
        return range(count) if selected is None else selected
    if selected:
        raise InvalidArgumentError(
            f"Columns are selected or excluded; leave select_cols or exclude_cols out.{here()}"
        )
    return [place for place in range(count + len(excluded)) if place not in excluded][:count]


def _stage(form: CsvFormat, structure: Structure) -> IteratedStage:
    specs = tuple([TensorSpec([], c.dtype) for c in form.columns])
    return IteratedStage(iterate=form.items, elements=ElementLayout(structure, specs))


@entry
def make_csv_dataset(
    file_pattern: Any,
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
        column_names: of all columns; by default those of the first file's first line.
        column_defaults: for each column that is read its dtype or a default; by default what the first lines
            hold tells.
        label_name: the column that is taken out of the dict.
        select_columns: the names or numbers of the columns that are read, with the label's; all by default.
        field_delim, use_quote_delim, na_value, header: as :class:`CsvDataset` has them.
        num_epochs: how often the files are read; None for no end.
        shuffle: whether lines are shuffled, with a buffer of ``shuffle_buffer_size`` and ``shuffle_seed``.
        prefetch_buffer_size: how many batches are made ahead.
        num_parallel_reads, sloppy: ignored: the files are read one after the other.
        num_rows_for_inference: how many lines tell the dtypes.
        compression_type: None, or "GZIP".
        ignore_errors: whether lines that can't be read are left out.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: there is no such column, the numbers of columns and defaults differ, or another
            compression.
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
    text = CsvText(opening(compression_type), field_delim, use_quote_delim)
    files = _matching(_files(file_pattern))
    names = list(column_names) if column_names is not None else text.names(files[0])
    places = [_place(c, names) for c in (names if select_columns is None else select_columns)]
    if column_defaults is None:

        def read(name: str) -> Any:
            return (line for line in text.lines(name) if line[0] > 1 or not header)

        column_defaults = inferred(files[0], places, num_rows_for_inference, read, na_value)
    if len(column_defaults) != len(places):
        raise InvalidArgumentError(
            f"There are {len(places)} columns and {len(column_defaults)} column_defaults; give one for "
            f"each.{here()}"
        )
    columns = tuple(map(column_of, places, column_defaults))
    form = CsvFormat(files, columns, header, na_value, text)
    kept = [names[place] for place in places]
    if label_name is not None and label_name not in kept:
        raise InvalidArgumentError(f"There is no column {label_name!r} to be the label among {kept}.{here()}")
    dataset: Dataset = Dataset.of(_stage(form, Structure(tuple, (), (LEAF,) * len(columns))))
    if ignore_errors:
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    dataset = dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)

    def named(*values: Any) -> Any:
        by_name = dict(zip(kept, values, strict=True))
        return by_name if label_name is None else (by_name, by_name.pop(label_name))

    dataset = dataset.map(named)
    return dataset if not prefetch_buffer_size else dataset.prefetch(prefetch_buffer_size)


def _matching(patterns: Sequence[str]) -> tuple[str, ...]:
    found = sorted({name for pattern in patterns for name in glob.glob(pattern)})
    if not found:
        raise NotFoundError(f"There is no file {', '.join(patterns)}.{here()}")
    return tuple(found)


def _place(column: Any, names: Sequence[str]) -> int:
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int) and 0 <= column < len(names):
        return column
    raise InvalidArgumentError(f"There is no column {column!r} among {list(names)}.{here()}")
