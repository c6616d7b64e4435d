"""The table of deep models runs at tiny sizes; the losses of all engines agree, and fall."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from benchmark_commands import run_benchmark

from benchmarks.deep import ROWS, RUNS, DeepFigures, lines, step_of
from benchmarks.deep_models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_of_a_model_falls(name: str) -> None:
    step = step_of("dualflow", MODELS[name](2, True))
    losses = [float(step()) for _ in range(9)]
    assert losses[-1] < losses[0] < math.inf


def test_the_depth_of_a_model_is_the_number_of_its_layers() -> None:
    def weights(name: str, depth: int) -> int:
        return len(MODELS[name](depth, True).weights)

    assert weights("transformer", 3) - weights("transformer", 2) == 8
    assert weights("resnet", 3) - weights("resnet", 2) == 3 * 2 * 3
    assert MODELS["unrolled"](7, True).inputs[0].shape[0] == 7


def test_ratios_are_those_to_the_best_peer_and_other_losses_are_marked() -> None:
    ours, jax, tensorflow = (
        DeepFigures(1.0, 0.5, 100, 2.0),
        DeepFigures(4, 1, 50, 2.0),
        DeepFigures(2, 2, 400, 3.0),
    )
    first, *peers = lines("resnet 1", {"dualflow, cold": ours, "jax": jax, "tensorflow": tensorflow})
    assert [cell.strip() for cell in first.split("|")[6:9]] == ["0.50", "0.50", "2.00"]
    assert all(line.endswith("DIFFERS") for line in (first, *peers))
    (alone,) = lines("resnet 1", {"dualflow, cold": ours})
    assert [cell.strip() for cell in alone.split("|")[6:9]] == ["-"] * 3
    assert not alone.endswith("DIFFERS")


def test_the_table_has_a_line_for_each_engine(tmp_path: Path) -> None:
    output, figures = run_benchmark(tmp_path, "benchmarks.deep", "--quick", "--rows", "unrolled 50")
    assert list(figures) == ["unrolled 50"]
    assert set(figures["unrolled 50"]) <= set(RUNS)
    assert {"dualflow, cold", "dualflow, warm"} <= set(figures["unrolled 50"])
    table = output.splitlines()
    assert len(table) == 2 + len(figures["unrolled 50"])
    assert all(line.count("|") == 9 for line in table)
    assert "DIFFERS" not in output


def test_each_row_has_a_model() -> None:
    assert {name for name, _ in ROWS.values()} == set(MODELS)
