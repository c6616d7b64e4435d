"""Keras's models trained by real workers of MPI: each check of a program, which 2 workers run together."""

from __future__ import annotations

from pathlib import Path

import pytest
from required_tools import require_module
from workers import checks_of, run_program

require_module("keras")
PROGRAM = Path(__file__).with_name("programs") / "keras_models.py"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return run_program(PROGRAM, 2, tmp_path_factory.mktemp("two"))


@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_two_workers(two: dict[str, list[str]], check: str) -> None:
    assert two[check] == ["", ""]
