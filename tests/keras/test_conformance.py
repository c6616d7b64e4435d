"""Keras's own tests on this backend: see ``conformance.py``, which prints their table."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

_SPEC = importlib.util.spec_from_file_location("conformance", Path(__file__).with_name("conformance.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
conformance = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(conformance)

EXTENT = os.environ.get("DUALFLOW_KERAS_TESTS", "most")
"""Which groups to run: "most", those that CI runs, "all", or "none"."""
CHOSEN = [group for group in conformance.GROUPS if EXTENT == "all" or (EXTENT == "most" and group.in_ci)]
MIN_PASSED = 9_625
"""The number of these tests that pass on Keras's torch backend."""


@pytest.fixture(scope="module")
def outcome() -> Any:
    """The outcomes of the chosen groups, which run in one process: importing Keras takes seconds."""
    return conformance.run(CHOSEN)


@pytest.mark.exhaustive
@pytest.mark.parametrize("group", CHOSEN, ids=lambda group: group.name)
def test_only_listed_keras_tests_fail(group: Any, outcome: Any) -> None:
    assert outcome.count("passed", group) > 0, outcome.log
    assert conformance.unexpected_outcomes(outcome, conformance.known_failures()) == [], outcome.log


def test_each_known_failure_has_a_reason() -> None:
    assert all(reason.strip() for reason in conformance.known_failures().values())


def test_the_page_has_the_table_of_all_groups_and_the_reasons() -> None:
    page = conformance.PAGE.read_text(encoding="utf-8")
    rows = conformance.rows_of(page)
    assert page == conformance.rewritten(page, rows.values())
    assert {name: list(row.torch) for name, row in rows.items()} == {
        group.name: [group.passed, group.failed, group.skipped] for group in conformance.GROUPS
    }


def test_no_fewer_pass_than_on_torch() -> None:
    rows = conformance.rows_of(conformance.PAGE.read_text(encoding="utf-8"))
    assert conformance.total(rows.values()).own[0] >= MIN_PASSED


def test_the_failures_of_a_group_are_the_listed_ones() -> None:
    rows = conformance.rows_of(conformance.PAGE.read_text(encoding="utf-8"))
    listed = conformance.known_failures()
    for group in conformance.GROUPS:
        assert rows[group.name].own[1] == sum(conformance.is_of(name, group) for name in listed), group.name
