"""Measurements in processes of their own, which print their figures as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[1]


class FailedMeasurement(SystemExit):
    """A process failed or took longer than its limit; uncaught, this ends the benchmark with its message."""


def figures_of(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    limit: float | None = None,
) -> Any:
    """The figures that ``python -m benchmarks.MODULE ARGUMENTS`` prints as JSON, in its last line.

    Args:
        module: the module's name.
        arguments: its command line.
        environment: environment variables that differ from those of this process.
        limit: the longest time in seconds; None for any.

    Raises:
        FailedMeasurement: the process fails or exceeds the limit; with the end of its error output.
    """
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    shown = " ".join(command[2:])
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(environment or {})},
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FailedMeasurement(f"{shown} takes longer than {limit} seconds") from None
    if done.returncode:
        raise FailedMeasurement(f"{shown} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def figures_by_run(module: str, runs: Mapping[str, str], row: str, *, quick: bool) -> dict[str, Any]:
    """The figures of a row for each run, in a process of its own: ``python -m benchmarks.MODULE --run RUN``.

    The runs share a cache folder of dualflow's that is empty before the first.

    Args:
        module: the module's name.
        runs: the runs, each with the package that it needs; one whose package isn't installed is left out.
        row: the row, for the argument ``--rows``.
        quick: whether the argument ``--quick`` is passed.

    Raises:
        FailedMeasurement: a process fails.
    """
    arguments = ["--rows", row, *["--quick"] * quick]
    with tempfile.TemporaryDirectory() as cache:
        environment = {"DUALFLOW_CACHE_DIR": cache, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        return {
            run: figures_of(module, ["--run", run, *arguments], environment)
            for run, package in runs.items()
            if find_spec(package)
        }
