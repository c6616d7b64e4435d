"""The page of ``function/calls`` lists the source files executed by a call: compared with calls."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dualflow

PACKAGE = Path(dualflow.__file__).parent
PAGE = PACKAGE / "function" / "calls" / "README.md"
PROGRAM = """
import sys
import dualflow as df
from dualflow.function.calls import fast_paths

fast_paths.MIN_CALLS = 0  # second calls take the C fast call

def executed_files(call):
    files = {}
    def record_call(frame, event, arg):
        if event == "call":
            files.setdefault(frame.f_code.co_filename)
    sys.setprofile(record_call)
    try:
        call()
    finally:
        sys.setprofile(None)
    return files

x = df.constant([1.0, 2.0])
f = df.function(lambda x, y: x * 2.0 + y)
for _ in range(3):
    print(*executed_files(lambda: f(x, x)), sep=";")
"""


@pytest.fixture(scope="module")
def executed() -> list[set[str]]:
    """The files of ``function`` that each of the first three calls executes, in a process of their own."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    folder = PACKAGE / "function"
    calls = [[Path(name) for name in line.split(";")] for line in ended.stdout.splitlines()]
    return [{str(p.relative_to(folder)) for p in files if folder in p.parents} for files in calls]


def listed(call: str) -> set[str]:
    """The files of ``function`` in the paragraph of a call."""
    text = (
        PAGE.read_text(encoding="utf-8").partition(f"**{call}")[2].partition("\n**")[0].partition("\n## ")[0]
    )
    return set(re.findall(r"`function/([\w/]+\.py)`", text))


@pytest.mark.llvm
def test_the_first_call_passes_the_files_of_the_page(executed: list[set[str]]) -> None:
    assert listed("First call") - executed[0] == set()


@pytest.mark.llvm
@pytest.mark.parametrize(("number", "call"), [(1, "Second call"), (2, "Third call")])
def test_a_later_call_passes_the_files_of_the_page_and_no_others(
    executed: list[set[str]], number: int, call: str
) -> None:
    assert executed[number] == listed(call)


def test_the_page_names_every_file_of_the_package() -> None:
    text = PAGE.read_text(encoding="utf-8")
    files = {path.name for path in PAGE.parent.glob("*.py")} - {"__init__.py"}
    assert {name for name in files if name not in text} == set()
