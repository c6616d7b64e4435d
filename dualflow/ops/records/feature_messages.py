"""``tf.train.Feature`` and its lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final, Generic, TypeVar

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.records.example_format import KINDS, feature_values
from dualflow.ops.records.messages import Message, Values, indented, nothing, shown
from dualflow.ops.records.wire_format import (
    delimited,
    encoded_varints,
    float_bytes,
    float_values,
    varints,
)

V = TypeVar("V")


class ListMessage(Message, Generic[V]):
    """The base of the lists of a feature.

    Args:
        value: the values.

    Attributes:
        value: the values, a list.
    """

    __slots__ = ("_changed", "value")
    kind: ClassVar[int] = 0

    @entry
    def __init__(self, value: Iterable[V] | None = None) -> None:
        self._changed: Callable[[], None] = nothing
        self.value: Values[V] = Values(type(self)._convert, self._mark)
        if value is not None:
            self.value.extend(value)

    def _mark(self) -> None:
        self._changed()

    @staticmethod
    def _convert(value: Any) -> Any:
        raise NotImplementedError

    def Clear(self) -> None:
        self.value.clear()

    def _read(self, data: bytes, span: tuple[int, int]) -> None:
        content = data[span[0] : span[1]]
        wrapped = delimited(self.kind, content)
        self._add(feature_values(wrapped, (0, len(wrapped))).content)

    def _add(self, content: Any) -> None:
        """Add the content of :class:`FeatureValues`."""
        raise NotImplementedError

    def _lines(self) -> Iterator[str]:
        for value in self.value:
            yield f"value: {shown(value)}"


@entry
class BytesList(ListMessage[bytes]):
    r"""A list of byte strings.

    Args:
        value: bytes.

    Raises:
        DTypeError: a value is no bytes.

    >>> BytesList(value=[b"a\n"]).SerializeToString()
    b'\n\x02a\n'
    """

    __slots__ = ()
    kind = 1

    @staticmethod
    def _convert(value: Any) -> bytes:
        if not isinstance(value, bytes):
            raise DTypeError(
                f"{value!r} has type {type(value).__name__}, but expected one of: bytes. Encode text by "
                ".encode(), and take a tensor's .numpy()."
            )
        return bytes(value)

    def _encoded(self) -> Iterator[bytes]:
        return (delimited(1, x) for x in self.value)

    def _add(self, content: Any) -> None:
        self.value.extend(content)


@entry
class FloatList(ListMessage[float]):
    """A list of numbers of float32.

    Args:
        value: real numbers, which are rounded to float32.

    Raises:
        DTypeError: a value is no number.

    >>> FloatList(value=[0.5, 1]).value
    [0.5, 1.0]
    """

    __slots__ = ()
    kind = 2

    @entry
    def __init__(self, value: Iterable[float] | None = None) -> None:
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "fiub":
            super().__init__()
            list.extend(self.value, value.astype(np.float32).tolist())
        else:
            super().__init__(value)

    @staticmethod
    def _convert(value: Any) -> float:
        if isinstance(value, str | bytes) or not hasattr(value, "__float__") or getattr(value, "ndim", False):
            raise DTypeError(f"{value!r} has type {type(value).__name__}, but expected one of: int, float.")
        with np.errstate(over="ignore"):
            return float(np.float32(float(value)))

    def _encoded(self) -> Iterator[bytes]:
        if self.value:
            yield delimited(1, float_bytes(self.value))

    def _add(self, content: Any) -> None:
        self.value.extend(float_values(content))


@entry
class Int64List(ListMessage[int]):
    """A list of integers of int64.

    Args:
        value: integers.

    Raises:
        DTypeError: a value is no integer.
        InvalidArgumentError: int64 can't hold one.

    >>> Int64List(value=[3, -1]).value
    [3, -1]
    """

    __slots__ = ()
    kind = 3

    @entry
    def __init__(self, value: Iterable[int] | None = None) -> None:
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "ib":
            super().__init__()
            list.extend(self.value, value.astype(np.int64).tolist())
        else:
            super().__init__(value)

    @staticmethod
    def _convert(value: Any) -> int:
        if not hasattr(value, "__index__"):
            raise DTypeError(f"{value!r} has type {type(value).__name__}, but expected one of: int.")
        number = value.__index__()
        if not -(1 << 63) <= number < 1 << 63:
            raise InvalidArgumentError(f"Value out of range: {number} does not fit into int64.")
        return int(number)

    def _encoded(self) -> Iterator[bytes]:
        if self.value:
            yield delimited(1, encoded_varints(self.value))

    def _add(self, content: Any) -> None:
        list.extend(self.value, varints(content).tolist())


_LISTS: Final[dict[str, type[ListMessage[Any]]]] = {
    "bytes_list": BytesList,
    "float_list": FloatList,
    "int64_list": Int64List,
}


@entry
class Feature(Message):
    """A list of strings, of floats, or of integers.

    A list that is read is created; the feature has it once it has a value or is assigned.

    Args:
        bytes_list, float_list, int64_list: the list; one of them.

    >>> feature = Feature(int64_list=Int64List(value=[1, 2]))
    >>> feature.WhichOneof("kind"), feature.int64_list.value
    ('int64_list', [1, 2])
    """

    __slots__ = ("_kind", "_list")

    @entry
    def __init__(
        self,
        bytes_list: BytesList | None = None,
        float_list: FloatList | None = None,
        int64_list: Int64List | None = None,
    ) -> None:
        self._kind: str | None = None
        self._list: ListMessage[Any] | None = None
        for name, values in (
            ("bytes_list", bytes_list),
            ("float_list", float_list),
            ("int64_list", int64_list),
        ):
            if values is not None:
                self._set(name, values)

    @property
    def bytes_list(self) -> BytesList:
        """The list of strings; empty if the feature has another one."""
        return self._get("bytes_list")

    @property
    def float_list(self) -> FloatList:
        """The list of floats; empty if the feature has another one."""
        return self._get("float_list")

    @property
    def int64_list(self) -> Int64List:
        """The list of integers; empty if the feature has another one."""
        return self._get("int64_list")

    def WhichOneof(self, oneof_group: str = "kind") -> str | None:
        """The name of the list that the feature has: "bytes_list", "float_list", "int64_list" or None."""
        if oneof_group != "kind":
            raise InvalidArgumentError(f"A Feature has the oneof 'kind', not {oneof_group!r}.")
        return self._kind

    def HasField(self, field_name: str) -> bool:
        """Whether the feature has the list of this name."""
        if field_name not in _LISTS:
            raise InvalidArgumentError(f"A Feature has no field {field_name!r}; it has {', '.join(_LISTS)}.")
        return self._kind == field_name

    def _get(self, name: str) -> Any:
        if self._kind == name:
            return self._list
        values = _LISTS[name]()
        values._changed = lambda: self._adopt(name, values)
        return values

    def _adopt(self, name: str, values: ListMessage[Any]) -> None:
        values._changed = nothing
        self._kind, self._list = name, values

    def _set(self, name: str, values: Any) -> None:
        if type(values) is not _LISTS[name]:
            raise DTypeError(f"{name} is a {_LISTS[name].__name__}, not a {type(values).__name__}.")
        copied = type(values)()
        list.extend(copied.value, values.value)
        self._adopt(name, copied)

    def Clear(self) -> None:
        self._kind = self._list = None

    def _encoded(self) -> Iterator[bytes]:
        if self._list is not None:
            yield delimited(self._list.kind, self._list.SerializeToString())

    def _read(self, data: bytes, span: tuple[int, int]) -> None:
        kind, content = feature_values(data, span)
        if kind:
            values = _LISTS[KINDS[kind]]()
            values._add(content)
            self._adopt(KINDS[kind], values)

    def _lines(self) -> Iterator[str]:
        if self._list is not None and self._kind is not None:
            yield from indented(self._kind, self._list)
