"""What quotients and conversions refuse: what they were given, and what to do about it."""

from __future__ import annotations

import re
import traceback

import pytest

import dualflow as df

Invalid, Wrong = df.errors.InvalidArgumentError, df.errors.DTypeError
V, N, C, B = df.ones([3]), df.constant([1, 2, 3]), df.constant([1j]), df.constant([True])
math = df.math

CASES = {
    "a real quotient of integers": (lambda: df.realdiv(N, N), Wrong, "not int32", "df.divide"),
    "a vector times a vector": (lambda: df.scalar_mul(V, V), Invalid, r"\(3,\)", "df.multiply"),
    "a neighbour of a complex number": (lambda: math.nextafter(C, C), Wrong, "not complex128", "cast"),
    "the angle of an integer": (lambda: math.angle(N), Wrong, "not int32", "cast"),
    "a polynomial of a tensor": (lambda: math.polyval(V, 1.0), Wrong, "not EagerTensor", "unstack"),
    "a sum of another dtype": (
        lambda: math.accumulate_n([V], tensor_dtype=df.int32),
        Wrong,
        "int32 here",
        "not float32",
    ),
    "a sum of another shape": (
        lambda: math.accumulate_n([V], shape=[2]),
        Invalid,
        r"\(2,\) here",
        r"not \(3,\)",
    ),
    "saturating bools": (lambda: df.saturate_cast(V, df.bool), Wrong, "not bools", "comparison"),
    "the bits of a bool": (lambda: df.bitcast(B, df.uint8), Wrong, "bool as uint8", "cast"),
    "bits that fill no element": (
        lambda: df.bitcast(V, df.float64),
        Invalid,
        r"2 elements of float32",
        "size 2",
    ),
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
    assert raises_without_case(["ops/elementary/*.py"], [case[0] for case in CASES.values()]) == []
