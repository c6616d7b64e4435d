"""``tf.train.Example`` and ``SequenceExample``, and their maps of features."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import entry
from dualflow.ops.records.example_format import entries, message_field
from dualflow.ops.records.feature_messages import BytesList as BytesList
from dualflow.ops.records.feature_messages import Feature as Feature
from dualflow.ops.records.feature_messages import FloatList as FloatList
from dualflow.ops.records.feature_messages import Int64List as Int64List
from dualflow.ops.records.messages import Message, Values, indented, nothing, shown
from dualflow.ops.records.wire_format import delimited

M = TypeVar("M", bound=Message)


class _Map(defaultdict[str, M]):
    """A map from strings to messages; a key that is read is added, as in protocol buffers."""

    @entry
    def __init__(self, message: type[M]) -> None:
        super().__init__(message)
        self._message = message

    @entry
    def __setitem__(self, key: str, value: M) -> None:
        if not isinstance(key, str):
            raise DTypeError(f"The names of features are str, not {key!r}.")
        if type(value) is not self._message:
            raise DTypeError(f"{key!r} is a {type(value).__name__}, not a {self._message.__name__}.")
        super().__setitem__(key, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class MapMessage(Message, Generic[M]):
    """The base of messages with one map from names to messages."""

    __slots__ = ("_map",)
    _name: ClassVar[str]
    _item: ClassVar[type[Message]]

    def _fill(self, items: Mapping[str, M] | None) -> None:
        self._map: _Map[M] = _Map(type(self)._item)  # type: ignore[arg-type]  # M is this class
        for name, message in (items or {}).items():
            self._map[name] = message

    def Clear(self) -> None:
        self._map.clear()

    def _encoded(self) -> Iterator[bytes]:
        for name in sorted(self._map):
            yield delimited(
                1, delimited(1, name.encode()) + delimited(2, self._map[name].SerializeToString())
            )

    def _read(self, data: bytes, span: tuple[int, int]) -> None:
        for key, span_of_field in entries(data, span).items():
            message = type(self)._item()
            message._read(data, span_of_field)
            self._map[key.decode()] = message  # type: ignore[assignment]  # M is this class

    def _lines(self) -> Iterator[str]:
        for name in sorted(self._map):
            yield f"{self._name} {{"
            yield f"  key: {shown(name.encode())}"
            for line in indented("value", self._map[name]):
                yield f"  {line}"
            yield "}"


@entry
class Features(MapMessage[Feature]):
    """A mapping from names to features.

    Args:
        feature: the features.

    >>> features = Features(feature={"n": Feature(int64_list=Int64List(value=[1]))})
    >>> features.feature["x"].float_list.value.append(0.5)
    >>> sorted(features.feature)
    ['n', 'x']
    """

    __slots__ = ()
    _name = "feature"
    _item = Feature

    @entry
    def __init__(self, feature: Mapping[str, Feature] | None = None) -> None:
        self._fill(feature)

    @property
    def feature(self) -> dict[str, Feature]:
        """The features by their names."""
        return self._map


class _FeatureValues(Values[Feature]):
    """A list of features, with ``add``."""

    def add(self, **lists: Any) -> Feature:
        """Append a new feature with the arguments of :class:`Feature`, and return it."""
        feature = Feature(**lists)
        list.append(self, feature)
        return feature


@entry
class FeatureList(Message):
    """A list of features, those of the steps of a sequence.

    Args:
        feature: the features.

    >>> steps = FeatureList()
    >>> steps.feature.add().int64_list.value.append(7)
    >>> len(steps.feature)
    1
    """

    __slots__ = ("feature",)

    @entry
    def __init__(self, feature: Iterable[Feature] | None = None) -> None:
        self.feature = _FeatureValues(_as_feature, nothing)
        self.feature.extend(feature or ())

    def Clear(self) -> None:
        self.feature.clear()

    def _encoded(self) -> Iterator[bytes]:
        return (delimited(1, feature.SerializeToString()) for feature in self.feature)

    def _read(self, data: bytes, span: tuple[int, int]) -> None:
        for span_of_field in message_field(data, span, 1):
            self.feature.add()._read(data, span_of_field)

    def _lines(self) -> Iterator[str]:
        for feature in self.feature:
            yield from indented("feature", feature)


def _as_feature(value: Any) -> Feature:
    if type(value) is not Feature:
        raise DTypeError(f"A FeatureList has Features, not a {type(value).__name__}.")
    return value


@entry
class FeatureLists(MapMessage[FeatureList]):
    """Lists of features by their names.

    Args:
        feature_list: the lists.
    """

    __slots__ = ()
    _name = "feature_list"
    _item = FeatureList

    @entry
    def __init__(self, feature_list: Mapping[str, FeatureList] | None = None) -> None:
        self._fill(feature_list)

    @property
    def feature_list(self) -> dict[str, FeatureList]:
        """The lists by their names."""
        return self._map


class _Parts(Message):
    """The base of messages that consist of other messages, in fields 1, 2, ..."""

    __slots__ = ()
    _fields: ClassVar[tuple[tuple[str, type[Message]], ...]]

    def _fill(self, *parts: Message | None) -> None:
        for (name, kind), part in zip(self._fields, parts, strict=True):
            if part is not None and type(part) is not kind:
                raise DTypeError(f"{name} is a {kind.__name__}, not a {type(part).__name__}.")
            setattr(self, name, kind() if part is None else kind.FromString(part.SerializeToString()))

    def Clear(self) -> None:
        for name, _ in self._fields:
            getattr(self, name).Clear()

    def _encoded(self) -> Iterator[bytes]:
        for number, (name, _) in enumerate(self._fields, 1):
            content = getattr(self, name).SerializeToString()
            if content:
                yield delimited(number, content)

    def _read(self, data: bytes, span: tuple[int, int]) -> None:
        for number, (name, _) in enumerate(self._fields, 1):
            for span_of_field in message_field(data, span, number):
                getattr(self, name)._read(data, span_of_field)

    def _lines(self) -> Iterator[str]:
        for name, _ in self._fields:
            part = getattr(self, name)
            if part.ByteSize():
                yield from indented(name, part)


@entry
class Example(_Parts):
    """The features of one example, as records of TFRecord files have them.

    Args:
        features: the features.

    >>> example = Example(features=Features(feature={"n": Feature(int64_list=Int64List(value=[1]))}))
    >>> print(Example.FromString(example.SerializeToString()))
    features {
      feature {
        key: "n"
        value {
          int64_list {
            value: 1
          }
        }
      }
    }
    <BLANKLINE>
    """

    __slots__ = ("features",)
    features: Features
    _fields = (("features", Features),)

    @entry
    def __init__(self, features: Features | None = None) -> None:
        self._fill(features)


@entry
class SequenceExample(_Parts):
    """The features of a sequence, and those of its steps.

    Args:
        context: the features of the whole sequence.
        feature_lists: a feature for each step, by name.

    >>> example = SequenceExample()
    >>> example.feature_lists.feature_list["word"].feature.add().int64_list.value.append(7)
    >>> example.ByteSize()
    19
    """

    __slots__ = ("context", "feature_lists")
    context: Features
    feature_lists: FeatureLists
    _fields = (("context", Features), ("feature_lists", FeatureLists))

    @entry
    def __init__(self, context: Features | None = None, feature_lists: FeatureLists | None = None) -> None:
        self._fill(context, feature_lists)
