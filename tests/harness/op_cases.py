"""Tests that run many cases of an op: a failure names the case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
