"""Equality of constants by type and by bits."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualflow.core.exact_equality import exact

scalars = st.one_of(st.booleans(), st.integers(-3, 3), st.floats(), st.complex_numbers(), st.text(max_size=2))
values = st.recursive(scalars, lambda v: st.tuples(v, v), max_leaves=4)


@given(values)
def test_a_value_equals_its_copy(value):
    copy = pickle.loads(pickle.dumps(value))
    assert exact(value) == exact(copy)
    assert hash(exact(value)) == hash(exact(copy))


@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (1, True), (0.0, -0.0), ((1,), (1.0,)), (1.0, np.float64(1))])
def test_equal_numbers_of_other_types_or_bits_differ(a, b):
    assert exact(a) != exact(b)


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True)
class Record:
    x: Any
    y: Any = 2.0


class Ratio(float):
    pass


HOLDERS = [
    lambda x: Pair(1, x),
    lambda x: (Pair(x, 1),),
    Record,
    lambda x: Record(Pair(1, Record(x))),
    lambda x: frozenset({x, "a"}),
]


@pytest.mark.parametrize("hold", HOLDERS)
@pytest.mark.parametrize(("a", "b"), [(1, True), (1, 1.0), (0.0, -0.0), (Ratio(0.0), Ratio(-0.0))])
def test_containers_differ_as_their_elements_do(hold, a, b):
    assert exact(hold(a)) == exact(hold(a))
    assert hash(exact(hold(a))) == hash(exact(hold(a)))
    assert exact(hold(a)) != exact(hold(b))


def test_nans_of_one_sign_are_equal():
    nan, copy = float("nan"), pickle.loads(pickle.dumps(float("nan")))
    assert exact(Record(nan)) == exact(Record(copy)) != exact(Record(-nan))
    assert exact(complex(0, nan)) == exact(complex(0, copy)) != exact(complex(0, -nan))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Decimal("1.0"), Decimal("1.00")),
        (range(0), range(5, 5)),
        (np.datetime64(1, "s"), np.datetime64(1, "ms")),
    ],
)
def test_equal_values_that_print_differently_differ(a, b):
    assert exact(a) == exact(pickle.loads(pickle.dumps(a)))
    assert exact(a) != exact(b)


def test_arrays_are_the_same_by_dtype_shape_and_bytes():
    x = np.array([0.0, np.nan])
    assert exact(x) == exact(x.copy())
    assert exact(x) != exact(-x)
    assert exact(x) != exact(x[:, None])
    assert exact(np.zeros(2, np.int32)) != exact(np.zeros(2, np.float32))


def test_a_large_array_is_the_same_as_itself_only():
    x = np.zeros(1 << 16)
    assert exact(x) == exact(x)
    assert exact(x) != exact(x.copy())
