"""Errors of wrong programs name the function that was called and the user's line, not our own code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_generator.mistakes import FORMS, FURTHER, VALUES, functions, script
from program_generator.worker import Worker

TIMES = 1 if settings.default.derandomize else 50
ARGUMENTS = st.lists(st.sampled_from(VALUES), min_size=6, max_size=6)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as process:
        yield process


@settings(deadline=None, max_examples=settings.default.max_examples * TIMES)
@given(
    st.deferred(lambda: st.sampled_from(functions())),
    ARGUMENTS,
    st.integers(-1, 1),
    st.booleans(),
    st.integers(0, 11),
)
def test_functions_of_wrong_arguments(
    worker: Worker, function: tuple[str, str, int], values: list[str], more: int, is_open: bool, seed: int
) -> None:
    path, name, needed = function
    text = f"{path}({', '.join(values[: max(needed + more, 0)])})"
    source = script(text, is_open, seed)
    assert worker.check_texts(source, name) == [], source


@settings(deadline=None, max_examples=settings.default.max_examples // 2 * TIMES)
@given(st.sampled_from(FORMS), ARGUMENTS, st.booleans(), st.integers(0, 11))
def test_expressions_of_wrong_values(
    worker: Worker, form: str, values: list[str], is_open: bool, seed: int
) -> None:
    source = script(form.format(*values), is_open, seed)
    assert worker.check_texts(source, None) == [], source


@settings(deadline=None, max_examples=settings.default.max_examples * TIMES)
@given(
    st.deferred(lambda: st.sampled_from(functions(FURTHER))),
    ARGUMENTS,
    st.integers(-1, 1),
    st.booleans(),
    st.integers(0, 11),
)
def test_functions_of_further_namespaces_fail_with_errors_for_users(
    worker: Worker, function: tuple[str, str, int], values: list[str], more: int, is_open: bool, seed: int
) -> None:
    """No assertion, internal error or mistake of Python's in our own code."""
    path, name, needed = function
    text = f"{path}({', '.join(values[: max(needed + more, 0)])})"
    source = script(text, is_open, seed)
    assert worker.check_kinds(source, name) == [], source
