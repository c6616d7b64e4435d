"""Progress is shown on terminals alone, and the line is empty after it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
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
WITH_OUTPUT = """
import sys
from dualflow.core.progress import progress
with progress("work", after=0.0) as steps:
    sys.stdin.readline()
    steps.write(sys.stdout, "a line\\n")
print("end")
"""


def on_a_terminal(until: str, words: Sequence[str] = ("-c", PROGRAM), **environment: str) -> str:
    """What a Python program writes to a terminal; its input ends when ``until`` is there."""
    own, other = pty.openpty()
    root = str(Path(dualflow.__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, *words],
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


def test_a_line_of_output_begins_where_the_progress_was() -> None:
    text = on_a_terminal("work  ", ("-c", WITH_OUTPUT))
    assert re.search(r"work  0 s\r +\ra line\r\n", text)


def test_a_launch_shows_its_workers_until_they_end(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("")
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo MPICH && exit\ncat > /dev/null\necho "[1] trained"\n'
    )
    mpiexec.chmod(0o755)
    beside = f"import sys\nsys.executable = {str(tmp_path / 'python')!r}\n"  # where mpiexec is looked up
    command = "import dualflow.cli\nsys.exit(dualflow.cli.main(sys.argv[1:]))"
    text = on_a_terminal("3 workers  ", ("-c", beside + command, "launch", "-n", "3", str(program)))
    before, _, after = text.rpartition("[1] trained")
    assert before.endswith(" \r")
    assert "workers" not in after


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
