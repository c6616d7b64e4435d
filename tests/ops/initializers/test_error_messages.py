"""What initializers refuse, and what to do about it."""

from __future__ import annotations

import re
import traceback

import pytest

import dualflow as df

Invalid, Wrong = df.errors.InvalidArgumentError, df.errors.DTypeError
init = df.initializers

CASES = {
    "an open size": (lambda: init.Zeros()([None, 2]), Invalid, r"\[None, 2\]", "must be known"),
    "integers of a normal distribution": (
        lambda: init.RandomNormal()([2], df.int32),
        Wrong,
        "not int32",
        "df.float32",
    ),
    "the identity of a cube": (lambda: init.Identity()([2, 2, 2]), Invalid, r"\(2, 2, 2\)", "two sizes"),
    "an orthogonal vector": (lambda: init.Orthogonal()([2]), Invalid, r"\(2,\)", "two sizes or more"),
    "a scale": (lambda: init.VarianceScaling(-1.0), Invalid, "not -1.0", "above 0"),
    "a mode": (lambda: init.VarianceScaling(mode="in"), Invalid, "not 'in'", "fan_avg"),
    "a distribution": (
        lambda: init.VarianceScaling(distribution="normal"),
        Invalid,
        "not 'normal'",
        "untruncated_normal",
    ),
    "a name": (lambda: init.get("glorot"), Invalid, "'glorot'", "GlorotUniform"),
    "no initializer": (lambda: init.get(3), Wrong, "not 3", "a function of a shape"),
    "one of one's own": (lambda: init.Initializer()([2]), NotImplementedError, "__call__", "defines"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_message_says_what_and_what_to_do(case):
    call, kind, what, remedy = CASES[case]
    with pytest.raises(kind, match=what) as caught:
        call()
    assert re.search(remedy, str(caught.value))


@pytest.mark.parametrize("case", [case for case in CASES if case != "one of one's own"])
def test_the_traceback_shows_the_users_lines_alone(case):
    with pytest.raises((Invalid, Wrong)) as caught:
        CASES[case][0]()
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files - {"<string>"} == {__file__}  # a dataclass's own __init__ has no file


def test_every_refusal_has_a_case(raises_without_case):
    assert raises_without_case(["ops/initializers/*.py"], [case[0] for case in CASES.values()]) == []
