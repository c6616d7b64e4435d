"""Sizes as TensorFlow 1 has them: unknown ones stay unknown through arithmetic and comparison."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
from error_cases import ErrorCases
from hypothesis import given
from hypothesis import strategies as st

from dualflow.compat import v1

SIZES = st.integers(0, 1000)
ARITHMETIC = [operator.add, operator.mul, operator.sub, operator.floordiv, operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("compute", ARITHMETIC)
@given(x=SIZES, y=st.integers(1, 1000))
def test_known_sizes_are_integers(compute: Callable[[Any, Any], Any], x: int, y: int) -> None:
    x = max(x, y)
    for left, right in [(v1.Dimension(x), y), (x, v1.Dimension(y)), (v1.Dimension(x), v1.Dimension(y))]:
        assert compute(left, right).value == compute(x, y)


@pytest.mark.parametrize("compare", COMPARISONS)
@given(x=SIZES, y=SIZES)
def test_known_sizes_compare_as_integers(compare: Callable[[Any, Any], Any], x: int, y: int) -> None:
    assert compare(v1.Dimension(x), y) is compare(x, y)
    assert compare(v1.Dimension(x), v1.Dimension(y)) is compare(x, y)


@pytest.mark.parametrize("other", [3, None, v1.Dimension(3), v1.Dimension(None)])
def test_an_unknown_size_stays_unknown(other: Any) -> None:
    unknown = v1.Dimension(None)
    assert [compute(unknown, other).value for compute in ARITHMETIC] == [None] * 5
    assert [compare(unknown, other) for compare in COMPARISONS] == [None] * 6


def test_a_size_is_no_other_object() -> None:
    assert (v1.Dimension(3) == "3") is False
    assert v1.Dimension(3) != "3"


def test_the_texts_of_a_size() -> None:
    assert [str(v1.Dimension(d)) for d in (3, None)] == ["3", "?"]
    assert repr(v1.Dimension(v1.Dimension(3))) == "Dimension(3)"


def test_a_known_size_is_an_integer_to_shapes() -> None:
    size = v1.Dimension(2)
    assert v1.zeros([size, 3]).shape == (2, 3)
    assert v1.reshape(v1.ones([4]), [size, size]).shape == (2, 2)
    assert (int(size), [10, 20, 30][size], bool(v1.Dimension(0))) == (2, 30, False)
    with v1.Graph().as_default():
        assert v1.placeholder(v1.float32, [size]).shape == (2,)


def test_sizes_of_shapes() -> None:
    shape = v1.TensorShape([2, None])
    assert v1.dimension_at_index(shape, 0).value == 2
    assert v1.dimension_value(shape[1]) is None
    assert v1.dimension_value(v1.Dimension(5)) == 5


def test_compatible_sizes_merge() -> None:
    three, unknown = v1.Dimension(3), v1.Dimension(None)
    assert three.is_compatible_with(unknown)
    assert not three.is_compatible_with(4)
    assert [three.merge_with(unknown).value, unknown.merge_with(3).value] == [3, 3]


CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "negative": (lambda: v1.Dimension(-1), ValueError, "Dimension -1 must be >= 0; None is"),
    "no integer": (lambda: v1.Dimension(3.5), TypeError, "an integer or None, not 3.5"),
    "unknown": (lambda: int(v1.Dimension(None)), TypeError, r"unknown dimension .* use df.shape\(x\)"),
    "incompatible": (
        lambda: v1.Dimension(3).merge_with(4),
        ValueError,
        "Dimensions 3 and 4 are not compatible; make them equal",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("compat/v1/dimension.py",)
