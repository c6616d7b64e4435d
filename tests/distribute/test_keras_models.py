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
CHECKS = checks_of(PROGRAM)
IN_EACH_RUN = (
    "check_fit_of_arrays_with_a_last_batch_of_two_rows",
    "check_statistics_of_batch_normalization_are_means_over_replicas",
    "check_a_loop_of_ones_own_with_an_optimizer_and_a_metric",
)
"""The checks of each run of the suite; the exhaustive one runs all."""


@pytest.fixture(scope="module")
def two(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the selected checks of the module raised."""
    items = [item for item in request.session.items if item.path == request.path]
    selected = [item.callspec.params["check"] for item in items]  # type: ignore[attr-defined]  # of functions
    return run_program(PROGRAM, 2, tmp_path_factory.mktemp("two"), selected)


@pytest.mark.parametrize(
    "check", [c if c in IN_EACH_RUN else pytest.param(c, marks=pytest.mark.exhaustive) for c in CHECKS]
)
def test_two_workers(two: dict[str, list[str]], check: str) -> None:
    assert two[check] == ["", ""]
