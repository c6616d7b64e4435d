"""The ``conftest`` that Keras's tests expect, which its wheel doesn't have.

It also writes what became of each test to the file that ``KERAS_OUTCOMES`` names.
"""

import gc
import importlib.util
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from keras_dualflow.startup import watch

watch()  # before a test imports Keras
ROOT = Path(importlib.util.find_spec("keras").origin).parent / "src"
NEEDED = re.compile(r"^(?:import|from) (tensorflow|jax|torch|grain|orbax)\b", re.MULTILINE)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requires_trainable_backend: a test that trains a model")
    config.addinivalue_line("markers", "multi_device: a test of several devices")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out a file that imports a package which is not installed."""
    if collection_path.suffix != ".py":
        return None
    needed = set(NEEDED.findall(collection_path.read_text(encoding="utf-8")))
    missing = sorted(name for name in needed if importlib.util.find_spec(name) is None)
    if missing:
        _note("left out", f"{collection_path.relative_to(ROOT)} needs {', '.join(missing)}")
    return True if missing else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    one_device = pytest.mark.skip(reason="there is one device")
    for item in items:
        if "multi_device" in item.keywords:
            item.add_marker(one_device)


def pytest_runtest_setup() -> None:
    """Draw the same numbers in each run: tolerances of some quantized layers are too narrow for all draws."""
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True, scope="module")
def _what_other_files_hold() -> None:
    """Leave it, and the collected tests, out of garbage collection.

    Layers collect garbage at each variable that they delete, which takes longer than the tests otherwise.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call" or report.outcome != "passed":
        within = item.nodeid.split("::", 1)[1]
        _note(report.outcome, f"{item.path.relative_to(ROOT)}::{within}")
    return report


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.outcome == "failed":
        _note("failed", f"{report.nodeid.rpartition('keras/src/')[2]} is not collected")


def _note(outcome: str, what: str) -> None:
    path = os.environ.get("KERAS_OUTCOMES")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{outcome}\t{what}\n")


def skip_if_backend(backend: str, reason: str) -> pytest.MarkDecorator:
    """Skip a test where Keras runs on ``backend``."""
    return pytest.mark.skipif(os.environ["KERAS_BACKEND"] == backend, reason=reason)
