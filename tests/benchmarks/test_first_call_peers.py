"""The comparison of first calls runs, in processes of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_commands import run_benchmark

from benchmarks.first_call_peers import ROWS, measure


def test_a_row_is_measured_cold_and_warm(tmp_path: Path) -> None:
    output, report = run_benchmark(tmp_path, "benchmarks.first_call_peers", "--quick", "--rows", "gelu")
    assert set(report) >= {f"gelu, dualflow, {state}" for state in ("cold", "warm")}
    assert all(figures["first"] > 0 and figures["other_sizes"] > 0 for figures in report.values())
    lines = output.splitlines()
    assert len(lines) == 2 + len(report)
    assert all(line.startswith("| ") and line.count("|") == 6 for line in lines)


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_measured(name: str) -> None:
    figures = measure("dualflow, cold", name, quick=True)
    assert min(figures.first, figures.other_sizes, figures.total) > 0
