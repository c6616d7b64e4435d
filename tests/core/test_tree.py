"""Nested structures: branches and leaves, and that packing is the inverse of flattening."""

from __future__ import annotations

import collections
import dataclasses
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.tree import consists_of, flatten, leaves, map_structure, rebuilder, unflatten

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    left: object
    right: object = None
    default: object = dataclasses.field(init=False, default="by the class")


class Settings:
    """What attrs makes of a class with a public and a private field."""

    __attrs_attrs__ = (
        SimpleNamespace(name="rate", init=True, alias="rate"),
        SimpleNamespace(name="_seed", init=True, alias="seed"),
        SimpleNamespace(name="derived", init=False, alias="derived"),
    )

    def __init__(self, rate, seed):
        self.rate, self._seed, self.derived = rate, seed, (rate, seed)

    def __eq__(self, other):
        return type(other) is Settings and self.derived == other.derived


trees = st.recursive(
    st.integers() | st.none() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Pair, inner, inner)
        | st.builds(Settings, inner, inner)
    ),
    max_leaves=8,
)


@given(trees)
def test_putting_together_is_the_inverse_of_taking_apart(tree):
    flat, structure = flatten(tree)
    assert unflatten(structure, flat) == tree
    assert structure.leaves == len(flat)


@given(trees)
def test_a_prepared_structure_puts_together_the_same_in_new_containers_each_time(tree):
    flat, structure = flatten(tree)
    rebuild = rebuilder(structure)
    first, second = rebuild(tuple(flat)), rebuild(flat)
    assert first == second == tree
    if isinstance(tree, (list, dict)):
        assert first is not second


@given(trees)
def test_equal_structures_have_equal_trees_of_leaves(tree):
    assert flatten(map_structure(lambda x: 0, tree))[1] == flatten(tree)[1]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"b": 1, "a": 2}, [2, 1]),
        (Point(1, [2, 3]), [1, 2, 3]),
        (Pair(1, (2, None)), [1, 2]),
        (Settings(1, 2), [1, 2]),
        (None, []),
        ("text", ["text"]),
        ({1, 2}, [{1, 2}]),
    ],
)
def test_leaves_come_from_left_to_right(tree, expected):
    assert leaves(tree) == expected


@pytest.mark.parametrize("kind", [Point, Pair, Settings])
def test_objects_go_through_functions_as_structures(kind):
    twice = df.function(lambda thing: map_structure(lambda x: x * 2.0, thing))
    for value in (1.0, 3.0):
        result = twice(kind(df.constant(value), df.constant([value])))
        assert type(result) is kind
        assert [x.numpy().tolist() for x in leaves(result)] == [2.0 * value, [2.0 * value]]
    assert twice.experimental_get_tracing_count() == 1


def test_structures_of_different_kinds_are_different_traces():
    f = df.function(lambda thing: leaves(thing)[0])
    one, two = df.constant(1.0), df.constant(2.0)
    things = [kind(one, two) for kind in (Point, Pair, Settings)]
    for thing in [*things, [one, two]]:
        assert float(f(thing)) == 1.0
    assert f.experimental_get_tracing_count() == 4


class Sorted(dict):
    pass


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict, Sorted])
def test_a_dict_keeps_its_type_and_order_and_leaves_go_by_sorted_keys(kind):
    tree = kind([("z", 1), ("a", {"y": 2, "b": 3})])
    flat, structure = flatten(tree)
    built = unflatten(structure, flat)
    assert flat == [3, 2, 1]
    assert type(built) is kind
    assert list(built) == ["z", "a"]
    assert list(built["a"]) == ["y", "b"]
    assert built == tree


def test_a_defaultdict_keeps_its_default():
    built = map_structure(lambda x: -x, collections.defaultdict(list, z=1, a=2))
    assert list(built.items()) == [("z", -1), ("a", -2)]
    assert built["new"] == []


def test_dicts_in_another_order_have_equal_structures():
    one, other = (flatten(tree)[1] for tree in ({"a": 1, "b": [2]}, {"b": [2], "a": 1}))
    assert one == other
    assert hash(one) == hash(other)
    assert one.orders != other.orders


def test_a_tree_consists_of_its_own_leaves_and_of_no_others():
    tree = {"b": [1.5, (2.5, None)], "a": Point(df.constant(1.0), [])}
    flat, structure = flatten(tree)
    assert consists_of(tree, structure, iter(flat))
    assert not consists_of(tree, structure, iter([*flat[:-1], object()]))
    assert not consists_of(tree, structure, iter(flat[:-1]))
    tree["b"].append(3.5)
    assert not consists_of(tree, structure, iter(flat))


def test_a_list_within_itself_consists_of_nothing_else():
    tree: list[object] = [1.5]
    flat, structure = flatten(tree)
    tree[0] = tree
    assert not consists_of(tree, structure, iter(flat))
