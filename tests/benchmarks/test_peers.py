"""The comparison with other libraries runs with those that are installed, and always with dualflow."""

from __future__ import annotations

from pathlib import Path

from benchmark_commands import run_benchmark

from benchmarks.peers import Cost, fastest, rows
from benchmarks.report import peer_memory_table, peer_table


def cells(table: str) -> list[str]:
    """The last line of a table."""
    return [cell.strip() for cell in table.splitlines()[-1].strip("|").split("|")]


def test_a_row_is_timed_in_each_library_and_its_memory_is_reported(tmp_path: Path) -> None:
    output, figures = run_benchmark(tmp_path, "benchmarks", "--peers", "--quick", "--only", "softmax")
    ((name, timing),) = figures["peers"].items()
    assert name == "softmax, 4096x1024"
    assert {"dualflow", "eager"} <= timing.keys()
    assert min(cost["seconds"] for cost in timing.values()) > 0
    costs = {name: {library: Cost(**cost) for library, cost in timing.items()}}
    assert peer_table(costs) in output
    assert peer_memory_table(costs) in output


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
