"""Initializers: the keys and values that a static table is created with, from tensors or from a text file."""

from __future__ import annotations

import abc
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.dtypes import DType, as_dtype, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.system_errors import system_errors
from dualflow.core.tracebacks import entry
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.static import static_int, static_value
from dualflow.ops.text.mapping import filled
from dualflow.ops.text.numbers import number_in

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike


class EmptyTable(Protocol):
    """A table to which an initializer gives its entries."""

    def fill(self, keys: TensorLike, values: TensorLike) -> None:
        """Set the entries, two vectors of one size."""


class TableInitializer(abc.ABC):
    """The base of initializers.

    Args:
        key_dtype, value_dtype: the dtypes of keys and values.
    """

    def __init__(self, key_dtype: DTypeLike, value_dtype: DTypeLike) -> None:
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._value_dtype

    @abc.abstractmethod
    def entries(self) -> tuple[Array, Array]:
        """The keys and the values, as two vectors of one size."""

    def initialize(self, table: EmptyTable) -> None:
        """Give ``table`` its keys and values.

        Args:
            table: a :class:`dualflow.lookup.StaticHashTable` of these dtypes.

        Raises:
            FailedPreconditionError: a key occurs twice, with different values.

        >>> import dualflow as df
        >>> numbers = df.lookup.KeyValueTensorInitializer(["a"], [7])
        >>> int(df.lookup.StaticHashTable(numbers, -1).lookup("a"))
        7
        """
        table.fill(*self.entries())


@entry
class KeyValueTensorInitializer(TableInitializer):
    """The entries of a table, as two tensors.

    Args:
        keys: integers or strings, a vector.
        values: a value for each key, a vector of any dtype.
        key_dtype, value_dtype: the dtypes to convert ``keys`` and ``values`` to; by default their
            own.
        name: ignored, as in TensorFlow; None by default.

    Raises:
        InvalidArgumentError: the two are not vectors of one size.
        DTypeError: they are symbolic tensors of a function.

    >>> import dualflow as df
    >>> initializer = df.lookup.KeyValueTensorInitializer(["emerson", "lake", "palmer"], [0, 1, 2])
    >>> initializer.key_dtype.name, initializer.value_dtype.name
    ('string', 'int32')
    """

    @entry
    def __init__(
        self,
        keys: TensorLike,
        values: TensorLike,
        key_dtype: DTypeLike | None = None,
        value_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        key_tensor = convert_to_tensor(keys, key_dtype)
        value_tensor = convert_to_tensor(values, value_dtype)
        super().__init__(key_tensor.dtype, value_tensor.dtype)
        self._entries = static_array(key_tensor, "keys"), static_array(value_tensor, "values")
        key_array, value_array = self._entries
        if key_array.ndim != 1 or key_array.shape != value_array.shape:
            raise InvalidArgumentError(
                f"The keys and the values of a table are two vectors of one size, not of shapes "
                f"{key_array.shape} and {value_array.shape}."
            )

    def entries(self) -> tuple[Array, Array]:
        """The keys and the values.

        Raises nothing.

        Returns:
            Two vectors, arrays of NumPy.

        >>> import dualflow as df
        >>> df.lookup.KeyValueTensorInitializer([1, 2], [0.5, 0.25]).entries()
        (array([1, 2], dtype=int32), array([0.5 , 0.25], dtype=float32))
        """
        return self._entries


class TextFileIndex:
    """The parts of a text file's lines that are keys or values.

    A number of 0 or more is the column of that number.

    >>> import dualflow as df
    >>> df.lookup.TextFileIndex.WHOLE_LINE, df.lookup.TextFileIndex.LINE_NUMBER
    (-2, -1)
    """

    WHOLE_LINE: Final = -2
    LINE_NUMBER: Final = -1


@entry
class TextFileInitializer(TableInitializer):
    r"""The entries of a table, from the lines of a text file.

    Args:
        filename: the path of the file.
        key_dtype, value_dtype: the dtypes of keys and values: integers, strings, or floats for values. Text
            is converted, as by :func:`dualflow.strings.to_number`.
        key_index, value_index: what is a key, or a value: ``TextFileIndex.WHOLE_LINE``,
            ``TextFileIndex.LINE_NUMBER``, which counts from 0 and is int64, or the number of a column.
        vocab_size: the number of lines to read, of which the file has as many or more; None for all.
        delimiter: the text between columns; a tab by default.
        name: ignored, as in TensorFlow; None by default.
        value_index_offset: a number to add to line numbers that are values; 0 by default.

    Raises:
        DTypeError: line numbers in another dtype than int64, or whole lines in a dtype of floats.
        InvalidArgumentError: an index below -2.

    >>> import dualflow as df, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "words.txt")
    >>> df.io.write_file(path, "the\nand\n")
    >>> index = df.lookup.TextFileIndex
    >>> lines = df.lookup.TextFileInitializer(path, df.string, index.WHOLE_LINE, df.int64, index.LINE_NUMBER)
    >>> df.lookup.StaticHashTable(lines, -1).lookup(["and", "or"]).numpy()
    array([ 1, -1])
    """

    @entry
    def __init__(
        self,
        filename: TensorLike,
        key_dtype: DTypeLike,
        key_index: int,
        value_dtype: DTypeLike,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        path = static_array(convert_to_tensor(filename, "string"), "filename")
        self._path: bytes = path.item()
        self._indices = static_int(key_index, "key_index"), static_int(value_index, "value_index")
        self._count = None if vocab_size is None else static_int(vocab_size, "vocab_size")
        self._delimiter = delimiter.encode()
        self._offset = static_int(value_index_offset, "value_index_offset")
        for what, index, dtype in zip(
            ("keys", "values"), self._indices, (self.key_dtype, self.value_dtype), strict=True
        ):
            _check_index(what, index, dtype)

    def entries(self) -> tuple[Array, Array]:
        r"""The keys and the values, read from the file.

        Returns:
            Two vectors, arrays of NumPy.

        Raises:
            NotFoundError: there is no such file.
            InvalidArgumentError: it has fewer lines than ``vocab_size``, a line has no such column, or text
                is no number of the dtype.

        >>> import dualflow as df, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "ages.txt")
        >>> df.io.write_file(path, "a\t7\nb\t9\n")
        >>> df.lookup.TextFileInitializer(path, df.string, 0, df.int64, 1).entries()[1]
        array([7, 9])
        """
        lines = self._lines()
        keys = self._column(lines, self._indices[0], self.key_dtype, 0)
        return keys, self._column(lines, self._indices[1], self.value_dtype, self._offset)

    def _lines(self) -> list[bytes]:
        with system_errors(self._path), open(self._path, "rb") as file:
            lines = [line.rstrip(b"\r\n") for line in islice(file, self._count)]
        if self._count is not None and len(lines) < self._count:
            raise InvalidArgumentError(
                f"{self._path!r} has {len(lines)} lines, and vocab_size is {self._count}; leave vocab_size "
                "out to read them all."
            )
        return lines

    def _column(self, lines: list[bytes], index: int, dtype: DType, offset: int) -> Array:
        if index == TextFileIndex.LINE_NUMBER:
            return np.arange(len(lines), dtype=np.int64) + offset
        texts = lines
        if index != TextFileIndex.WHOLE_LINE:
            texts = [self._field(line, index) for line in lines]
        elements = texts if dtype.is_string else [self._number(text, dtype) for text in texts]
        return filled(elements, (len(lines),), dtype)

    def _field(self, line: bytes, index: int) -> bytes:
        fields = line.split(self._delimiter)
        if index >= len(fields):
            raise InvalidArgumentError(
                f"The line {line[:60]!r} of {self._path!r} has {len(fields)} columns, separated by "
                f"{self._delimiter!r}, hence no column {index}; columns are numbered from 0."
            )
        return fields[index]

    def _number(self, text: bytes, dtype: DType) -> Any:
        number = number_in(text, dtype)
        if number is None:
            raise InvalidArgumentError(
                f"{text[:60]!r} in {self._path!r} is not a number of {dtype.name}; choose another column, or "
                "the dtype df.string."
            )
        return number


def _check_index(what: str, index: int, dtype: DType) -> None:
    if index < TextFileIndex.WHOLE_LINE:
        raise InvalidArgumentError(
            f"The {what} are a column of 0 or more, TextFileIndex.WHOLE_LINE or LINE_NUMBER, not {index}."
        )
    if index == TextFileIndex.LINE_NUMBER and dtype is not int64:
        raise DTypeError(f"Line numbers are int64, and the {what} are {dtype.name}; use df.int64.")
    if index == TextFileIndex.WHOLE_LINE and not (dtype.is_string or dtype.is_integer):
        raise DTypeError(f"Whole lines are strings or integers, and the {what} are {dtype.name}.")


def static_array(tensor: Any, what: str) -> Array:
    """The array of a tensor; ``what`` is its part in a static table.

    Raises:
        DTypeError: the tensor is symbolic.
    """
    value = static_value(tensor)
    if value is None:
        raise DTypeError(
            f"The {what} of a static table must have values when it is created; create it outside of the "
            "function, or in df.init_scope, or use df.lookup.experimental.MutableHashTable."
        )
    return value
