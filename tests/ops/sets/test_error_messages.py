"""What sets refuse: what they were given, and what to do about it."""

from __future__ import annotations

import re
import traceback

import pytest

import dualflow as df

Invalid, Wrong = df.errors.InvalidArgumentError, df.errors.DTypeError
S = df.sparse.from_dense([[1, 2]])
sets = df.sets

CASES = {
    "sets of one axis": (lambda: sets.union([1, 2], [3]), Invalid, r"\(2,\)", "reshape"),
    "other sets": (lambda: sets.union([[1]], [[1], [2]]), Invalid, r"\(1, 1\)", "same sizes"),
    "sets of other dtypes": (lambda: sets.union([[1]], [[1.0]]), Wrong, "int32 and float32", "one dtype"),
    "sets of complex numbers": (lambda: sets.union([[1j]], [[1j]]), Wrong, "real numbers", "complex128"),
    "a dense set behind a sparse one": (lambda: sets.union(S, [[1]]), Wrong, "dense", "first"),
    "the size of dense sets": (lambda: sets.size([[1]]), Wrong, "SparseTensor", "from_dense"),
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
    assert raises_without_case(["ops/sets/*.py"], [case[0] for case in CASES.values()]) == []
