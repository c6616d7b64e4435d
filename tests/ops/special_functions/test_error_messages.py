"""What special functions refuse: what they were given, and what to do about it."""

from __future__ import annotations

import re
import traceback

import pytest

import dualflow as df

Invalid, Wrong = df.errors.InvalidArgumentError, df.errors.DTypeError
C = df.constant([1j])
math = df.math

CASES = {
    "the logarithm of gamma of a complex number": (
        lambda: math.lgamma(C),
        Wrong,
        "lgamma.*takes real numbers",
        "cast",
    ),
    "an incomplete function of a complex one": (
        lambda: math.igamma(1.0, C),
        Wrong,
        "not complex128",
        "cast",
    ),
    "points of no dimension": (lambda: math.sobol_sample(0, 1), Invalid, "1 in 0", "1 dimension or more"),
    "no points": (lambda: math.sobol_sample(1, 0), Invalid, "0 in 1", "1 point or more"),
    "points in integers": (lambda: math.sobol_sample(1, 1, dtype=df.int32), Wrong, "not int32", "cast"),
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
    assert raises_without_case(["ops/special_functions/*.py"], [case[0] for case in CASES.values()]) == []
