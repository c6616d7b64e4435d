"""Each test runs in .ci/run: those that the README's command leaves out run in a job of their own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dualflow.backends.runtime.switches import PARTS

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

def test_usual(): pass

@pytest.mark.exhaustive
def test_exhaustive(): pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_partly(n): pass
"""
USUAL = {"test_usual", "test_partly[1]"}
EXHAUSTIVE = {"test_exhaustive", "test_partly[2]"}
OTHER = {"test_of_another_folder"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the settings of this one, and two folders of tests."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "conftest.py", folder)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(settings, encoding="utf-8")
    (folder / "tests" / "part").mkdir(parents=True)
    (folder / "dualflow").mkdir()
    (folder / "tests" / "other").mkdir()
    (folder / "tests" / "part" / "test_four.py").write_text(TESTS, encoding="utf-8")
    (folder / "tests" / "other" / "test_one.py").write_text("def test_of_another_folder(): pass")
    return folder


def run(project: Path, *arguments: str) -> tuple[set[str], str]:
    """The names of the tests that pytest runs, and its output."""
    ended = run_pytest(project, *arguments)
    ended.check_returncode()
    return set(re.findall(r"PASSED \S+::(\S+)", ended.stdout)), ended.stdout


def run_pytest(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_XDIST_AUTO_NUM_WORKERS": "2"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_a_run_of_the_suite_names_what_it_leaves_out(project: Path) -> None:
    """Two processes collect the folders in opposite orders; pytest-xdist fails unless the tests have one."""
    tests, output = run(project)
    assert tests == USUAL | OTHER
    assert "2 exhaustive tests (2 of tests/part)\nrun them with: python -m pytest -m exhaustive\n" in output


@pytest.mark.parametrize(
    ("arguments", "tests"),
    [
        (["-m", "exhaustive"], EXHAUSTIVE),
        (["tests/part"], USUAL | EXHAUSTIVE),
        pytest.param(["--exhaustive", "-n0"], USUAL | OTHER | EXHAUSTIVE, marks=pytest.mark.exhaustive),
    ],
    ids=["the marker", "a folder", "the option"],
)
def test_other_runs_leave_nothing_out(project: Path, arguments: list[str], tests: set[str]) -> None:
    ran, output = run(project, *arguments)
    assert ran == tests
    assert "left out" not in output


def test_files_without_the_marker_are_not_read(project: Path) -> None:
    """They take most of the time that pytest needs to collect the suite."""
    (project / "tests" / "part" / "test_other.py").write_text(
        "raise SystemExit('imported')\n", encoding="utf-8"
    )
    ran, _ = run(project, "-m", "exhaustive", "-n0")
    assert ran == EXHAUSTIVE


PHASES = """
import pytest

@pytest.fixture
def fails_before(): raise ValueError("before")

@pytest.fixture
def fails_after():
    yield
    raise ValueError("after")

def test_before(fails_before): pass
def test_after(fails_after): pass
def test_itself(): raise ValueError("itself")
def test_skipped(): pytest.skip("a reason")
"""


def test_a_process_reports_failures_of_each_phase(project: Path) -> None:
    name = "tests/part/test_phases.py"
    file = project / name
    file.write_text(PHASES, encoding="utf-8")
    try:
        output = run_pytest(project, str(file), "-n1").stdout
    finally:
        file.unlink()
    summary = output.partition("short test summary info")[2].splitlines()[1:-1]
    outcomes = [(line.split()[0], line.split()[-1]) for line in summary]
    assert sorted(outcomes) == [
        ("ERROR", "after"),
        ("ERROR", "before"),
        ("FAILED", "itself"),
        ("PASSED", f"{name}::test_after"),
        ("SKIPPED", "reason"),
    ]


def test_the_checks_run_the_commands_of_the_readme_and_the_exhaustive_tests() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^```sh\n(.*)\n```$", readme, re.MULTILINE)
    assert len(commands) == 2
    assert shlex.split(commands[1])[-2:] == ["-m", "pytest"]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert 'job "README: $command" as_the_readme_says "$command" "$clone"\n' in script
    assert "    suite -- -m exhaustive -n 0\n" in script
    assert '\njob "exhaustive tests" exhaustive\n' in script


def test_the_checks_select_tests_of_every_op_that_exist() -> None:
    """A run of pytest with other files does not fail if ``-k`` selects nothing of one."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    selection = re.search(r'^every_op="(\w+) and (\w+)"\nops=(\S+)$', script, re.MULTILINE)
    assert selection is not None
    text = (ROOT / selection[3]).read_text(encoding="utf-8")
    assert re.search(rf"^def test_\w*{selection[1]}\w*\(", text, re.MULTILINE)
    assert f'return "{selection[2]}"' in text
    paths = re.findall(r"tests/[\w/{},]+", script)
    assert [path for path in paths for file in expanded(path) if not list(ROOT.glob(f"{file}*"))] == []


def test_the_checks_switch_each_fast_part_off() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    settings = re.findall(r"suite [^-]*\bDISABLE=([\w,]+)", script)
    assert sorted(part for parts in settings for part in parts.split(",")) == sorted(PARTS)


def expanded(path: str) -> list[str]:
    """The paths that Bash makes of one with braces."""
    head, brace, others = path.partition("{")
    if not brace:
        return [path]
    choices, _, tail = others.partition("}")
    return [file for choice in choices.split(",") for file in expanded(head + choice + tail)]


def test_only_the_marker_leaves_tests_out() -> None:
    """No setting of pytest selects tests; conftest.py does, by the marker."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
        "ini_options"
    ]
    assert not {"-m", "-k", "--ignore", "--deselect"} & {
        word.split("=")[0] for word in shlex.split(options["addopts"])
    }
    assert set(options["testpaths"]) == {"tests", "dualflow"}
