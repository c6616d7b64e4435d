"""Type checkers accept the packages and programs, and report each misspelt name and value of a wrong kind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from required_tools import require_installed

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PACKAGES = (ROOT / "dualflow", ROOT / "keras_dualflow", ROOT / "benchmarks")
PROGRAMS = [HERE / "script.py", HERE / "program.py"]
MISTAKES = HERE / "mistakes.py"
FILES = [*PROGRAMS, MISTAKES]


def mypy(_: Path) -> set[tuple[Path, int]]:
    """The files and lines that mypy reports, which checks the packages, too."""
    require_installed("mypy")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", f"--cache-dir={os.devnull}"]
    done = subprocess.run(
        [*command, *map(str, (*PACKAGES, *FILES))], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    places = re.findall(r"^(\S+\.py):(\d+): error", done.stdout, re.MULTILINE)
    return {(ROOT / name, int(line)) for name, line in places}


def pyright(folder: Path) -> set[tuple[Path, int]]:
    """The files and lines that pyright's engine, as the package basedpyright has it, reports."""
    require_installed("basedpyright")
    project = folder / "pyrightconfig.json"
    project.write_text(json.dumps({"include": [str(path) for path in FILES], "typeCheckingMode": "standard"}))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(project)]
    done = subprocess.run(
        [*command, "--pythonpath", sys.executable], capture_output=True, text=True, cwd=HERE, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(FILES)
    errors = [e for e in report["generalDiagnostics"] if e["severity"] == "error"]
    return {(Path(e["file"]), e["range"]["start"]["line"] + 1) for e in errors}


@pytest.fixture(scope="module", params=[mypy, pyright], ids=["mypy", "pyright"])
def reported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> object:
    """``reported(path)``: the lines of a file that a checker reports, which has read all files at once."""
    result = request.param(tmp_path_factory.mktemp("checker"))
    return lambda path: {line for file, line in result if path in (file, *file.parents)}


@pytest.mark.exhaustive
@pytest.mark.parametrize("accepted", [*PACKAGES, *PROGRAMS], ids=lambda path: path.stem)
def test_packages_and_programs_are_accepted(reported, accepted: Path) -> None:
    assert reported(accepted) == set()


@pytest.mark.exhaustive
def test_each_mistake_is_reported_and_nothing_else(reported) -> None:
    lines = MISTAKES.read_text(encoding="utf-8").splitlines()
    assert reported(MISTAKES) == {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}


def test_type_checkers_of_other_projects_read_the_types() -> None:
    assert (ROOT / "dualflow" / "py.typed").is_file()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_the_program_runs(program: Path) -> None:
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
