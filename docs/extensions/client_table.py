"""The page of clients: libraries that run on dualflow, from the table of ``tests/clients`` that runs them."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "clients"))

from clients import CLIENTS, Client, known_failures  # noqa: E402  # a folder of scripts, which is no package

INTRODUCTION = """\
# Other people's software

Libraries written for TensorFlow, which run unchanged with dualflow in TensorFlow's place: `import tensorflow`
gives dualflow. `python tests/clients/run.py NAME` installs one of them into an environment of its own, and
runs its tests, or a program of ours if its package has no tests. [`dualflow run`](../from_tensorflow_2.md)
runs your own program in the same way.

*Passes here* is the number that must pass, *on TensorFlow* the number that pass on TensorFlow 2.21 with the
same versions; it is empty if they have not run there.

| library | version | what runs | passes here | on TensorFlow |
| :--- | :--- | :--- | ---: | ---: |
"""
FAILURES = """\
## Tests that fail

Regular expressions of the names, and the reason.

"""


def clients_page() -> str:
    """The page: a row for each client, and an item for each known failure."""
    rows = [client_row(name, client) for name, client in CLIENTS.items()]
    return "\n".join([INTRODUCTION + "\n".join(rows), "", FAILURES + "\n".join(failure_items()), ""])


def client_row(name: str, client: Client) -> str:
    """The row of a client: its first requirement is the library itself, unless it is a git repository."""
    tag = client.repository.rpartition(" ")[2]
    version = tag.removeprefix("v") or client.requirements.partition(" ")[0].partition("==")[2]
    files = client.tests.split()
    runs = f"`tests/clients/programs/{client.program}`"
    if files:
        runs = f"its tests in `{files[0]}`" if len(files) == 1 else f"{len(files)} of its files of tests"
    tensorflow = "" if client.tensorflow is None else f"{client.tensorflow:,}"
    return f"| {name} | {version} | {runs} | {client.floor:,} | {tensorflow} |"


def failure_items() -> list[str]:
    """The items of the known failures."""
    return [f"* {client}, `{tests}`: {reason}" for client, tests, reason in known_failures()]
