"""The table of quantized layers runs for a moment, and has a line for each row."""

from __future__ import annotations

from pathlib import Path

from benchmark_commands import run_benchmark


def test_the_table_has_a_line_for_each_row(tmp_path: Path) -> None:
    output, figures = run_benchmark(
        tmp_path, "benchmarks.quantised", "--rows", "1x512,16x128", "--seconds", "0.01"
    )
    assert list(figures) == ["dense, 1x512, 512", "convolution, 8x16x16x128, 128"]
    assert all(row["error"] < 0.03 for row in figures.values())
    lines = output.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("| ") and line.count("|") == 6 for line in lines)
