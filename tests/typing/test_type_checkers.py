"""Type checkers accept a user's program, and report each misspelt name and each value of a wrong kind."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPT, MISTAKES = HERE / "script.py", HERE / "mistakes.py"


def mypy(path: Path, room: Path) -> set[int]:
    """The lines that mypy reports."""
    cache = f"--cache-dir={room / 'mypy'}"
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", cache, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {int(line) for line in re.findall(rf"^{path.name}:(\d+): error", done.stdout, re.MULTILINE)}


def pyright(path: Path, room: Path) -> set[int]:
    """The lines that pyright's engine, as the package basedpyright has it, reports."""
    project = room / "pyrightconfig.json"
    project.write_text(json.dumps({"include": [str(path)], "typeCheckingMode": "standard"}))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(project)]
    done = subprocess.run(
        [*command, "--pythonpath", sys.executable], capture_output=True, text=True, cwd=HERE, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 1
    return {e["range"]["start"]["line"] + 1 for e in found["generalDiagnostics"] if e["severity"] == "error"}


@pytest.fixture(params=[mypy, pyright], ids=["mypy", "pyright"])
def reported(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    return lambda path: request.param(path, tmp_path)


def test_a_program_is_accepted(reported) -> None:
    assert reported(SCRIPT) == set()


def test_each_mistake_is_reported_and_nothing_else(reported) -> None:
    lines = MISTAKES.read_text(encoding="utf-8").splitlines()
    assert reported(MISTAKES) == {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}


def test_the_program_runs() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
