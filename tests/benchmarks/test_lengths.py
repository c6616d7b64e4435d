"""The table of different lengths runs for two batches; the losses of all engines agree."""

from __future__ import annotations

import math
from pathlib import Path

from benchmark_commands import run_benchmark

from benchmarks.lengths import ENGINES, batches, installed, measure


def test_each_batch_has_a_length_of_its_own() -> None:
    assert len({len(x) for x, _ in batches(9)}) == 9


def test_one_program_trains_on_all_lengths_and_the_loss_falls() -> None:
    first, last = measure("dualflow", 1), measure("dualflow", 6)
    assert 0.0 < last.loss < first.loss


def test_the_table_has_a_line_for_each_engine(tmp_path: Path) -> None:
    output, figures = run_benchmark(
        tmp_path, "benchmarks.lengths", "--batches", "2", "--engines", "dualflow,jax,torch"
    )
    assert list(figures) == installed(["dualflow", "jax", "torch"])
    assert all(
        math.isclose(row["loss"], figures["dualflow"]["loss"], rel_tol=1e-3) for row in figures.values()
    )
    lines = output.splitlines()
    assert len(lines) == 2 + len(figures)
    assert all(line.startswith("| ") and line.count("|") == 6 for line in lines)
    assert "DIFFERS" not in output
    assert set(ENGINES) >= set(figures)
