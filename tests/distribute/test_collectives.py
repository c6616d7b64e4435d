"""Collectives of real workers of MPI: each check of a program, which 2 and 4 workers run together."""

from __future__ import annotations

from pathlib import Path

import pytest
from workers import checks_of, run_programs

import dualflow as df

PROGRAM = Path(__file__).with_name("programs") / "collectives.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that two workers share."""
    return tmp_path_factory.mktemp("two")


@pytest.fixture(scope="module")
def two(folder: Path) -> dict[str, list[str]]:
    return run_programs([PROGRAM], 2, folder)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return run_programs([PROGRAM], 4, tmp_path_factory.mktemp("four"))


@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_two_workers(two: dict[str, list[str]], check: str) -> None:
    assert two[check] == ["", ""]


def test_one_worker_restores_a_checkpoint_of_two(two: dict[str, list[str]], folder: Path) -> None:
    v = df.Variable([0.0])
    latest = df.train.latest_checkpoint(folder / "checkpoints")
    df.train.Checkpoint(v=v).restore(latest).assert_consumed()
    assert v.numpy() == [1.0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_four_workers(four: dict[str, list[str]], check: str) -> None:
    assert four[check] == [""] * 4
