"""The table of quantized layers runs for a moment, and has a line for each row."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_has_a_line_for_each_row(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    options = ["--rows", "1x512,16x128", "--seconds", "0.01", "--json", str(path)]
    command = [sys.executable, "-m", "benchmarks.quantised", *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(path.read_text(encoding="utf-8"))
    assert list(figures) == ["dense, 1x512, 512", "convolution, 8x16x16x128, 128"]
    assert all(row["error"] < 0.03 for row in figures.values())
    lines = ended.stdout.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("| ") and line.count("|") == 6 for line in lines)
