"""The coverage page lists every TensorFlow name, and each unsupported one raises an error with a remedy."""

from __future__ import annotations

import re
import runpy
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import dualflow as df
from dualflow.core import absent

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
GENERATOR = runpy.run_path(str(Path(__file__).with_name("page.py")))


@pytest.fixture(scope="module")
def entries() -> dict[str, list[Any]]:
    """TensorFlow's names by namespace, and whether each is there."""
    return GENERATOR["entries"]()


@pytest.fixture(scope="module")
def names(entries: dict[str, list[Any]]) -> list[Any]:
    """The names of all namespaces."""
    return [name for names in entries.values() for name in names]


def test_the_page_is_what_its_generator_writes(entries: dict[str, list[Any]]) -> None:
    same = GENERATOR["page"](entries) == PAGE.read_text(encoding="utf-8")
    assert same, "names came or went: python tests/coverage/page.py > docs/coverage.md"


def test_tensorflows_numerical_names_are_all_listed(names: list[Any]) -> None:
    assert len(names) >= 965


def test_a_missing_name_reports_why_or_what_to_use(names: list[Any]) -> None:
    silent = re.compile(r"|TensorFlow's \S+ is not in this version\.")
    unsaid = [row for row in names if not row.there and silent.fullmatch(row.advice)]
    assert [f"{row.namespace}.{row.name}" for row in unsaid] == []


def test_nothing_is_reported_of_names_that_are_there() -> None:
    dead = [(row.section, row.name) for row in absent.rows() if is_there(row.section, row.name)]
    assert dead == [], "these rows of absent_names.txt are never read"


def is_there(section: str, name: str) -> bool:
    path = [] if section == "tf" else section.split(".")
    try:
        reduce(getattr, [*path, *name.split(".")], df)
    except AttributeError:
        return False
    return True


def test_a_name_that_is_there_is_shown(names: list[Any]) -> None:
    """What ``hasattr`` finds, ``dir`` and completion find too."""
    hidden = []
    for row in names:
        space: Any = df
        for part in row.namespace.split(".")[1:]:
            space = getattr(space, part, None)
        if row.there and row.name not in dir(space):
            hidden.append(f"{row.namespace}.{row.name}")
    assert hidden == []
