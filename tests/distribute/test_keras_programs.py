"""Programs with Keras on real workers of MPI: its models, TensorFlow's guides, and divided optimizer state.

Two workers run all of them, since each import of Keras takes seconds.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from required_tools import require_installed
from workers import checks_of, run_programs

require_installed("keras")
*_, SHARDED = PROGRAMS = [
    Path(__file__).with_name("programs") / f"{name}.py"
    for name in ("keras_models", "guides", "sharded_state")
]
pytestmark = pytest.mark.exhaustive

RESTORED = "check_state_that_other_numbers_of_workers_saved_is_restored"
OF_ANY_NUMBER = {
    "check_every_optimizer_has_the_weights_of_whole_state",
    "check_eager_steps_are_those_of_compiled_ones",
    "check_checkpoints_have_the_whole_state_and_fit_any_number_of_workers",
    "check_moving_averages_are_those_of_whole_variables",
    "check_optimizers_of_whole_variables_are_refused",
}
"""Checks of divided state that run on two workers alone: their subject doesn't depend on the number."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which workers save state that others restore."""
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def three(folder: Path) -> dict[str, list[str]]:
    """Three workers pad variables that two divide evenly, and add in another order."""
    checks = [name for name in checks_of(SHARDED) if name not in OF_ANY_NUMBER]
    return run_programs([SHARDED], 3, folder, checks)


@pytest.fixture(scope="module")
def one(folder: Path, three: dict[str, list[str]]) -> dict[str, list[str]]:
    """One worker restores what three have saved."""
    return run_programs([SHARDED], 1, folder, [RESTORED])


@pytest.fixture(scope="module")
def two(folder: Path, one: dict[str, list[str]]) -> dict[str, list[str]]:
    """Two workers restore what three and one have saved."""
    return run_programs(PROGRAMS, 2, folder)


@pytest.mark.parametrize("check", [name for name in checks_of(SHARDED) if name not in OF_ANY_NUMBER])
def test_three_workers(three: dict[str, list[str]], check: str) -> None:
    assert three[check] == [""] * 3


def test_one_worker_restores_the_state_of_three(one: dict[str, list[str]]) -> None:
    assert one == {RESTORED: [""]}


@pytest.mark.parametrize("check", checks_of(*PROGRAMS))
def test_two_workers(two: dict[str, list[str]], check: str) -> None:
    assert two[check] == ["", ""]


def test_the_checks_that_fewer_workers_run_exist() -> None:
    assert {RESTORED, *OF_ANY_NUMBER} <= set(checks_of(SHARDED))
