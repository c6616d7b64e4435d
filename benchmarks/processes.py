"""Measurements in processes of their own, which print their figures as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
