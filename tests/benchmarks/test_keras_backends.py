"""The comparison of Keras's backends runs, in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.keras_backends import FIGURES, table

ROOT = Path(__file__).parents[2]


@pytest.mark.exhaustive
def test_a_model_is_trained_and_timed(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    options = ["--quick", "--backends", "dualflow", "--models", "mlp", "--json", str(path)]
    command = [sys.executable, "-m", "benchmarks.keras_backends", *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(path.read_text(encoding="utf-8"))
    assert report.keys() == {"mlp"}
    figures = report["mlp"]["dualflow"]
    assert figures.keys() == FIGURES.keys()
    assert figures["first_epoch"] > figures["import_keras"] > 0
    assert ended.stdout.strip() == table(report, ["dualflow"]).strip()
