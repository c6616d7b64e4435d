"""The table of growth runs at tiny sizes, each program in a process of its own."""

from __future__ import annotations

from pathlib import Path

from benchmark_commands import run_benchmark

from benchmarks.growth import STEPS, measure


def test_every_step_computes_the_same_compiled_and_eagerly() -> None:
    for name in STEPS:
        for gradient in (False, True):
            graph, eager = (measure(engine, name, 3, gradient, 1) for engine in ("graph", "eager"))
            assert abs(graph.value - eager.value) <= 1e-4 * abs(eager.value) + 1e-4, name


def test_the_table_has_a_line_for_each_row(tmp_path: Path) -> None:
    options = ["--rows", "rows,slices", "--sizes", "2,4", "--engines", "graph,eager", "--calls", "2"]
    output, figures = run_benchmark(tmp_path, "benchmarks.growth", *options)
    assert figures.keys() == {"rows", "slices"}
    assert all(row["agrees"] and row["later"] > 0 and row["by_jax"] is None for row in figures.values())
    lines = output.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("| ") and line.count("|") == 9 for line in lines)
