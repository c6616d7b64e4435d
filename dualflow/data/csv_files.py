"""Files of comma-separated values; each line is an element."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dualflow.core.convert import Array, as_array
from dualflow.core.dtypes import DType, as_dtype, float32, float64, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.data.element import Item, leaf_array
from dualflow.data.file_opening import Opener
from dualflow.function.errors import here

_BYTES: Final = "surrogateescape"
"""The error handler of ``str`` codecs that keeps bytes which are not UTF-8."""
_INT32: Final = np.iinfo(np.int32)
_INT64: Final = np.iinfo(np.int64)
_LARGEST_FLOAT32: Final = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class CsvColumn:
    """A column to read.

    Attributes:
        index: the column's index in the file.
        dtype: the dtype of its values.
        default: the value of an empty field; None if a value is required.
    """

    index: int
    dtype: DType
    default: Array | None


@dataclass(frozen=True, slots=True)
class CsvText:
    """The dialect of a file: how it is split into lines of fields.

    Attributes:
        open_file: opens a file by its name.
        delimiter: the separator of fields.
        quotes: whether fields may be quoted.
    """

    open_file: Opener
    delimiter: str
    quotes: bool

    def lines(self, name: str, skip: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Yields the number of each line of a file, from 1, and its fields; not the first ``skip`` ones.

        A line whose quoted fields contain line ends is one, with the number of its last line.
        """
        with self.open_file(name) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", errors=_BYTES, newline="")
            reader = (
                csv.reader(text, delimiter=self.delimiter)
                if self.quotes
                else csv.reader(text, delimiter=self.delimiter, quoting=csv.QUOTE_NONE)
            )
            try:
                for fields in itertools.islice(filter(None, reader), skip, None):
                    yield reader.line_num, fields
            except csv.Error as error:
                raise InvalidArgumentError(
                    f"{name}:{reader.line_num} can't be read: {error}; correct the file."
                ) from None

    def names(self, name: str) -> list[str]:
        """The fields of a file's first line."""
        names = next(self.lines(name), (1, []))[1]
        for number, column in enumerate(names):
            if any("\udc80" <= letter <= "\udcff" for letter in column):
                raise InvalidArgumentError(
                    f"{name}:1, field {number + 1}, is the name of a column, but not UTF-8: "
                    f"{column.encode(errors=_BYTES)!r}. Give column_names.{here()}"
                )
        return names


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """How the lines of files are read as elements.

    Attributes:
        files: the files' names.
        columns: the columns to read.
        header: whether the first line of each file has column names.
        missing: the text of a missing value, besides the empty one.
        text: the dialect.
    """

    files: tuple[str, ...]
    columns: tuple[CsvColumn, ...]
    header: bool
    missing: str
    text: CsvText

    def lines(self) -> Iterator[tuple[Sequence[str], str]]:
        """Yields the fields of each line of all files, with its file and number for errors."""
        for name in self.files:
            for number, fields in self.text.lines(name, skip=int(self.header)):
                yield fields, f"{name}:{number}"

    def item(self, fields: Sequence[str], where: str) -> Item:
        """The element of a line.

        Raises:
            InvalidArgumentError: a field is missing, or is not a value of its column's dtype.
        """
        values = []
        for column in self.columns:
            if column.index >= len(fields):
                raise InvalidArgumentError(
                    f"{where} has {len(fields)} fields, and field {column.index + 1} is to be read; correct "
                    "the file, or read fewer columns."
                )
            text = fields[column.index]
            if text in ("", self.missing):
                if column.default is None:
                    raise InvalidArgumentError(
                        f"{where}, field {column.index + 1}, is required but missing; give a default value "
                        "for it."
                    )
                values.append(column.default)
            else:
                values.append(_parsed(text, column, where))
        return tuple(values)


def _parsed(text: str, column: CsvColumn, where: str) -> Array:
    dtype = column.dtype
    try:
        if dtype.kind in "iu":
            value: Any = int(_numeral(text))
        elif dtype.kind == "f":
            value = float(_numeral(text))
        else:
            return np.array(text.encode(errors=_BYTES), object)
        return np.array(value, dtype.dtype)
    except (ValueError, OverflowError):
        raise InvalidArgumentError(
            f"{where}, field {column.index + 1}, is not a valid {dtype.name}: {text!r}; correct the file, or "
            "read the column as another dtype."
        ) from None


def _numeral(text: str) -> str:
    """``text``, without an underscore, which Python allows in numbers: "1_2" is a string, not 12."""
    if "_" in text:
        raise ValueError(text)
    return text


def column_of(index: int, default: Any) -> CsvColumn:
    """The column that a user declares by a dtype or a default value."""
    if isinstance(default, DType | type):
        return CsvColumn(index, _readable(as_dtype(default)), None)
    array = leaf_array(default)
    if array.size > 1:
        raise InvalidArgumentError(f"The default of a column must be one value, not {default!r}.{here()}")
    dtype = _readable(as_dtype(array.dtype))
    return CsvColumn(index, dtype, None if array.size == 0 else array.reshape(()))


def _readable(dtype: DType) -> DType:
    if dtype.kind not in "iufO":
        raise DTypeError(
            f"A column of a CSV file can be of integers, floats or strings, not of {dtype.name}.{here()}"
        )
    return dtype


def inferred(lines: Iterator[tuple[int, list[str]]], columns: Sequence[int], missing: str) -> list[Any]:
    """Default values of the dtypes inferred from some lines of a file.

    A dtype is the narrowest of int32, int64, float32 and float64 that holds all values, and string otherwise.
    """
    kinds = [0] * len(columns)
    for _, fields in lines:
        for i, column in enumerate(columns):
            if column < len(fields) and fields[column] not in ("", missing):
                kinds[i] = max(kinds[i], _kind(fields[column]))
    return [
        (as_array(0, int32), as_array(0, int64), as_array(0, float32), as_array(0, float64), "")[k]
        for k in kinds
    ]


def _kind(text: str) -> int:
    """The index of the narrowest dtype of a value among int32, int64, float32, float64 and string."""
    try:
        value = int(_numeral(text))
        if _INT64.min <= value <= _INT64.max:
            return 0 if _INT32.min <= value <= _INT32.max else 1
    except ValueError:
        pass
    try:
        size = abs(float(_numeral(text)))
        return 2 if size <= _LARGEST_FLOAT32 or not math.isfinite(size) else 3
    except ValueError:
        return 4
