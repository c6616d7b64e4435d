"""Tests that run many cases of an op: a failure names the case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

C = TypeVar("C")
MOST_FAILURES = 5
"""The number of failed cases after which a test ends: an op that is wrong may fail hundreds."""


@contextmanager
def named(case: object) -> Iterator[None]:
    """Adds the case to an error of the block.

    Pytest takes as long for a test as most cases do, so that one test runs the cases of an op.
    """
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {case}")
        raise


def check_each(cases: Iterable[C], check: Callable[[C], None]) -> None:
    """Check each case, and raise the errors of those that fail together, each with its case."""
    failures: list[BaseException] = []
    for case in cases:
        try:
            with named(case):
                check(case)
        except (Exception, pytest.fail.Exception) as error:
            failures.append(error)
            if len(failures) == MOST_FAILURES:
                break
    if failures:
        raise BaseExceptionGroup("cases fail", failures)
