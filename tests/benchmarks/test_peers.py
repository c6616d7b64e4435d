"""The comparison with other libraries runs with those that are installed, and always with dualflow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.peers import Cost, fastest, rows
from benchmarks.report import peer_memory_table, peer_table

ROOT = Path(__file__).parents[2]


def cells(table: str) -> list[str]:
    """The last line of a table."""
    return [cell.strip() for cell in table.splitlines()[-1].strip("|").split("|")]


def test_a_row_is_timed_in_each_library_and_its_memory_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    options = ["--peers", "--quick", "--only", "softmax", "--json", str(path)]
    command = [sys.executable, "-m", "benchmarks", *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    ((name, timing),) = json.loads(path.read_text(encoding="utf-8"))["peers"].items()
    assert name == "softmax, 4096x1024"
    assert {"dualflow", "eager"} <= timing.keys()
    assert min(cost["seconds"] for cost in timing.values()) > 0
    costs = {name: {library: Cost(**cost) for library, cost in timing.items()}}
    assert peer_table(costs) in ended.stdout
    assert peer_memory_table(costs) in ended.stdout


def test_a_row_is_compared_with_the_best_peer() -> None:
    costs = {
        "row": {"dualflow": Cost(1e-3, 1.0, 0.0), "eager": Cost(2e-3, 2.0, 0.0), "jax": Cost(4e-3, 3.0, 0.0)}
    }
    assert cells(peer_table(costs)) == ["row", "1.000", "2.000", "4.000", "0.25"]
    assert cells(peer_memory_table(costs)) == ["row", "1.0", "2.0", "3.0"]


def test_memory_that_nothing_reports_is_left_out() -> None:
    assert peer_memory_table({"row": {"dualflow": Cost(1e-3, None, 0.0)}}) == ""


def test_names_are_distinct_and_a_call_is_timed() -> None:
    names = [row.name for row in rows(quick=True)]
    assert len(set(names)) == len(names)
    assert min(fastest([lambda: None] * 2, 0.0)) > 0
