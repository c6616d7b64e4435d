"""The command ``launch``: a program in several workers on this machine, started by ``mpiexec``."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, Final, TextIO

from dualflow.cli.call import CommandError
from dualflow.cli.program import add_program_arguments
from dualflow.core.progress import progress
from dualflow.core.records import dataclass
from dualflow.distribute.cluster import TF_CONFIG, text_of_tf_config
from dualflow.distribute.world import launcher_rank_and_size

DESCRIPTION: Final = """\
Run a program in several processes of this machine, the workers of df.distribute's strategies: each as
`python -m dualflow run` runs it. Lines of output begin with the number of the worker. When a worker
fails, all end. It prints the commands that start the same on a cluster.

  python -m dualflow launch -n 4 train.py --epochs 3
  python -m dualflow launch -n 2 -m package.train
"""
_TAG: Final = re.compile(r"^\[[^\],]*,(\d+)\](?:\[[^\]]*\])?<std\w+>: ?")
"""How Open MPI marks a line of output: ``[job,rank]<stdout>: ``."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """The program of an MPI library that starts workers.

    Attributes:
        path: the program.
        options: what makes it mark the lines of each worker, and start more workers than processors.
        slurm_interface: the interface by which ``srun --mpi`` starts programs of the library.
    """

    path: str
    options: tuple[str, ...]
    slurm_interface: str


def add_launch_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command; the program and its arguments follow."""
    parser.add_argument("-n", "--workers", type=int, metavar="N", help="the number of workers; default: 2")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, and start nothing")
    add_program_arguments(parser)


def count_of_words(words: Sequence[str]) -> int:
    """The number of words of the command line before the arguments of the program."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m":
            return at + 2
        at += 2 if words[at] in ("-n", "--workers") else 1
    return at + 1


def launch(options: Namespace) -> int:
    """Start the workers, pass on their output, and return the exit status of ``mpiexec``.

    Raises:
        CommandError: there is no worker, no file of that name, or no ``mpiexec``.
    """
    workers = 2 if options.workers is None else options.workers
    if workers < 1:
        raise CommandError(f"-n is the number of workers, 1 or more, not {workers}.")
    if options.file is not None and not os.path.exists(options.file):
        raise CommandError(f"there is no file {options.file!r} in {os.getcwd()}.")
    program = ["-m", options.module] if options.module is not None else [options.file]
    worker = [sys.executable, "-m", "dualflow", "run", *program, *options.following]
    launcher = mpi_launcher()
    command = [launcher.path, *launcher.options, "-n", str(workers), *worker]
    _print_commands(workers, worker, launcher.slurm_interface)
    return 0 if options.dry_run else _run(command, workers)


def prepare_worker() -> None:
    """In a worker of several, set ``TF_CONFIG``, which has its number, and write whole lines of output.

    A launcher puts the number of the worker before each part of the output that it receives.
    """
    rank, size = launcher_rank_and_size()
    if size == 1:
        return
    os.environ.setdefault(TF_CONFIG, text_of_tf_config(rank, size))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)


def mpi_launcher() -> Launcher:
    """The ``mpiexec`` next to this Python, or else the first one on ``PATH``.

    Raises:
        CommandError: there is none.
    """
    folders = [os.path.dirname(sys.executable), *os.get_exec_path()]
    path = shutil.which("mpiexec", path=os.pathsep.join(folders))
    if path is None:
        raise CommandError(
            "there is no mpiexec next to this Python or on PATH: pip install 'dualflow[mpi]', or load your "
            "cluster's MPI."
        )
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return launcher_of(path, version.stdout + version.stderr)


def launcher_of(path: str, version: str) -> Launcher:
    """The launcher at ``path``, by what it prints for ``--version``: Open MPI's, or MPICH's and its kin's."""
    if "Open MPI" not in version:
        return Launcher(path, ("-prepend-rank",), "pmi2")
    root = ("--allow-run-as-root",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    return Launcher(path, ("--output", "tag", "--oversubscribe", "--bind-to", "none", *root), "pmix")


def prefixed(line: str) -> str:
    """A line of a worker's output with ``[rank]`` before it, however the launcher has marked it.

    >>> prefixed("[prterun-host-7@1,3]<stdout>: epoch 1")
    '[3] epoch 1'
    """
    return _TAG.sub(r"[\1] ", line)


def _print_commands(workers: int, worker: Sequence[str], slurm_interface: str) -> None:
    """Print the commands that start the same workers on a cluster."""
    text = shlex.join(["python", *worker[1:]])
    print(
        f"{workers} worker{'s' * (workers > 1)}. On a cluster:\n"
        f"  mpiexec -n {workers} --hostfile HOSTS {text}\n"
        f"  srun --ntasks {workers} --mpi={slurm_interface} {text}",
        file=sys.stderr,
        flush=True,
    )


def _run(command: Sequence[str], workers: int) -> int:
    environment = dict(os.environ)
    threads = max(1, (os.cpu_count() or 1) // workers)
    for variable in ("DUALFLOW_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        environment.setdefault(variable, str(threads))
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    assert process.stdout is not None, "it is a pipe"
    assert process.stderr is not None, "it is a pipe"
    pairs = ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
    with _forwarding(process), progress(f"{workers} worker{'s' * (workers > 1)}") as shown:
        readers = [threading.Thread(target=_copy, args=(*pair, shown)) for pair in pairs]
        for reader in readers:
            reader.start()
        status = process.wait()
        for reader in readers:
            reader.join()
    return status if status >= 0 else 128 - status


def _copy(source: IO[str], target: TextIO, shown: progress) -> None:
    for line in source:
        shown.write(target, prefixed(line))


@contextmanager
def _forwarding(process: subprocess.Popen[str]) -> Iterator[None]:
    """A context manager that forwards signals which would end this process to ``process``."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(number, lambda got, _: process.send_signal(got)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, previous, strict=True):
            signal.signal(number, handler)
