"""The comparison of derivatives runs, in a process of its own."""

from __future__ import annotations

from pathlib import Path

from benchmark_commands import run_benchmark

from benchmarks.derivative_peers import ROWS, table


def test_every_row_is_computed_and_timed(tmp_path: Path) -> None:
    output, report = run_benchmark(tmp_path, "benchmarks.derivative_peers", "--quick", "--peers", "dualflow")
    assert report["dualflow"].keys() == set(ROWS)
    assert min(report["dualflow"].values()) > 0
    assert output.strip() == table(report).strip()
