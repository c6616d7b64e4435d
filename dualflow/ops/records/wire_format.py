"""The wire format of protocol buffers: fields of a number, a wire type and a value.

A varint has seven bits in each byte, the lowest first; the highest bit of a byte is set if another one
follows. See "Encoding" in the manual of protocol buffers. Data are treated as hostile: every read is within
its bounds, and every mistake is a ValueError with its place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from dualflow.core.convert import Array

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
_NAMES: Final = {VARINT: "varint", FIXED64: "64-bit", BYTES: "length-delimited", FIXED32: "32-bit"}
_MAX_VARINT_BYTES: Final = 10
_WORD: Final = (1 << 64) - 1


class WireField(NamedTuple):
    """A field of a message.

    Attributes:
        number: the field number.
        wire_type: how the value is encoded.
        start: the index of the value's first byte.
        end: the index after its last byte.
    """

    number: int
    wire_type: int
    start: int
    end: int

    def require(self, wire_type: int) -> None:
        """Raise ValueError if the value has another encoding."""
        if self.wire_type != wire_type:
            raise ValueError(
                f"field {self.number} at byte {self.start} is {_NAMES[self.wire_type]}, where a "
                f"{_NAMES[wire_type]} value belongs"
            )


def fields(data: bytes, start: int, end: int) -> Iterator[WireField]:
    """The fields of the message in ``data[start:end]``.

    Raises:
        ValueError: the bytes are no message.
    """
    at = start
    while at < end:
        tag = data[at]
        if tag < 128:
            at += 1
        else:
            tag, at = varint(data, at, end)
        wire_type = tag & 7
        if wire_type == BYTES:
            size = data[at] if at < end else 128
            if size < 128:
                at += 1
            else:
                size, at = varint(data, at, end)
            after = at + size
        elif wire_type == VARINT:
            after = varint(data, at, end)[1]
        elif wire_type in (FIXED32, FIXED64):
            after = at + (4 if wire_type == FIXED32 else 8)
        else:
            raise ValueError(f"the wire type {wire_type} before byte {at} is invalid")
        if after > end:
            raise ValueError(f"a value at byte {at} has {after - at} bytes, of which there are {end - at}")
        if not tag >> 3:
            raise ValueError(f"a field before byte {at} has the number 0")
        yield WireField(tag >> 3, wire_type, at, after)
        at = after


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The varint at ``at``, and the index after it.

    Raises:
        ValueError: it does not end before ``end``, or is longer than 64 bits.
    """
    value = 0
    for i in range(_MAX_VARINT_BYTES):
        if at + i >= end:
            raise ValueError(f"a varint at byte {at} is cut off")
        byte = data[at + i]
        value |= (byte & 127) << 7 * i
        if byte < 128:
            return value & _WORD, at + i + 1
    raise ValueError(f"a varint at byte {at} has more than {_MAX_VARINT_BYTES} bytes")


def varints(data: bytes) -> Array:
    """All varints of ``data``, as int64.

    Raises:
        ValueError: one is cut off or too long.
    """
    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(array < 128)
    if not array.size:
        return np.zeros(0, np.int64)
    if not ends.size or ends[-1] != array.size - 1:
        raise ValueError("a varint is cut off")
    if ends.size == array.size:
        return array.astype(np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - starts + 1
    if sizes.max() > _MAX_VARINT_BYTES:
        raise ValueError(f"a varint has more than {_MAX_VARINT_BYTES} bytes")
    indices = np.arange(array.size) - np.repeat(starts, sizes)
    parts = (array & 127).astype(np.uint64) << (7 * indices).astype(np.uint64)
    return np.bitwise_or.reduceat(parts, starts).view(np.int64)


# writing


def encoded_varint(value: int) -> bytes:
    """``value``, of at most 64 bits, as a varint; negative numbers have ten bytes."""
    value &= _WORD
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def encoded_varints(values: Iterable[int]) -> bytes:
    """``values`` as varints, one after the other."""
    return b"".join(map(encoded_varint, values))


def delimited(number: int, content: bytes) -> bytes:
    """A field of bytes: a string, a message, or packed numbers."""
    return encoded_varint(number << 3 | BYTES) + encoded_varint(len(content)) + content


def varint_field(number: int, value: int) -> bytes:
    """The bytes of a protobuf varint field."""
    return encoded_varint(number << 3 | VARINT) + encoded_varint(value)


def float_bytes(values: Any) -> bytes:
    """Numbers as float32, lowest byte first."""
    return np.asarray(values, "<f4").tobytes()


def float_values(data: bytes) -> list[float]:
    """The numbers of :func:`float_bytes`.

    Raises:
        ValueError: the number of bytes is no multiple of 4.
    """
    if len(data) % 4:
        raise ValueError(f"{len(data)} bytes are no 32-bit floats")
    return list(struct.unpack(f"<{len(data) // 4}f", data))
