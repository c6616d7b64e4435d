"""The commands of benchmarks, with the figures that they write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def run_benchmark(folder: Path, module: str, *options: str, **environment: str) -> tuple[str, Any]:
    """Run ``python -m MODULE OPTIONS --json``; returns what it prints, and the figures.

    Args:
        folder: where the file of the figures is written.
        module: the module of the benchmark.
        options: of its command line.
        environment: variables that differ from those of this process.
    """
    path = folder / "figures.json"
    ended = subprocess.run(
        [sys.executable, "-m", module, *options, "--json", str(path)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout, json.loads(path.read_text(encoding="utf-8"))
