"""Progress is shown on terminals alone, and the line is empty after it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import dualflow
from dualflow.core.progress import progress

pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")

PROGRAM = """
import sys
from dualflow.core.progress import progress
with progress("outer", 4, after=0.0) as steps:
    steps.step()
    with progress("inner", after=0.0):
        sys.stdin.readline()
print("end")
"""


def on_a_terminal(until: str, **environment: str) -> str:
    """What the program writes to a terminal; its input ends when ``until`` is there."""
    own, other = pty.openpty()
    root = str(Path(dualflow.__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=other,
        stderr=other,
        env={**os.environ, "PYTHONPATH": root, **environment},
    )
    os.close(other)
    text = ""
    assert child.stdin is not None
    if not until:
        child.stdin.close()
    while True:
        try:
            piece = os.read(own, 1000).decode()
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
        if until and until in text and not child.stdin.closed:
            child.stdin.close()
    os.close(own)
    assert child.wait(60) == 0
    return text


def test_a_terminal_shows_the_outer_operation_and_then_a_clean_line() -> None:
    text = on_a_terminal(until="25%")
    assert "outer  ######------------------  25%" in text
    assert "inner" not in text
    assert text.rstrip().endswith("end")
    assert text.rpartition("end")[0].endswith("\r")


def test_the_variable_switches_it_off() -> None:
    assert on_a_terminal(until="", DUALFLOW_PROGRESS="0").strip() == "end"


def test_without_a_terminal_nothing_is_written_and_no_thread_started(
    capfd: pytest.CaptureFixture[str],
) -> None:
    threads = threading.active_count()
    with progress("work", 2, after=0.0) as steps:
        steps.step()
        assert threading.active_count() == threads
    assert capfd.readouterr() == ("", "")


def test_an_operation_that_fails_ends_its_progress() -> None:
    with pytest.raises(RuntimeError), progress("work"):
        raise RuntimeError
    with progress("work", 1) as steps:
        steps.step()
