"""The size from which one way of running a function is faster than another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualflow.function.inspect.crossing import SizeTimes, pays_from

EXPONENT = st.floats(0.1, 2.0)
SIZES = st.lists(st.integers(1, 1 << 30), min_size=2, max_size=6, unique=True)


@given(SIZES, EXPONENT, EXPONENT, st.floats(1.0, 1e9))
def test_powers_of_the_size_cross_where_they_are_equal(
    sizes: list[int], first: float, second: float, crossing: float
) -> None:
    times = [SizeTimes(n, (n / crossing) ** (first + second), (n / crossing) ** second) for n in sizes]
    size = pays_from(times)
    if max(sizes) <= crossing:
        assert size is None
    elif min(sizes) > crossing:
        assert size == min(sizes)
    else:
        assert size == pytest.approx(crossing, rel=1e-6)


def test_without_sizes_or_where_it_is_never_faster_there_is_none() -> None:
    assert pays_from([]) is None
    assert pays_from([SizeTimes(8, 1.0, 1.0), SizeTimes(16, 1.0, 2.0)]) is None


def test_the_last_crossing_counts() -> None:
    times = [SizeTimes(1, 2.0, 1.0), SizeTimes(10, 1.0, 2.0), SizeTimes(1000, 4.0, 2.0)]
    assert pays_from(times) == pytest.approx(100.0)
