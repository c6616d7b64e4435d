"""Programs that several real workers of MPI run: each check of a program once, by all workers together."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from required_tools import PIP_INSTALL, missing, require_module

from dualflow.cli.call import CommandError
from dualflow.cli.launch import mpi_launcher
from dualflow.distribute.world import launcher_rank_and_size

RESULTS = "WORKER_RESULTS"
"""The environment variable with the folder to which workers write what their checks raised."""
SETTINGS = {"DUALFLOW_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
"""The environment of workers: one that waits for another one yields its processor, which other tests need."""


def launch(
    words: Sequence[str], workers: int, *, env: Mapping[str, str] | None = None, timeout: float = 400
) -> subprocess.CompletedProcess[str]:
    """``python -m dualflow launch -n WORKERS *words``, when it has ended."""
    require_mpi()
    command = [sys.executable, "-m", "dualflow", "launch", "-n", str(workers), *words]
    return subprocess.run(
        command,
        env={**os.environ, **SETTINGS, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def require_mpi() -> None:
    """Skip or fail the test if mpi4py or mpiexec is missing."""
    require_module("mpi4py")
    try:
        mpi_launcher()
    except CommandError:
        missing("mpiexec", PIP_INSTALL)


def checks_of(*programs: Path) -> list[str]:
    """The names of the checks of some programs: of their functions that begin with ``check_``."""
    trees = [ast.parse(program.read_text(encoding="utf-8")) for program in programs]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name for name in names if name.startswith("check_")]


def run_programs(
    programs: Sequence[Path], workers: int, folder: Path, names: Sequence[str] = ()
) -> dict[str, list[str]]:
    """What each check of some programs, or of ``names``, raised on each worker: "" for nothing.

    The same workers run all programs, one after another.
    """
    names = names or checks_of(*programs)
    checks = [f"{program}:{name}" for program in programs for name in checks_of(program) if name in names]
    ended = launch([__file__, *checks], workers, env={RESULTS: str(folder)})
    files = [folder / f"{rank}.json" for rank in range(workers)]
    if ended.returncode or not all(file.exists() for file in files):
        raise AssertionError(f"exit status {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
    by_worker = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return {name: [raised[name] for raised in by_worker] for name in names}


def main() -> None:
    """Run the checks that the arguments name, as ``PROGRAM:CHECK``, in a worker."""
    raised: dict[str, str] = {}
    for argument in sys.argv[1:]:
        program, _, name = argument.rpartition(":")
        check = getattr(_module(program), name)
        try:
            check()
            raised[name] = ""
        except Exception:
            raised[name] = traceback.format_exc()
    rank, _ = launcher_rank_and_size()
    Path(os.environ[RESULTS], f"{rank}.json").write_text(json.dumps(raised), encoding="utf-8")


def _module(program: str) -> ModuleType:
    """The module of a program, which is imported once."""
    path = Path(program)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    return importlib.import_module(path.stem)


if __name__ == "__main__":
    main()
