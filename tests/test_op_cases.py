"""``check_each``, by which one test checks all cases of an op."""

from __future__ import annotations

import pytest
from op_cases import MOST_FAILURES, check_each


def assert_even(n: int) -> None:
    assert n % 2 == 0


def test_each_case_that_fails_is_reported_with_its_name() -> None:
    checked = []
    with pytest.raises(BaseExceptionGroup) as caught:
        check_each([2, 3, 4, 5], lambda n: (checked.append(n), assert_even(n)))
    assert checked == [2, 3, 4, 5]
    assert [error.__notes__ for error in caught.value.exceptions] == [["in the case 3"], ["in the case 5"]]


def test_an_expected_error_that_does_not_come_is_a_failure() -> None:
    def expect(n: int) -> None:
        with pytest.raises(ValueError, match="odd"):
            int(n)

    with pytest.raises(BaseExceptionGroup):
        check_each([1], expect)


def test_many_failures_end_the_test() -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        check_each(range(1, 100, 2), assert_even)
    assert len(caught.value.exceptions) == MOST_FAILURES


def test_cases_that_pass_raise_nothing() -> None:
    check_each([2, 4], assert_even)
