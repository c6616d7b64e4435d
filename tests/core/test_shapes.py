"""Shapes of which sizes, or even the number of axes, are unknown."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import dualflow as df

UNKNOWN = df.TensorShape(None)


def test_there_is_one_unknown_shape() -> None:
    assert df.TensorSpec(None).shape is UNKNOWN
    for again in (copy.copy(UNKNOWN), copy.deepcopy([UNKNOWN])[0], pickle.loads(pickle.dumps(UNKNOWN))):
        assert again is UNKNOWN


@pytest.mark.parametrize("dims", [[], [2], [None, 3]])
def test_known_shapes_are_copied_and_pickled(dims: list[int | None]) -> None:
    shape = df.TensorShape(dims)
    for again in (copy.deepcopy(shape), pickle.loads(pickle.dumps(shape))):
        assert again == shape == dims
        assert type(again) is type(shape)


def test_nothing_is_known_of_it() -> None:
    assert (UNKNOWN.rank, UNKNOWN.ndims, UNKNOWN.dims, UNKNOWN.num_elements()) == (None, None, None, None)
    assert not UNKNOWN.is_fully_defined()
    assert not UNKNOWN.is_static
    assert not UNKNOWN
    assert (repr(UNKNOWN), str(df.TensorSpec(None, df.int32))) == ("<unknown>", "int32[...]")


@pytest.mark.parametrize(
    "ask",
    [len, list, tuple, lambda s: s[0], lambda s: 1 in s, lambda s: s.as_list(), lambda s: s.__add__([1])],
    ids=["len", "list", "tuple", "item", "in", "as_list", "+"],
)
def test_what_asks_for_sizes_is_refused(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="rank of a tensor is unknown where it is asked for"):
        ask(UNKNOWN)


@pytest.mark.parametrize("other", [df.TensorShape([]), (), [], (None,), [2], None, "<unknown>"], ids=repr)
def test_it_equals_no_other(other: Any) -> None:
    for x, y in [(other, UNKNOWN), (UNKNOWN, other)]:
        assert (x == y, x != y) == (False, True)


def test_a_spec_of_unknown_rank_takes_every_shape_of_its_dtype() -> None:
    spec = df.TensorSpec(None)
    assert [spec.is_compatible_with(df.ones(s)) for s in ([], [2], [2, 3])] == [True] * 3
    assert spec.is_compatible_with(df.TensorSpec(None))
    assert not spec.is_compatible_with(df.constant([1]))
    assert not df.TensorSpec([2]).is_compatible_with(spec)
