"""The benchmarks run at small sizes, measure what they report, and agree with NumPy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ROWS = {
    "add, 100 floats",
    "x + 1, 100 floats",
    "chain, 20 ops",
    "gradient, tiny MLP",
    "gelu, 4M",
    "Black-Scholes, 2M",
    "softmax, 4096x1024",
    "layernorm, 4096x1024",
    "sum of squares, 4M",
    "SGD step, MLP 784-128-10, batch 32",
    "SGD step, MLP 784-512-512-10, batch 128",
    "while loop, 1e5 sin steps",
    "while loop, collatz 77031",
    "RNN, 1000 steps, forward and backward",
    "Cholesky, 8x8",
    "Cholesky, 256x256",
    "inverse, 256x256",
    "solve, 1000 of 8x8",
    "triangular solve, 1000 of 8x8",
    "singular values, 256x256",
    "eigenvalues, 256x256",
    "exponential, 256x256",
    "log-likelihood and gradient, 256",
    "gradients for each example, 256",
    "jacobian, 64x32",
    "hessian, 32x32",
    "a loop for each row, 10k",
}


def run_benchmarks(*options: str, **environment: str) -> str:
    command = [sys.executable, "-m", "benchmarks", "--quick", *options]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What a whole run prints, and the figures that it writes as data."""
    path = tmp_path_factory.mktemp("figures") / "figures.json"
    output = run_benchmarks("--json", str(path), OPENBLAS_CORETYPE="Haswell", PYTHONDONTWRITEBYTECODE="1")
    return output, json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.exhaustive
def test_every_row_is_timed_on_every_engine(figures: tuple[str, dict[str, Any]]) -> None:
    rows = {row["name"]: row for row in figures[1]["steady"]}
    assert set(rows) == ROWS
    for row in rows.values():
        assert set(row["seconds"]) == set(row["peak"]) == {"eager", "graph", "numpy"}
        assert all(0 < t < 60 for t in row["seconds"].values())


@pytest.mark.exhaustive
def test_pipelines_are_timed_next_to_numpy(figures: tuple[str, dict[str, Any]]) -> None:
    rows = {row["name"]: row["seconds"] for row in figures[1]["pipelines"]}
    assert len(rows) == 12
    for seconds in rows.values():
        assert {"dualflow", "numpy"} <= set(seconds)
        assert all(0 < t < 60 for t in seconds.values())


@pytest.mark.exhaustive
def test_compiling_is_timed_cold_and_warm(figures: tuple[str, dict[str, Any]]) -> None:
    cases = figures[1]["first call"]
    assert set(cases) == {"gelu", "MLP step", "5000-op chain"}
    for case in cases.values():
        assert set(case) == {"cold", "objects", "warm"}
        assert all(value > 0 for state in case.values() for value in state.values())


@pytest.mark.exhaustive
def test_tables_report_what_was_measured_and_where(figures: tuple[str, dict[str, Any]]) -> None:
    output, _ = figures
    for word in ("processor: ", "threads: ", "NumPy ", "BLAS: "):
        assert word in output
    assert output.count("\n| :---") == 6
    assert all(f"| {name}" in output for name in ROWS)


@pytest.mark.exhaustive
def test_backends_are_compared(figures: tuple[str, dict[str, Any]]) -> None:
    rows = {row["name"]: row for row in figures[1]["backends"]}
    assert {"gelu, 4M", "sum of columns, 4096x1024", "softmax, 4096x1024"} <= set(rows)
    assert all(row["default"] > 0 and row["numba"] > 0 for row in rows.values())
    first = figures[1]["backends' first call"]
    assert set(first) == {"default", "Numba"}
    for cases in first.values():
        assert all(set(case) == {"cold", "objects", "warm"} for case in cases.values())


def test_rows_are_chosen_by_words() -> None:
    output = run_benchmarks("--only", "gelu,softmax", "--no-first-call", "--no-numba")
    assert {name for name in ROWS if f"| {name}" in output} == {"gelu, 4M", "softmax, 4096x1024"}
    assert "first call" not in output
