"""Optimizer state that is divided among real workers of MPI: each check of a program, run by all together."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from required_tools import missing
from workers import checks_of, run_program

if find_spec("keras") is None:  # which the workers import, and this process does not
    missing("keras", "pip install 'dualflow[tests]'")
PROGRAM = Path(__file__).with_name("programs") / "sharded_state.py"
pytestmark = pytest.mark.exhaustive


@pytest.mark.parametrize("workers", [2, 4])
def test_every_check_passes_on_all_workers(workers: int, tmp_path: Path) -> None:
    raised = run_program(PROGRAM, workers, tmp_path)
    assert list(raised) == checks_of(PROGRAM)
    assert {name: texts for name, texts in raised.items() if any(texts)} == {}
