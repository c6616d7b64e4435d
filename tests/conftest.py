"""What tests of several rooms ask of the code itself."""

from __future__ import annotations

import ast
import gc
import random
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df

PACKAGE = Path(df.__file__).parent
LLVM_ROOMS = [Path(__file__).parent / room for room in ("backends/llvm", "schedule")]
"""Tests of the default backend, and of plans that they look at in its compiled graphs."""
Site = tuple[str, int, int]
"""The file of a ``raise``, and its first and last line."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    found = {path: any(room in path.parents for room in LLVM_ROOMS) for path in {item.path for item in items}}
    for item in items:
        if found[item.path]:
            item.add_marker("llvm")


def pytest_runtest_setup() -> None:
    """Begin the process's streams of random numbers anew: a test draws the same whichever ran before it."""
    random.seed(0)
    np.random.seed(0)
    df.random.set_seed(0)


@pytest.fixture(autouse=True)
def _backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests marked ``llvm`` are about the default backend, whichever the suite runs on."""
    if request.node.get_closest_marker("llvm"):
        monkeypatch.delenv("DUALFLOW_BACKEND", raising=False)


def _sites(path: Path) -> Iterable[Site]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func)
            if name.endswith("Error") and name != "InternalError":
                yield str(path), node.lineno, node.end_lineno or node.lineno


def _places(call: Callable[[], Any]) -> Iterable[tuple[str, int]]:
    """Where the error that ``call`` raises was raised, and where those were that it came of."""
    try:
        call()
    except Exception as raised:
        pending: list[BaseException | None] = [raised]
        while pending:
            error = pending.pop()
            if error is not None:
                frames = [
                    (frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)
                ]
                yield from frames[-1:]
                pending += [error.__context__, error.__cause__]


@pytest.fixture
def lines_run() -> Callable[[Callable[[], Any]], int]:
    """``lines_run(call)`` is how many lines of Python run in ``call()``: its work, without a clock."""

    def count(call: Callable[[], Any]) -> int:
        lines = 0

        def listen(frame: Any, event: str, arg: Any) -> Any:
            nonlocal lines
            lines += event == "line"
            return listen

        before = sys.gettrace()
        gc.disable()  # whatever it frees may run Python, and Hypothesis listens to it
        sys.settrace(listen)
        try:
            call()
        finally:
            sys.settrace(before)
            gc.enable()
        return lines

    return count


@pytest.fixture(scope="session")
def raises_without_case() -> Callable[[Iterable[str], Iterable[Callable[[], Any]]], list[str]]:
    """``raises_without_case(files, calls)``: each ``raise`` of an error of ours that no call gets to.

    ``files`` are patterns under the package.
    """

    def find(patterns: Iterable[str], calls: Iterable[Callable[[], Any]]) -> list[str]:
        df.debugging.disable_traceback_filtering()
        try:
            reached = {place for call in calls for place in _places(call)}
        finally:
            df.debugging.enable_traceback_filtering()
        files = [path for pattern in patterns for path in sorted(PACKAGE.glob(pattern))]
        return [
            f"{Path(file).relative_to(PACKAGE)}:{first}"
            for path in files
            for file, first, last in _sites(path)
            if not any((file, line) in reached for line in range(first, last + 1))
        ]

    return find
