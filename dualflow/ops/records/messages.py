"""The base of messages with the methods of protocol buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Self, TypeVar

import numpy as np

from dualflow.core.errors import DTypeError
from dualflow.core.status_errors import DataLossError
from dualflow.core.tracebacks import entry


@entry
class Message:
    """The base of messages: bytes, text, and comparison.

    Subclasses have the methods ``_encoded``, ``_read`` and ``_lines``.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # messages change

    def SerializeToString(self, deterministic: bool = True) -> bytes:
        """The message in the wire format; equal messages have equal bytes."""
        return b"".join(self._encoded())

    def ByteSize(self) -> int:
        """The number of bytes of :meth:`SerializeToString`."""
        return len(self.SerializeToString())

    @classmethod
    @entry
    def FromString(cls, serialized: bytes) -> Self:
        """The message of :meth:`SerializeToString`.

        Raises:
            DataLossError: the bytes are no such message.
            DTypeError: ``serialized`` is no bytes.
        """
        message = cls()
        message.ParseFromString(serialized)
        return message

    def ParseFromString(self, serialized: bytes) -> int:
        """Become the message of these bytes; returns their number. After an error it is unchanged.

        Raises:
            DataLossError: the bytes are no such message.
            DTypeError: ``serialized`` is no bytes.
        """
        data = as_bytes(serialized, f"A {type(self).__name__}")
        message = type(self)()
        message._merge(data)
        self.CopyFrom(message)
        return len(data)

    def MergeFromString(self, serialized: bytes) -> int:
        """Add the content of these bytes; returns their number. See :meth:`ParseFromString`."""
        data = as_bytes(serialized, f"A {type(self).__name__}")
        type(self).FromString(data)  # errors come before changes
        self._merge(data)
        return len(data)

    def _merge(self, data: bytes) -> None:
        try:
            self._read(data, (0, len(data)))
        except ValueError as error:
            raise DataLossError(
                f"Error parsing message: this is no {type(self).__name__}: {error}."
            ) from None

    def MergeFrom(self, other: Self) -> None:
        """Add the content of ``other``: lists are extended, and features with equal keys replaced."""
        self._merge(other.SerializeToString())

    def CopyFrom(self, other: Self) -> None:
        """Become equal to ``other``; nothing is shared."""
        data = other.SerializeToString()
        self.Clear()
        self._merge(data)

    def Clear(self) -> None:
        """Remove all content."""
        raise NotImplementedError

    def _encoded(self) -> Iterator[bytes]:
        raise NotImplementedError

    def _read(self, data: bytes, span: tuple[int, int]) -> None:
        raise NotImplementedError

    def _lines(self) -> Iterator[str]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.SerializeToString() == other.SerializeToString()

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).FromString, (self.SerializeToString(),)


def as_bytes(serialized: Any, what: str) -> bytes:
    if not isinstance(serialized, bytes | bytearray | memoryview):
        raise DTypeError(
            f"{what} is read from bytes, not from a {type(serialized).__name__}; tensor.numpy() is bytes."
        )
    return bytes(serialized)


def indented(name: str, message: Message) -> Iterator[str]:
    yield f"{name} {{"
    for line in message._lines():
        yield f"  {line}"
    yield "}"


V = TypeVar("V")


@entry
class Values(list[V]):
    """A list of values of one type, which are converted when they are added.

    Args:
        convert: returns the value for one that is added.
        changed: is called when one is added or assigned.
    """

    def __init__(self, convert: Callable[[Any], V], changed: Callable[[], None]) -> None:
        super().__init__()
        self._convert = convert
        self._changed = changed

    def append(self, value: V) -> None:
        super().append(self._convert(value))
        self._changed()

    def insert(self, index: Any, value: V) -> None:
        super().insert(index, self._convert(value))
        self._changed()

    def extend(self, values: Iterable[V]) -> None:
        super().extend([self._convert(x) for x in values])
        self._changed()

    def __iadd__(self, values: Iterable[V]) -> Self:  # type: ignore[misc, override]  # as list's
        self.extend(values)
        return self

    @entry
    def __setitem__(self, index: Any, value: Any) -> None:
        several = isinstance(index, slice)
        super().__setitem__(index, [self._convert(x) for x in value] if several else self._convert(value))
        self._changed()

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def nothing() -> None:
    """The ``changed`` callback of a list that belongs to no feature: does nothing."""


def shown(value: Any) -> str:
    if isinstance(value, float):
        return str(np.float32(value)).removesuffix(".0") if np.isfinite(value) else str(value)
    if not isinstance(value, bytes):
        return str(value)
    return '"' + "".join(_ESCAPES.get(c) or (chr(c) if 32 <= c < 127 else f"\\{c:03o}") for c in value) + '"'


_ESCAPES: Final = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}
