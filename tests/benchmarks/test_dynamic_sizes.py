"""The table of dynamic sizes runs for a moment, and has a line for each row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmark_commands import run_benchmark

from benchmarks.dynamic_sizes import PROGRAMS


@pytest.mark.parametrize(
    "name", ["softmax, 4096x10", "MLP step, 64", "attention, 8x128x64", "grid with border, 300x256"]
)
def test_a_program_computes_the_same_with_open_and_with_static_sizes(name: str) -> None:
    program = PROGRAMS[name]
    opened = program.dynamic()
    for change in (0, 3):
        arguments = program.arguments(change)
        np.testing.assert_allclose(opened(*arguments), program.function(*arguments), rtol=2e-4, atol=2e-5)


def test_the_table_has_a_line_for_each_row(tmp_path: Path) -> None:
    output, figures = run_benchmark(
        tmp_path, "benchmarks.dynamic_sizes", "--rows", "add,LSTM", "--seconds", "0.01", "--sizes", "2"
    )
    assert list(figures) == ["add, 100", "LSTM, 100 steps"]
    lines = output.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("| ") and line.count("|") == 8 for line in lines)
