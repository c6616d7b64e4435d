"""Debuggers that watch a traced function: the second trace of a first call must not stop them again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dualflow as df

SCRIPT = """\
import dualflow as df

@df.function
def mean(x):
    return df.reduce_mean(x)

print("means", float(mean(df.ones([5]))), float(mean(df.ones([3]))))
"""


def halve(x: Any) -> Any:
    return x / 2.0


def test_a_breakpoint_stops_once_in_each_trace(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    commands = "\n".join(["b 5", "c", *["p 'stopped at ' + str(x.shape[0])", "c"] * 2, "q"])
    debugger = [sys.executable, "-m", "pdb", "script.py"]
    run = subprocess.run(debugger, cwd=tmp_path, input=commands, capture_output=True, text=True, check=False)
    stops = [line.removeprefix("(Pdb) ") for line in run.stdout.splitlines() if "stopped" in line]
    assert stops == ["'stopped at 5'", "'stopped at 3'"], run.stdout + run.stderr
    assert "means 1.0 1.0" in run.stdout


def test_a_trace_function_sees_one_run_in_a_first_call() -> None:
    runs: list[str] = []

    def tracer(frame: FrameType, event: str, _argument: Any) -> None:
        if frame.f_code is halve.__code__:
            runs.append(event)

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        df.function(halve)(df.ones([5]))
    finally:
        sys.settrace(before)
    assert runs == ["call"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in Python 3.12")
def test_a_debugger_that_monitors_sees_one_run_in_a_first_call() -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
    runs: list[int] = []
    tool, start = monitoring.DEBUGGER_ID, monitoring.events.PY_START
    monitoring.use_tool_id(tool, "a debugger")
    try:
        monitoring.register_callback(tool, start, lambda _code, offset: runs.append(offset))
        monitoring.set_local_events(tool, halve.__code__, start)
        df.function(halve)(df.ones([5]))
    finally:
        monitoring.set_local_events(tool, halve.__code__, 0)
        monitoring.register_callback(tool, start, None)
        monitoring.free_tool_id(tool)
    assert len(runs) == 1
