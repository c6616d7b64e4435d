"""A run in several processes reports each test once, with what a run in one process reports of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFTEST = """
from parallel_files import run_in_processes

def pytest_runtestloop(session):
    return None if session.testsfailed else run_in_processes(session, 2)
"""
ENDS = """
import warnings
import pytest

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    yield tmp_path_factory.mktemp("folder")
    print("the module has ended")

@pytest.fixture
def disk(): raise OSError("full")

def test_passes(folder): pass
def test_fails(): print("seen"); assert [1] == [2]
def test_errs(disk): pass
def test_warns():
    class OwnWarning(UserWarning): pass
    warnings.warn("careful", OwnWarning)
@pytest.mark.skip(reason="not today")
def test_skips(): pass
@pytest.mark.xfail
def test_fails_as_expected(): assert False
@pytest.mark.parametrize("n", range(3))
def test_writes_a_lot(n, folder): print("x" * 100_000)
"""
DIES = """
import os, signal

def test_before(): pass
def test_dies(): os.kill(os.getpid(), signal.SIGKILL)
def test_leaves(): os._exit(3)
def test_after(): pass
"""


def run(folder: Path, *options: str, parallel: bool = True) -> str:
    """What pytest prints of the tests in a folder."""
    shutil.copy(ROOT / "tests" / "harness" / "parallel_files.py", folder)
    (folder / "conftest.py").write_text(CONFTEST if parallel else "", encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA", *options]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return ended.stdout + ended.stderr


def outcomes(output: str) -> list[str]:
    """The lines of the summary, one for each test, and the last line without its time."""
    lines = re.findall(r"^(?:PASSED|FAILED|ERROR|SKIPPED|XFAIL) .*$", output, re.MULTILINE)
    return [*sorted(lines), output.splitlines()[-1].partition(" in ")[0]]


def test_each_test_has_the_report_that_one_process_gives(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(ENDS, encoding="utf-8")
    one, several = run(tmp_path, parallel=False), run(tmp_path)
    assert outcomes(several) == outcomes(one)
    assert outcomes(one)[-1] == "3 failed, 15 passed, 3 skipped, 3 xfailed, 3 warnings, 3 errors"
    for text in ("assert [1] == [2]", "Captured stdout call", "the module has ended", "Warning: careful"):
        assert several.count(text) == one.count(text) > 0


def test_a_process_that_dies_fails_its_test_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "test_dies.py").write_text(DIES, encoding="utf-8")
    (tmp_path / "test_lives.py").write_text(ENDS, encoding="utf-8")
    output = run(tmp_path)
    assert "the process that ran test_dies.py::test_dies ended by SIGKILL" in output
    assert "the process that ran test_dies.py::test_leaves ended with exit status 3" in output
    assert {"PASSED test_dies.py::test_before", "PASSED test_dies.py::test_after"} <= set(outcomes(output))
    assert outcomes(output)[-1] == "3 failed, 7 passed, 1 skipped, 1 xfailed, 1 warning, 1 error"


@pytest.mark.parametrize("options", [["-x"], ["--maxfail", "2"]], ids=str)
def test_a_run_stops_at_the_last_failure_that_is_allowed(options: list[str], tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"test_{number}.py").write_text("def test_it(): assert False\n", encoding="utf-8")
    output = run(tmp_path, *options)
    assert f"stopping after {len(options)} failures" in output
    assert outcomes(output)[-1] == f"{len(options)} failed"


def test_a_file_that_cannot_be_collected_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    (tmp_path / "test_lives.py").write_text("def test_it(): pass\n", encoding="utf-8")
    assert "1 error during collection" in run(tmp_path)


def test_threads_that_forks_would_lack_are_refused(tmp_path: Path) -> None:
    text = "import threading, time\nthreading.Thread(target=time.sleep, args=[60], daemon=True).start()\n"
    (tmp_path / "test_threads.py").write_text(text + "def test_it(): pass\n", encoding="utf-8")
    assert "the collection has started threads (1), which a fork lacks" in run(tmp_path)
