"""Tables in text: the fields of lines that commas separate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array, as_array
from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import DType, as_dtype, float32, float64, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.samples import Sample
from dualflow.ops.static import ints, static_value
from dualflow.ops.text.mapping import filled, of_strings, text_op, words
from dualflow.ops.text.numbers import number_in

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike

_KINDS: Final = (float32, float64, int32, int64, string)
_BREAKS: Final = (b"\n", b"\r")


def _fields(line: bytes, delimiter: bytes, quotes: bool) -> list[bytes]:
    """The fields of one line."""
    fields, unread = [], line
    while line:
        if quotes and unread.startswith(b'"'):
            field, unread = _quoted(unread)
            if unread and not unread.startswith(delimiter):
                raise InvalidArgumentError("Quote inside a string has to be escaped by another quote")
        else:
            field, separator, following = unread.partition(delimiter)
            unread = separator + following
            if any(b in field for b in _BREAKS) or (quotes and b'"' in field):
                raise InvalidArgumentError("Unquoted fields cannot have quotes/CRLFs inside")
        fields.append(field)
        if not unread:
            break
        unread = unread[1:]
    return fields


def _quoted(text: bytes) -> tuple[bytes, bytes]:
    """A quoted field at the start of a line, in which two quotes are one, and the text after it."""
    at = 1
    while True:
        end = text.find(b'"', at)
        if end < 0:
            raise InvalidArgumentError("Quoted field has to end with quote followed by delim or end")
        if text[end + 1 : end + 2] != b'"':
            return text[1:end].replace(b'""', b'"'), text[end + 1 :]
        at = end + 2


def _columns(
    records: Array,
    *,
    defaults: tuple[Any, ...],
    dtypes: tuple[DType, ...],
    delimiter: bytes,
    quotes: bool,
    missing: bytes,
    columns: tuple[int, ...] | None,
) -> tuple[Array, ...]:
    rows: list[list[Any]] = [[] for _ in dtypes]
    for i, line in enumerate(records.ravel().tolist()):
        try:
            fields = _selected_columns(_fields(line, delimiter, quotes), columns, len(dtypes))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"decode_csv: {error} in record {i}: {line!r}.") from None
        for j, (field, dtype) in enumerate(zip(fields, dtypes, strict=True)):
            rows[j].append(_value(field, dtype, defaults[j], missing, (j, i)))
    with np.errstate(over="ignore"):
        return tuple([filled(row, records.shape, dtype) for row, dtype in zip(rows, dtypes, strict=True)])


def _selected_columns(fields: list[bytes], columns: tuple[int, ...] | None, count: int) -> list[bytes]:
    if columns is not None:
        fields = [fields[c] for c in columns if c < len(fields)]
    if len(fields) != count:
        raise InvalidArgumentError(f"Expect {count} fields but have {len(fields)}")
    return fields


def _value(field: bytes, dtype: DType, default: Any, missing: bytes, position: tuple[int, int]) -> Any:
    if not field or field == missing:
        if default is None:
            raise InvalidArgumentError(
                f"decode_csv: Field {position[0]} is required but missing in record {position[1]}; "
                "give a default."
            )
        return default
    if dtype.is_string:
        return field
    number = number_in(field, dtype)
    if number is None:
        raise InvalidArgumentError(
            f"decode_csv: Field {position[0]} in record {position[1]} is not a valid {dtype.name}: {field!r}."
        )
    return number


_DECODE: Final = text_op(
    "decode_csv",
    "The columns of a table whose rows are lines of text.",
    infer=lambda records, *, dtypes, **attrs: tuple([TensorSpec.of(records.shape, t) for t in dtypes]),
    kernel=_columns,
    outputs=None,
    samples=[
        Sample(
            (words("1,2.5,a", '3,,"b,c"'),),
            {
                "defaults": (0, 7.5, b""),
                "dtypes": (int32, float32, string),
                "delimiter": b",",
                "quotes": True,
                "missing": b"",
                "columns": None,
            },
        )
    ],
)


def decode_csv(
    records: TensorLike,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    name: str | None = None,
    select_cols: Sequence[int] | None = None,
) -> list[Any]:
    """The columns of a table whose rows are strings.

    Args:
        records: lines of text, without the characters that end them, of any shape.
        record_defaults: for each column the value of an empty field, whose dtype is that of the column:
            float32, float64, int32, int64 or string. A scalar or a list of one; an empty tensor if fields
            must not be empty.
        field_delim: the character between fields.
        use_quote_delim: whether fields may be in double quotes, in which two of them are one.
        na_value: another text for an empty field.
        select_cols: the ascending indices of the columns to read; None for all.

    Returns:
        A list with a tensor for each column, with the shape of ``records`` and the dtype of its default.

    Raises:
        InvalidArgumentError: a record has another number of fields, a field is not a number of its column's
            dtype, quotes are wrong, or a field without a default is empty; the message names the record.
        DTypeError: a default has another dtype.

    >>> import dualflow as df
    >>> ages, names = df.io.decode_csv(["7,Ann", ",Bob"], [[0], [""]])
    >>> ages.numpy(), names.numpy()
    (array([7, 0], dtype=int32), array([b'Ann', b'Bob'], dtype=object))
    """
    delimiter = field_delim.encode()
    if len(delimiter) != 1:
        raise InvalidArgumentError(f"field_delim is one character, not {field_delim!r}.")
    columns = None if select_cols is None else ints(select_cols, "select_cols")
    if columns is not None and len(columns) != len(record_defaults):
        raise InvalidArgumentError(
            f"There are {len(columns)} select_cols and {len(record_defaults)} record_defaults; give one "
            "default for each column."
        )
    if columns is not None and any(b <= a for a, b in zip((-1, *columns), columns, strict=False)):
        raise InvalidArgumentError(f"select_cols grow from 0 on, which {columns} do not.")
    defaults = [_default(x, i) for i, x in enumerate(record_defaults)]
    attrs = {
        "defaults": tuple([value for value, _ in defaults]),
        "dtypes": tuple([dtype for _, dtype in defaults]),
        "delimiter": delimiter,
        "quotes": bool(use_quote_delim),
        "missing": na_value.encode(),
        "columns": columns,
    }
    return list(dispatch.current().apply(_DECODE, (of_strings(records, "decode_csv"),), attrs))


def _default(value: Any, column_index: int) -> tuple[Any, DType]:
    """The default of a column, None where it has none, and the column's dtype."""
    array = static_value(value) if isinstance(value, TENSORS) else as_array(value)
    if array is None or array.size > 1 or array.ndim > 1:
        raise InvalidArgumentError(
            f"The default of column {column_index} is one value, known while tracing, not {value!r}."
        )
    dtype = as_dtype(array.dtype)
    if dtype not in _KINDS:
        names = ", ".join(t.name for t in _KINDS)
        raise DTypeError(f"Columns are of {names}; the default of column {column_index} is of {dtype.name}.")
    return (array.item() if array.size else None), dtype
