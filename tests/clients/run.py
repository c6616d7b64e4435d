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
    if installed.exists() and installed.read_text() == client.requirements:
        return python
    venv.create(folder, clear=True)
    packages = [sysconfig.get_paths()["purelib"], str(ROOT)]
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "of_the_tests.pth").write_text("\n".join(packages) + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    options = ["--quiet", "--no-deps", "--ignore-installed", "--no-compile"]
    subprocess.run([*pip, "install", *options, *client.requirements.split()], check=True)
    installed.write_text(client.requirements)
    return python


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
    failed = re.findall(r"^(?:FAILED|ERROR) \S*?site-packages/(\S+)", output, re.MULTILINE)
    return Outcome(_count(output, "passed"), _count(output, "skipped"), tuple(failed), seconds, output)


def arguments_of(client: Client, python: Path) -> list[str]:
    """The program that ``dualflow run`` runs, and its arguments."""
    if client.program:
        return [str(PROGRAMS / client.program)]
    (site_packages,) = python.parents[1].glob("lib/python*/site-packages")
    quiet = ["-q", "--no-header", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options = [*quiet, *client.options, "--rootdir", str(site_packages)]
    return ["-m", "pytest", *options, str(site_packages / client.tests)]


def is_known(name: str, test: str) -> bool:
    """Whether a test of a client is listed as failing."""
    return any(row.client == name and re.search(row.tests, test) for row in known_failures())


def _count(output: str, kind: str) -> int:
    """The number before ``kind`` in the last line of pytest's output that has it."""
    counts = re.findall(rf"(\d+) {kind}", output)
    return int(counts[-1]) if counts else 0


if __name__ == "__main__":
    sys.exit(main())
