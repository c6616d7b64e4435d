"""Keras's models trained by real workers of MPI: each check of a program, which 2 workers run together."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from required_tools import missing
from workers import checks_of, run_program

if find_spec("keras") is None:  # which the workers import, and this process does not
    missing("keras", "pip install 'dualflow[tests]'")
PROGRAM = Path(__file__).with_name("programs") / "keras_models.py"
pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return run_program(PROGRAM, 2, tmp_path_factory.mktemp("two"))


@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_two_workers(two: dict[str, list[str]], check: str) -> None:
    assert two[check] == ["", ""]
