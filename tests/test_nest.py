"""``df.nest``: packing is the inverse of flattening, and structures that differ are distinguished."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest
from error_cases import ErrorCases
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

nest = df.nest
Pair = collections.namedtuple("Pair", "a b")
SPARSE = df.SparseTensor([[0]], [1.0], [2])
SPARSE_SPEC = df.SparseTensorSpec([2])


@dataclasses.dataclass
class Point:
    """No structure for ``df.nest``."""

    x: int = 0


leaves = st.none() | st.integers() | st.text() | st.just(frozenset({1}))
structures = st.recursive(
    leaves,
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.tuples(parts, parts)
        | st.dictionaries(st.sampled_from("abc"), parts)
        | st.builds(Pair, parts, parts)
    ),
    max_leaves=6,
)


@given(structures)
def test_packing_is_the_inverse_of_flattening(x: Any) -> None:
    flat = nest.flatten(x)
    assert not any(map(nest.is_nested, flat))
    assert nest.pack_sequence_as(x, flat) == x
    assert nest.map_structure(lambda leaf: leaf, x) == x
    nest.assert_same_structure(x, nest.map_structure(lambda _: 0, x))


def test_leaves_come_from_left_to_right_and_by_sorted_key() -> None:
    assert nest.flatten({"b": [1, 2], "a": (3, None)}) == [3, None, 1, 2]
    assert nest.flatten(Pair(1, [2])) == [1, 2]
    assert nest.flatten(5) == [5]


@pytest.mark.parametrize(
    "leaf", [None, "abc", {1, 2}, 1, np.ones(2), df.ones([2]), SPARSE, SPARSE_SPEC, Point()]
)
def test_a_leaf_is_no_structure(leaf: Any) -> None:
    assert not nest.is_nested(leaf)
    assert nest.flatten(leaf)[0] is leaf


@pytest.mark.parametrize("value", [[], (), {}, Pair(1, 2), range(3), {}.values(), collections.OrderedDict()])
def test_a_structure_may_be_empty(value: Any) -> None:
    assert nest.is_nested(value)


def test_composites_are_opened_where_that_is_requested() -> None:
    flat = nest.flatten([SPARSE, 3], expand_composites=True)
    assert flat[0] is SPARSE.indices
    assert flat[1] is SPARSE.values
    assert flat[-1] == 3
    doubled = nest.map_structure(lambda x: x * 2, [SPARSE], expand_composites=True)
    assert doubled[0].values.numpy().tolist() == [2.0]


def test_a_function_of_leaves_of_several_structures() -> None:
    assert nest.map_structure(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]}) == {"a": [11, 22]}
    assert nest.map_structure(lambda x, y: x + y, [1, 2], (10, 20), check_types=False) == [11, 22]


def test_structures_that_are_alike() -> None:
    nest.assert_same_structure([1, (2, 3)], [4, (5, 6)])
    nest.assert_same_structure([1], (1,), check_types=False)
    nest.assert_same_structure({"a": 1}, collections.OrderedDict(a=1))


def test_composites_of_any_size_are_alike() -> None:
    short, long = df.ragged.constant([[1]]), df.ragged.constant([[1, 2], [3]])
    nest.assert_same_structure(short, long, expand_composites=True)
    with pytest.raises(DTypeError, match="differ"):
        nest.assert_same_structure(short, SPARSE, expand_composites=True)


CASES: dict[str, tuple[Any, type[Exception], str, str]] = {
    "no function": (lambda: nest.map_structure(3, [1]), DTypeError, "got: 3", "the function first"),
    "no structure": (
        lambda: nest.map_structure(abs),
        InvalidArgumentError,
        "at least one structure",
        "after the function",
    ),
    "another keyword": (
        lambda: nest.map_structure(abs, [1], strict=True),
        InvalidArgumentError,
        r"not: \['strict'\]",
        "functools.partial",
    ),
    "a number to pack": (lambda: nest.pack_sequence_as([0], 5), DTypeError, "not 5", "a list or a tuple"),
    "too few to pack": (
        lambda: nest.pack_sequence_as([0, 0], [1]),
        InvalidArgumentError,
        "had 2 atoms",
        "had 1 items",
    ),
    "lengths": (
        lambda: nest.assert_same_structure([1, 2], [3]),
        InvalidArgumentError,
        "2 and 1 elements",
        r"\[3\]",
    ),
    "depths": (
        lambda: nest.assert_same_structure([1, [2]], [3, 4]),
        InvalidArgumentError,
        "the other has a leaf",
        r"\[1, \[2\]\]",
    ),
    "keys": (
        lambda: nest.assert_same_structure({"a": 1}, {"b": 1}),
        InvalidArgumentError,
        "the keys",
        r"\('b',\)",
    ),
    "kinds": (
        lambda: nest.assert_same_structure([1], (1,)),
        DTypeError,
        "list and tuple differ",
        "check_types",
    ),
    "kinds of records": (
        lambda: nest.assert_same_structure(Pair(1, 2), (1, 2)),
        DTypeError,
        "Pair",
        "check_types",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("nest.py",)
