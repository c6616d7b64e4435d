"""The comparison of derivatives runs, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.derivative_peers import ROWS, table

ROOT = Path(__file__).parents[2]


def test_every_row_is_computed_and_timed(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    options = ["--quick", "--peers", "dualflow", "--json", str(path)]
    command = [sys.executable, "-m", "benchmarks.derivative_peers", *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(path.read_text(encoding="utf-8"))
    assert report["dualflow"].keys() == set(ROWS)
    assert min(report["dualflow"].values()) > 0
    assert ended.stdout.strip() == table(report).strip()
