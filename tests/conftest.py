"""Markers, random seeds and fixtures for the tests of all packages."""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.runtime import switches
from dualflow.function.calls import fast_paths
from dualflow.ops.families import load_families

pytest.register_assert_rewrite("error_cases")

if not os.environ.get("DUALFLOW_TESTS_LOAD_PROGRAMS"):
    with pytest.MonkeyPatch.context() as at_first_read:
        # Tests patch the compiler, and so don't load programs; processes that they start do.
        # The variable is for tests that load what an earlier run has stored.
        parts = os.environ.get(switches.VARIABLE)
        at_first_read.setenv(switches.VARIABLE, f"{parts},programs" if parts else "programs")
        switches.named()

load_families()  # tests of every op have the same ops in the same order, whichever files are collected first

fast_paths.MIN_CALLS = 0  # second calls take the C fast call

LLVM_FOLDERS = [Path(__file__).parent / folder for folder in ("backends/llvm", "schedule")]
"""Tests of the default backend, and of the plans of its compiled graphs."""


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Leave out the doctests of this folder: it has none, and each file would be searched for them."""
    collectors = yield
    return [collector for collector in collectors if type(collector) is pytest.Module]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    of_llvm = {
        path: any(folder in path.parents for folder in LLVM_FOLDERS) for path in {item.path for item in items}
    }
    for item in items:
        if of_llvm[item.path]:
            item.add_marker("llvm")


def pytest_runtest_setup() -> None:
    """Begin the process's streams of random numbers anew: a test draws the same whichever ran before it."""
    random.seed(0)
    np.random.seed(0)
    df.random.set_seed(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    """Tests marked ``llvm`` are about the default backend, whichever the suite runs on.

    An autouse fixture would do the same, for each of all other tests, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("llvm"):
            patch.delenv("DUALFLOW_BACKEND", raising=False)
        return (yield)


@pytest.fixture(params=["eager", "compiled"])
def mode(request: pytest.FixtureRequest) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``mode(f)`` runs ``f`` op by op, and in a second test compiled."""
    return df.function if request.param == "compiled" else lambda f: f


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
