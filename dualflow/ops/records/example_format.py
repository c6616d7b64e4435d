"""The content of serialised ``Example`` messages, without objects for their parts.

    Example          {features: 1 Features}
    SequenceExample  {context: 1 Features, feature_lists: 2 FeatureLists}
    Features         {1: {key: 1, value: 2 Feature}, ...}
    FeatureLists     {1: {key: 1, value: 2 FeatureList}, ...}
    FeatureList      {1: Feature, ...}
    Feature          {1: {1: bytes, ...} or 2: {1: floats} or 3: {1: varints}}

Numbers of a list may be packed in one field or be fields of their own; either way the bytes of the numbers
follow each other. So a feature of numbers is a byte string here, and those of a batch are decoded together.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from dualflow.ops.records.wire_format import BYTES, FIXED32, VARINT, fields

STRING: Final = 1
FLOAT: Final = 2
INT64: Final = 3
KINDS: Final = {STRING: "bytes_list", FLOAT: "float_list", INT64: "int64_list"}
"""The names of the kinds of features, by the field numbers in ``Feature``."""
_WIRE_TYPES: Final = {FLOAT: FIXED32, INT64: VARINT}


class FeatureValues(NamedTuple):
    """The kind and the content of the list of a feature.

    Attributes:
        kind: ``STRING``, ``FLOAT`` or ``INT64``; 0 for a feature without a list.
        content: the strings, or the bytes of all numbers.
    """

    kind: int
    content: list[bytes] | bytes


EMPTY: Final = FeatureValues(0, b"")
_KEY: Final = 1 << 3 | BYTES
_VALUE: Final = 2 << 3 | BYTES
Span = tuple[int, int]
"""Where a message begins and ends."""


def message_field(data: bytes, span: Span, number: int) -> Iterator[Span]:
    """The messages in field ``number`` of the message at ``span``.

    Raises:
        ValueError: the bytes are no such message.
    """
    for field in fields(data, *span):
        if field.number == number:
            field.require(BYTES)
            yield field.start, field.end


def entries(data: bytes, span: Span, keys: Container[bytes] | None = None) -> dict[bytes, Span]:
    """The values of a map from strings to messages, by their keys; the last one of each key.

    Args:
        data: the bytes.
        span: of the message ``Features`` or ``FeatureLists``.
        keys: the keys to return; None for all.

    Raises:
        ValueError: the bytes are no such message.
    """
    values: dict[bytes, Span] = {}
    for start, end in message_field(data, span, 1):
        key, value = _plain_entry(data, start, end) or _entry(data, start, end)
        if keys is None or key in keys:
            values[key] = value
    return values


def _entry(data: bytes, start: int, end: int) -> tuple[bytes, Span]:
    key, value = b"", (end, end)
    for field in fields(data, start, end):
        if field.number in (1, 2):
            field.require(BYTES)
            if field.number == 1:
                key = data[field.start : field.end]
            else:
                value = field.start, field.end
    return key, value


def _plain_entry(data: bytes, start: int, end: int) -> tuple[bytes, Span] | None:
    """The key and value of an entry that has just these, in this order; None for any other, and long keys.

    Nearly all entries are such; this takes a third of the time of :func:`_entry`.
    """
    if end - start < 4 or data[start] != _KEY or data[start + 1] > 127:
        return None
    after = start + 2 + data[start + 1]
    if after >= end or data[after] != _VALUE:
        return None
    content = _only_field(data, after, end)
    return None if content is None else (data[start + 2 : after], (content, end))


def _only_field(data: bytes, start: int, end: int) -> int | None:
    """The start of the content of a field of bytes that is all of ``data[start:end]``; None for any other.

    The field has a number below 16 and less than 16,384 bytes.
    """
    if end - start < 2 or data[start] & 0x87 != BYTES:
        return None
    size, at = data[start + 1], start + 2
    if size > 127:
        if at >= end or data[at] > 127:
            return None
        size, at = size & 127 | data[at] << 7, at + 1
    return at if at + size == end else None


def feature_values(data: bytes, span: Span) -> FeatureValues:
    """The list of the feature at ``span``.

    Raises:
        ValueError: the bytes are no feature.
    """
    start, end = span
    content_start = _only_field(data, start, end)
    if content_start is not None and data[start] >> 3 in KINDS:
        kind = data[start] >> 3
        return FeatureValues(kind, _content(data, (content_start, end), kind))
    values = EMPTY
    for field in fields(data, start, end):
        if field.number in KINDS:
            field.require(BYTES)
            content = _content(data, (field.start, field.end), field.number)
            values = FeatureValues(field.number, content)
    return values


def _content(data: bytes, span: Span, kind: int) -> list[bytes] | bytes:
    start = _only_field(data, *span)
    if start is not None and data[span[0]] == _KEY:
        only = data[start : span[1]]
        return [only] if kind == STRING else _checked(only, kind, start)
    if kind == STRING:
        return [data[start:end] for start, end in message_field(data, span, 1)]
    parts = []
    for field in fields(data, *span):
        if field.number == 1:
            if field.wire_type != BYTES:
                field.require(_WIRE_TYPES[kind])
            parts.append(_checked(data[field.start : field.end], kind, field.start))
    return b"".join(parts)


def _checked(numbers: bytes, kind: int, start: int) -> bytes:
    """The bytes of packed numbers; an error if the last number is cut off."""
    if kind == FLOAT and len(numbers) % 4:
        raise ValueError(f"the floats at byte {start} have {len(numbers)} bytes")
    if kind == INT64 and numbers and numbers[-1] > 127:
        raise ValueError(f"the integers at byte {start} end within a varint")
    return numbers


def features_of(data: bytes, keys: Container[bytes] | None = None, number: int = 1) -> dict[bytes, Span]:
    """The entries of the maps in field ``number`` of a message; see :func:`entries`.

    In an ``Example``, and in the context of a ``SequenceExample``, field 1 has features; in a
    ``SequenceExample`` field 2 has lists of features.

    Raises:
        ValueError: the bytes are no such message.
    """
    values: dict[bytes, Span] = {}
    for span in message_field(data, (0, len(data)), number):
        values.update(entries(data, span, keys))
    return values
