"""Python programs in forks of one process that has imported dualflow: each import would take 0.4 s.

A fork has no threads and has compiled nothing; its variables, arguments, folder and streams are its own.
It has the hash seed, the loaded libraries and the modules of the others, so tests whose subject is how a
process starts, what it imports, or what one process keeps for another start the interpreter itself.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import IO, Any

ROOT = Path(__file__).parents[2]
PRELOADED = ("dualflow", "dualflow.function.calls.c_call", "dualflow.backends.llvm.backend", "dualflow.cli")
"""Modules that most programs import; none of them loads LLVM."""


def run_forked(
    words: Sequence[str],
    *,
    cwd: str | Path = ".",
    env: Mapping[str, str] | None = None,
    input: str = "",
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """``python *words``, a fork of this process's template, when it has ended: its status and output.

    Args:
        words: ``-c PROGRAM``, ``-m MODULE`` or the path of a script, and its arguments.
        cwd: its folder; by default the present one.
        env: its environment variables; by default those of this process.
        input: its standard input.
        timeout: how many seconds it may take.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    if not hasattr(os, "fork"):
        command = [sys.executable, *words]
        return subprocess.run(
            command,
            cwd=cwd,
            env=env,
            input=input,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    variables = dict(os.environ if env is None else env)
    settings = {n: v for n, v in variables.items() if n.startswith("DUALFLOW_") and n != "DUALFLOW_CACHE_DIR"}
    key = tuple(sorted(settings.items()))
    template = _TEMPLATES[key] = _TEMPLATES.get(key) or _Template(settings)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(4)]
        written = json.dumps([list(words), os.path.abspath(cwd), variables]), input
        for file, text in zip(files, written, strict=False):
            file.write(text.encode())
            file.seek(0)
        try:
            status = template.fork(files, timeout)
        except TimeoutError:
            template.end()
            del _TEMPLATES[key]
            raise subprocess.TimeoutExpired(list(words), timeout) from None
        return subprocess.CompletedProcess(list(words), status, _text(files[2]), _text(files[3]))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


class _Template:
    """The process that forks, as the processes of the tests see it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        others = {name: value for name, value in os.environ.items() if not name.startswith("DUALFLOW_")}
        self.socket, other = socket.socketpair()
        with other:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(other.fileno())],
                env=others | settings | {"PYTHONPATH": str(ROOT)},
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )

    def fork(self, files: Sequence[IO[bytes]], timeout: float) -> int:
        """The status of a fork, as ``subprocess`` has it; its request, input, output and errors are files."""
        self.socket.settimeout(timeout)
        socket.send_fds(self.socket, [b"."], [file.fileno() for file in files])
        reply = self.socket.recv(16)
        if not reply:
            raise RuntimeError("the template of forked programs has ended")
        return int(reply)

    def end(self) -> None:
        """Kill it and its forks."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.socket.close()


_TEMPLATES: dict[tuple[tuple[str, str], ...], _Template] = {}
"""The templates of this process, by dualflow's variables: some are read when a module is imported."""


def _serve(connection: socket.socket) -> Any | None:
    """The request of a program, in the fork that runs it; None in the template, when its tests have ended."""
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    while True:
        message, files, *_ = socket.recv_fds(connection, 1, 4)
        if not message:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # OpenBLAS has threads, and restarts them in a fork
            child = os.fork()
        if not child:
            connection.close()
            return _opened(files)
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _opened(files: Sequence[int]) -> Any:
    """The request in the first file; the others become the input, output and errors."""
    with open(files[0], encoding="utf-8") as file:
        request = json.load(file)
    for number, other in enumerate(files[1:]):
        os.dup2(other, number)
        os.close(other)
    return request


def _run(words: Sequence[str], folder: str, variables: Mapping[str, str]) -> None:
    """Run a program as ``python *words`` would in a new process."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    if variables.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()
    kind, *others = words
    first = {"-c": "", "-m": folder}.get(kind, os.path.dirname(os.path.abspath(kind)))
    own = [path for path in variables.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [first, *own, *sys.path[2:]]  # after this file's folder and the template's PYTHONPATH
    sys.argv[:] = ["-c", *others[1:]] if kind == "-c" else others if kind == "-m" else [*words]
    if kind == "-m":
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
        return
    module = sys.modules["__main__"] = ModuleType("__main__")
    if kind == "-c":
        exec(compile(others[0], "<string>", "exec"), module.__dict__)
    else:
        module.__file__ = kind
        exec(compile(Path(kind).read_bytes(), kind, "exec"), module.__dict__)


def _end_with(error: BaseException) -> None:
    """Print an error as the interpreter does, from the program's first frame on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    sys.excepthook(type(error), error.with_traceback(frames), frames)
    sys.exit(1)


def main() -> None:
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is None:
        return
    try:
        _run(*request)
    except SystemExit:
        raise
    except BaseException as error:
        _end_with(error)


if __name__ == "__main__":
    main()
