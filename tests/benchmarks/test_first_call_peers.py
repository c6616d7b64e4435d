"""The comparison of first calls runs, in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.first_call_peers import ROWS, measure

ROOT = Path(__file__).parents[2]


def test_a_row_is_measured_cold_and_warm(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    command = [
        sys.executable,
        "-m",
        "benchmarks.first_call_peers",
        "--quick",
        "--rows",
        "gelu",
        "--json",
        str(path),
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(path.read_text(encoding="utf-8"))
    assert set(report) >= {f"gelu, dualflow, {state}" for state in ("cold", "warm")}
    assert all(figures["first"] > 0 and figures["other_sizes"] > 0 for figures in report.values())
    lines = ended.stdout.splitlines()
    assert len(lines) == 2 + len(report)
    assert all(line.startswith("| ") and line.count("|") == 6 for line in lines)


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_measured(name: str) -> None:
    figures = measure("dualflow, cold", name, quick=True)
    assert min(figures.first, figures.other_sizes, figures.total) > 0
