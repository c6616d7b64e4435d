"""The comparison of Keras's backends runs, in processes of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_commands import run_benchmark

from benchmarks.keras_backends import FIGURES, table


@pytest.mark.exhaustive
def test_a_model_is_trained_and_timed(tmp_path: Path) -> None:
    output, report = run_benchmark(
        tmp_path, "benchmarks.keras_backends", "--quick", "--backends", "dualflow", "--models", "mlp"
    )
    assert report.keys() == {"mlp"}
    figures = report["mlp"]["dualflow"]
    assert figures.keys() == FIGURES.keys()
    assert figures["first_epoch"] > figures["import_keras"] > 0
    assert output.strip() == table(report, ["dualflow"]).strip()
