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


RESTORED = "check_state_that_other_numbers_of_workers_saved_is_restored"


def test_every_check_passes_on_2_and_on_4_workers(tmp_path: Path) -> None:
    """In one folder, and with the checkpoints of one worker before and of all at the end."""
    jobs = [(1, [RESTORED]), (2, checks_of(PROGRAM)), (4, checks_of(PROGRAM)), (1, [RESTORED])]
    for workers, checks in jobs:
        raised = run_program(PROGRAM, workers, tmp_path, checks)
        assert list(raised) == checks
        assert {name: texts for name, texts in raised.items() if any(texts)} == {}, workers
