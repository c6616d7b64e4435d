"""Logs under the name ``dualflow``, and ``DUALFLOW_LOG``, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dualflow as df

PROGRAM = """
import dualflow as df

@df.function(sizes="exact")
def scale(x, factor):
    return df.exp(x) * factor

for factor in (2.0, 2.0, 2.0, 3.0):
    scale(df.ones([3]), factor)
"""

Log = Callable[..., list[str]]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Runs a program, and returns the lines that it prints on stderr."""

    def run(topics: str, program: str = PROGRAM) -> list[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.path.dirname(os.path.dirname(df.__file__)),
            "DUALFLOW_CACHE_DIR": str(tmp_path / "cache"),
            "DUALFLOW_LOG": topics,
        }
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        return done.stderr.splitlines()

    return run


def test_a_trace_is_logged_with_its_time_and_reason(log: Log) -> None:
    first, second = log("trace")
    assert first.startswith("dualflow.trace: traced scale in ")
    assert first.endswith(" ms, at call 1: x: float32[3], factor: 2.0")
    assert " ms, at call 4: x: float32[3], factor: 3.0  because factor went from 2.0 to 3.0" in second


@pytest.mark.llvm
def test_a_process_loads_what_the_one_before_has_compiled(log: Log) -> None:
    first, second = log("cache, compile"), log("cache, compile")
    assert any(line.endswith(" is not on disk") for line in first)
    assert any(" stored, " in line for line in first)
    assert "dualflow.compile: LLVM compiled 2 of 2 modules" in first  # the kernel's, and that of the entry
    assert not any("is not on disk" in line or "LLVM" in line for line in second)
    assert any(" loaded, " in line for line in second)
    compiled = [line for line in second if line.startswith("dualflow.compile: compiled ")]
    assert len(compiled) == 2, "one for each trace"
    assert "compiled scale(float32[3]) with llvm in " in compiled[0]
    assert compiled[0].endswith(" ms: kernels 1, matrix products 0, host calls 0")


def test_the_memory_of_intermediates_is_logged(log: Log) -> None:
    program = PROGRAM.replace("df.exp(x)", "df.sort(df.exp(x)) + df.sort(x)")
    line = log("memory", program)[0]
    assert line.startswith("dualflow.memory: scale(float32[3]): intermediates take ")


def test_without_the_variable_nothing_is_logged_or_imported(log: Log) -> None:
    program = PROGRAM + "import sys\nprint('logging' in sys.modules, file=sys.stderr)"
    assert log("", program) == ["False"]


def test_a_program_that_configures_logging_needs_no_variable(log: Log) -> None:
    configured = (
        "import logging\nlogging.basicConfig(format='mine %(name)s')\n"
        "logging.getLogger('dualflow').setLevel(logging.INFO)\n"
    )
    lines = log("", configured + PROGRAM)
    assert {"mine dualflow.trace", "mine dualflow.compile", "mine dualflow.cache"} <= {*lines}


def test_with_both_each_line_is_printed_once(log: Log) -> None:
    configured = "import logging\nlogging.basicConfig(format='mine %(name)s')\n"
    assert log("trace", configured + PROGRAM) == ["mine dualflow.trace"] * 2


def test_logging_that_is_imported_but_not_configured_prints_nothing(log: Log) -> None:
    assert log("", "import logging\n" + PROGRAM) == []
