"""What running products and sums refuse: what they were given, and what to do about it."""

from __future__ import annotations

import re
import traceback

import pytest

import dualflow as df

Invalid, Wrong = df.errors.InvalidArgumentError, df.errors.DTypeError
V = df.constant([True])


def gradient(x):
    """The gradient of running products along an axis of an open size."""
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.math.cumprod(x)
    return tape.gradient(y, x)


CASES = {
    "products of bools": (lambda: df.math.cumprod(V), Wrong, "bool", "cast"),
    "no axis": (lambda: df.math.cumprod(1.0), Invalid, "rank 0", "out of range"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_message_says_what_and_what_to_do(case):
    call, kind, what, remedy = CASES[case]
    with pytest.raises(kind, match=what) as caught:
        call()
    assert re.search(remedy, str(caught.value))


@pytest.mark.parametrize("case", CASES)
def test_the_traceback_shows_the_users_lines_alone(case):
    with pytest.raises(Exception) as caught:  # noqa: PT011  the test above tells which one
        CASES[case][0]()
    assert {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)} == {__file__}


def test_every_refusal_has_a_case(raises_without_case):
    assert raises_without_case(["ops/cumulative/*.py"], [case[0] for case in CASES.values()]) == []
