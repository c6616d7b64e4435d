"""Runs libraries written for TensorFlow, unchanged, with dualflow in TensorFlow's place.

    python tests/clients/run.py foolbox pennylane     # these; without names, all
    python tests/clients/run.py --list

Each client is installed into an environment of its own, below ``--folder``, without its dependency
TensorFlow; packages of this environment can be imported there too. The table shows how many tests passed,
failed and were skipped, and how many pass on TensorFlow. The exit status is 1 if fewer passed than the
client's floor, or a test failed that ``known_failures.txt`` doesn't list.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clients import CLIENTS, PROGRAMS, Client, known_failures

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """The results of a client's tests.

    Attributes:
        passed, skipped: the numbers of tests.
        failed: the names of tests.
        seconds: the time of the run.
        output: what it printed.
    """

    passed: int
    skipped: int
    failed: tuple[str, ...]
    seconds: float
    output: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the clients that the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*CLIENTS, []], metavar="CLIENT")
    parser.add_argument("--folder", type=Path, help="of the environments, which later runs use again")
    parser.add_argument("--list", action="store_true", help="print the names of the clients")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        print(*CLIENTS, sep="\n")
        return 0
    names = chosen.names or list(CLIENTS)
    with tempfile.TemporaryDirectory() as temporary:
        return run_all(names, chosen.folder or Path(temporary))


def run_all(names: Sequence[str], folder: Path) -> int:
    """Run clients in environments below ``folder``, and print the table."""
    print(
        f"{'client':16}{'passed':>8}{'floor':>8}{'TF':>8}{'failed':>8}{'skipped':>8}{'seconds':>9}",
        flush=True,
    )
    unmet = 0
    for name in names:
        client = CLIENTS[name]
        outcome = run(client, environment(client, folder / name))
        unexpected = [test for test in outcome.failed if not is_known(name, test)]
        is_unmet = outcome.passed < client.floor or bool(unexpected)
        unmet += is_unmet
        tensorflow = "" if client.tensorflow is None else client.tensorflow
        print(
            f"{name:16}{outcome.passed:9}{client.floor:9}{tensorflow:>9}{len(outcome.failed):9}"
            f"{outcome.skipped:9}{outcome.seconds:9.1f}",
            flush=True,
        )
        for test in unexpected:
            print(f"    fail {test}")
        if is_unmet and not outcome.passed:
            print(outcome.output[-3000:])
    return 1 if unmet else 0


def environment(client: Client, folder: Path) -> Path:
    """The interpreter of an environment with the client's packages, which is created if it is missing."""
    python = folder / "bin" / "python"
    installed = folder / "installed.txt"
    content = f"{client.requirements} {client.repository}"
    if installed.exists() and installed.read_text() == content:
        return python
    venv.create(folder, clear=True)
    if client.repository:
        check_out(client.repository, folder_of_tests(client, python))
    packages = [sysconfig.get_paths()["purelib"], str(ROOT)]
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "of_the_tests.pth").write_text("\n".join(packages) + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    options = ["--quiet", "--no-deps", "--ignore-installed", "--no-compile"]
    subprocess.run([*pip, "install", *options, *client.requirements.split()], check=True)
    installed.write_text(content)
    return python


def check_out(repository: str, folder: Path) -> None:
    """Clone the Python files of a repository, named as ``URL TAG``, into ``folder``, and no others."""
    url, tag = repository.split()
    clone = ["git", "-c", "advice.detachedHead=false", "clone", "--quiet", "--depth=1", f"--branch={tag}"]
    subprocess.run([*clone, "--filter=blob:none", "--sparse", url, str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "sparse-checkout", "set", "--no-cone", "*.py"], check=True)


def folder_of_tests(client: Client, python: Path) -> Path:
    """The folder from which a client's test files are named: its repository's, or ``site-packages``."""
    environment_folder = python.parents[1]
    if client.repository:
        return environment_folder / "repository"
    (site_packages,) = environment_folder.glob("lib/python*/site-packages")
    return site_packages


def run(client: Client, python: Path) -> Outcome:
    """The results of the client's tests."""
    started = time.monotonic()
    mode = ["--v1"] if client.version == 1 else []
    command = [str(python), "-m", "dualflow", "run", *mode, *arguments_of(client, python)]
    settings = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{PROGRAMS}", "PYTHONWARNINGS": "ignore"}
    settings |= dict(setting.split("=", 1) for setting in client.environment)
    with tempfile.TemporaryDirectory() as folder:
        finished = subprocess.run(
            command,
            cwd=folder,
            env=settings,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    output, seconds = finished.stdout, time.monotonic() - started
    if client.program:
        failed = re.findall(r"^fail (.*)$", output, re.MULTILINE)
        passed = re.findall(r"^pass (.*)$", output, re.MULTILINE)
        return Outcome(len(passed), 0, tuple(failed), seconds, output)
    tests = re.escape(folder_of_tests(client, python).name)
    failed = re.findall(rf"^(?:FAILED|ERROR) \S*?{tests}/(\S+)", output, re.MULTILINE)
    return Outcome(_count(output, "passed"), _count(output, "skipped"), tuple(failed), seconds, output)


def arguments_of(client: Client, python: Path) -> list[str]:
    """The program that ``dualflow run`` runs, and its arguments."""
    if client.program:
        return [str(PROGRAMS / client.program)]
    tests = folder_of_tests(client, python)
    quiet = ["-q", "--no-header", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options = [*quiet, *client.options, "--rootdir", str(tests)]
    return ["-m", "pytest", *options, *(str(tests / name) for name in client.tests.split())]


def is_known(name: str, test: str) -> bool:
    """Whether a test of a client is listed as failing."""
    return any(row.client == name and re.search(row.tests, test) for row in known_failures())


def _count(output: str, kind: str) -> int:
    """The number before ``kind`` in the last line of pytest's output that has it."""
    counts = re.findall(rf"(\d+) {kind}", output)
    return int(counts[-1]) if counts else 0


if __name__ == "__main__":
    sys.exit(main())
