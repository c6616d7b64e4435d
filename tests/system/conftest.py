"""A fixture that runs programs in processes of their own, so that their effects end with them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked_programs import run_forked

import dualflow

SOURCE_ROOT = Path(dualflow.__file__).parents[1]
SECONDS = 120

Started = Callable[..., subprocess.Popen[str]]
Answer = Callable[..., Any]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The object cache of the processes that a test starts; not made yet."""
    return tmp_path / "cache"


@pytest.fixture
def started(cache: Path) -> Iterator[Started]:
    """``started(program, *arguments, **environment)`` is a Python process that runs ``program``.

    Whatever still runs when the test ends is killed.
    """
    processes: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        variables = {"PYTHONPATH": str(SOURCE_ROOT), "DUALFLOW_CACHE_DIR": str(cache), **environment}
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", program, *arguments],
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process, contextlib.suppress(ProcessLookupError):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def answer(started: Started) -> Answer:
    """As ``started``, and waits: what the program printed last, read as JSON. It must end well."""

    def printed(program: str, *arguments: str, **environment: str) -> Any:
        process = started(program, *arguments, **environment)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        assert process.returncode == 0, err
        return json.loads(out.splitlines()[-1])

    return printed


@pytest.fixture
def forked_answer(cache: Path) -> Answer:
    """As ``answer``, of a program whose subject is not how a process starts, or what another one left."""

    def printed(program: str, *arguments: str, **environment: str) -> Any:
        variables = {
            "PYTHONPATH": str(SOURCE_ROOT),
            "DUALFLOW_CACHE_DIR": str(cache),
            "PYTHONFAULTHANDLER": "1",
        }
        done = run_forked(
            ["-c", program, *arguments], env=os.environ | variables | environment, timeout=SECONDS
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return printed
