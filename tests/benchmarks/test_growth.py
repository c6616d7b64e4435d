"""The table of growth runs at tiny sizes, each program in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.growth import STEPS, measure

ROOT = Path(__file__).parents[2]


def test_every_step_computes_the_same_compiled_and_eagerly() -> None:
    for name in STEPS:
        for gradient in (False, True):
            graph, eager = (measure(engine, name, 3, gradient, 1) for engine in ("graph", "eager"))
            assert abs(graph.value - eager.value) <= 1e-4 * abs(eager.value) + 1e-4, name


def test_the_table_has_a_line_for_each_row(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    options = ["--rows", "rows,slices", "--sizes", "2,4", "--engines", "graph,eager", "--calls", "2"]
    command = [sys.executable, "-m", "benchmarks.growth", *options, "--json", str(path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(path.read_text(encoding="utf-8"))
    assert figures.keys() == {"rows", "slices"}
    assert all(row["agrees"] and row["later"] > 0 and row["by_jax"] is None for row in figures.values())
    lines = ended.stdout.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("| ") and line.count("|") == 9 for line in lines)
