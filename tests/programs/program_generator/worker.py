"""A process that runs programs one after another, so that a crash is a failed example."""

from __future__ import annotations

import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1]
MALLOC_DEBUG = "libc_malloc_debug.so.0"
"""glibc's checks of the heap at each release, which detect writes past the end of a block."""
SECONDS = 300


class Died(AssertionError):
    """The process ended, or did not respond, while it ran a program."""


class Worker:
    """Runs sources in a process of its own, which begins anew after it has died.

    Used in ``with``, it ends the process in the end.

    Attributes:
        history: the sources that the present process has run.
    """

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self._settings = settings or {}
        self._process: subprocess.Popen[str] | None = None
        self._output: Any = None
        self.history: list[str] = []

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self, source: str) -> list[str]:
        """What :func:`check` of ``program_generator.check`` reports.

        Raises:
            Died: the process ended.
        """
        return self._answer("check", source)

    def check_texts(self, source: str, name: str | None) -> list[str]:
        """What ``check_texts`` reports; likewise."""
        return self._answer("check_texts", source, name)

    def check_kinds(self, source: str, name: str | None) -> list[str]:
        """What ``check_kinds`` reports; likewise."""
        return self._answer("check_kinds", source, name)

    def _answer(self, kind: str, source: str, *more: str | None) -> list[str]:
        process = self._process or self._start()
        self.history.append(source)
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps([kind, source, *more]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if not answer:
            status = process.wait()
            self._output.seek(0)
            output = self._output.read()[-3000:]
            self.close()
            raise Died(f"the process ended with status {status}:\n{output}")
        faults: list[str] = json.loads(answer)
        return faults

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self._output.close()

    def _start(self) -> subprocess.Popen[str]:
        path = os.pathsep.join([str(FOLDER), *filter(None, sys.path)])
        settings = {
            "PYTHONPATH": path,
            "MALLOC_CHECK_": "3",
            "MALLOC_PERTURB_": "165",
            "LD_PRELOAD": MALLOC_DEBUG,
        }
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115  # open as long as the process
        self.history = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "program_generator.worker"],
            env={"DUALFLOW_CACHE_DIR": "", **os.environ, **settings, **self._settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            text=True,
        )
        return self._process


def serve() -> None:
    """Check each source that a line of the input holds; print its faults on one line."""
    from program_generator import check  # the parent does not need it

    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is no answer
    for number, line in enumerate(sys.stdin):
        kind, *arguments = json.loads(line)
        faults = getattr(check, kind)(f"/program_{number}.py", *arguments)
        answers.write(json.dumps(faults) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
