"""Named tuples and dataclasses that behave as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

from dualflow.core import records
from dualflow.core.exact_equality import exact

T = TypeVar("T")


class Pair(records.NamedTuple):
    """Two numbers."""

    first: int
    second: int = 2

    @property
    def total(self) -> int:
        return self.first + self.second


class StandardPair(typing.NamedTuple):
    first: int
    second: int = 2


class Box(records.NamedTuple, Generic[T]):
    content: T


class Empty(records.NamedTuple):
    pass


@records.dataclass(frozen=True, slots=True)
class Point:
    """A place."""

    x: float
    y: float = 0.0
    tags: list[str] = records.field(default_factory=list, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class StandardPoint:
    x: float
    y: float = 0.0
    tags: list[str] = dataclasses.field(default_factory=list, compare=False, repr=False)


@records.dataclass(frozen=True, slots=True)
class Point3(Point):
    z: float = 1.0
    norm: float = records.field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", abs(self.x) + abs(self.y) + abs(self.z))


@records.dataclass(slots=True)
class Counter:
    count: int = 0


@records.dataclass(frozen=True, slots=True, eq=False)
class Token:
    name: str


BOTH_PAIRS = pytest.mark.parametrize("cls", [Pair, StandardPair])
BOTH_POINTS = pytest.mark.parametrize("cls", [Point, StandardPoint])


@BOTH_PAIRS
def test_named_tuple_takes_arguments_by_place_and_by_name(cls: Any) -> None:
    assert cls(1) == cls(first=1) == cls(1, second=2) == (1, 2)


@BOTH_PAIRS
@pytest.mark.parametrize(
    "call",
    [
        lambda cls: cls(),
        lambda cls: cls(1, 2, 3),
        lambda cls: cls(1, third=3),
        lambda cls: cls._make([1]),
    ],
)
def test_named_tuple_refuses_other_arguments(cls: Any, call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        call(cls)


@BOTH_PAIRS
def test_named_tuple_has_fields(cls: Any) -> None:
    pair = cls(1, 5)
    assert (pair.first, pair.second) == (1, 5)
    assert (cls._fields, cls._field_defaults) == (("first", "second"), {"second": 2})
    assert pair._asdict() == {"first": 1, "second": 5}


@BOTH_PAIRS
def test_named_tuple_replaces_fields(cls: Any) -> None:
    assert cls(1, 5)._replace(first=3) == (3, 5)
    with pytest.raises((TypeError, ValueError), match="third"):  # 3.13's own raises TypeError
        cls(1)._replace(third=3)


@pytest.mark.skipif(not hasattr(copy, "replace"), reason="Python 3.13 has it")
@pytest.mark.parametrize("record", [Pair(1, 5), StandardPair(1, 5), Point(1, 5), StandardPoint(1, 5)])
def test_copy_replaces_a_field(record: Any) -> None:
    name = record.__match_args__[1]
    assert getattr(copy.replace(record, **{name: 7}), name) == 7


@BOTH_PAIRS
def test_named_tuple_is_shown_with_its_fields(cls: Any) -> None:
    assert repr(cls(1)) == f"{cls.__name__}(first=1, second=2)"


@BOTH_PAIRS
def test_named_tuple_matches_patterns(cls: Any) -> None:
    match cls(1):
        case cls(first, second=2):
            assert first == 1
        case other:
            pytest.fail(repr(other))


@BOTH_PAIRS
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_named_tuple_is_copied_with_its_type(cls: Any, copied: Callable[[Any], Any]) -> None:
    assert (type(copied(cls(1))), copied(cls(1))) == (cls, (1, 2))


@BOTH_PAIRS
def test_named_tuple_takes_no_other_attributes(cls: Any) -> None:
    with pytest.raises(AttributeError):
        cls(1).third = 3
    with pytest.raises(AttributeError):
        cls(1).first = 3


def test_named_tuple_has_methods_and_a_docstring() -> None:
    assert (Pair(1).total, Pair.__doc__) == (3, "Two numbers.")


def test_named_tuple_may_be_generic_or_empty() -> None:
    assert (Box(1).content, Box[int]("a").content, Empty()) == (1, "a", ())


def test_named_tuple_may_be_derived_from() -> None:
    class Named(Pair):
        __slots__ = ()

    assert type(Named(1)) is Named
    assert type(Pair(1)) is Pair


def test_class_of_a_named_tuple_has_the_usual_metaclass() -> None:
    assert type(Pair) is type
    assert issubclass(Pair, tuple)


@BOTH_POINTS
def test_dataclass_takes_arguments_by_place_and_by_name(cls: Any) -> None:
    point = cls(1.0, y=2.0)
    assert (point.x, point.y, point.tags) == (1.0, 2.0, [])


@BOTH_POINTS
@pytest.mark.parametrize("call", [lambda cls: cls(), lambda cls: cls(1, z=3), lambda cls: cls(1, 2, [], 4)])
def test_dataclass_refuses_other_arguments(cls: Any, call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        call(cls)


@BOTH_POINTS
def test_dataclass_makes_a_default_for_each_instance(cls: Any) -> None:
    assert cls(1).tags is not cls(1).tags


@BOTH_POINTS
def test_dataclass_compares_and_hashes_its_compared_fields(cls: Any) -> None:
    assert cls(1, tags=["a"]) == cls(1, tags=["b"])
    assert hash(cls(1, tags=["a"])) == hash(cls(1, tags=["b"]))
    assert cls(1) != cls(2)
    assert cls(1) != (1, 0.0)


def test_dataclasses_of_two_classes_are_not_equal() -> None:
    assert Point(1) != StandardPoint(1)
    assert Point3(1) != Point(1)


@BOTH_POINTS
def test_frozen_dataclass_stays_as_it_is(cls: Any) -> None:
    point = cls(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert point.x == 1


@BOTH_POINTS
def test_dataclass_has_slots(cls: Any) -> None:
    assert not hasattr(cls(1), "__dict__")


@BOTH_POINTS
def test_dataclass_is_shown_with_its_fields(cls: Any) -> None:
    assert repr(cls(1.0)) == f"{cls.__name__}(x=1.0, y=0.0)"


@BOTH_POINTS
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_dataclass_is_copied(cls: Any, copied: Callable[[Any], Any]) -> None:
    duplicate = copied(cls(1.0, 2.0, ["a"]))
    assert (type(duplicate), duplicate.x, duplicate.y, duplicate.tags) == (cls, 1.0, 2.0, ["a"])


@BOTH_POINTS
@pytest.mark.parametrize("replace", [dataclasses.replace, records.replace])
def test_dataclass_replaces_fields(cls: Any, replace: Callable[..., Any]) -> None:
    replaced = replace(cls(1.0, 2.0), y=3.0)
    assert (type(replaced), replaced.x, replaced.y) == (cls, 1.0, 3.0)
    with pytest.raises(TypeError):
        replace(replaced, z=1)


@BOTH_POINTS
def test_functions_of_the_standard_library_see_a_dataclass(cls: Any) -> None:
    assert dataclasses.is_dataclass(cls)
    assert [f.name for f in dataclasses.fields(cls)] == ["x", "y", "tags"]
    assert dataclasses.asdict(cls(1.0)) == {"x": 1.0, "y": 0.0, "tags": []}


@BOTH_POINTS
def test_standard_library_sees_the_options_of_a_dataclass(cls: Any) -> None:
    params = cls.__dataclass_params__
    options = ("init", "repr", "eq", "order", "unsafe_hash", "frozen")
    assert [getattr(params, name) for name in options] == [True, True, True, False, False, True]


@BOTH_POINTS
def test_graphs_compare_dataclasses_bit_by_bit(cls: Any) -> None:
    assert exact(cls(0.0)) == exact(cls(0.0, tags=["not compared"]))
    assert exact(cls(0.0)) != exact(cls(-0.0))


def test_the_constructor_of_a_dataclass_has_the_types_of_its_fields() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: float = 0.0

    assert Point(1).y == 0.0
    assert inspect.get_annotations(Point.__init__) == {"x": "int", "y": "float"}


def test_dataclass_inherits_fields() -> None:
    assert repr(Point3(1.0)) == "Point3(x=1.0, y=0.0, z=1.0, norm=2.0)"
    assert records.replace(Point3(1.0), z=2.0).norm == 3.0
    assert [f.name for f in dataclasses.fields(Point3)] == ["x", "y", "tags", "z", "norm"]


def test_dataclass_that_is_not_frozen_changes_and_has_no_hash() -> None:
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError):
        hash(counter)


def test_dataclass_without_equality_is_compared_by_identity() -> None:
    token = Token("a")
    assert token == token
    assert token != Token("a")
    assert len({token, Token("a")}) == 2


def test_dataclass_keeps_its_docstring_and_name() -> None:
    assert (Point.__doc__, Point.__qualname__, Point.__module__) == ("A place.", "Point", __name__)


def test_class_that_records_cannot_define_is_refused() -> None:
    annotations = {f"x{i}": "int" for i in range(33)}
    with pytest.raises(TypeError, match="more than 32 fields"):
        type(records.NamedTuple)("Wide", (records.NamedTuple,), {"__annotations__": annotations})
    with pytest.raises(TypeError, match="has slots"):
        records.dataclass(slots=False)
