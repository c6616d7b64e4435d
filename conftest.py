"""Settings of pytest: how examples are drawn, what a run of the whole suite leaves out, and its processes.

It imports the package before pytest collects doctests, whose importlib mode would import each file again.
"""

from __future__ import annotations

import gc
import linecache
import os
import tempfile
import zlib
from collections import Counter
from collections.abc import Generator
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

# Before NumPy is loaded, here and in the processes that tests start: threads of OpenBLAS busy-wait after each
# call, for processors that other tests could use.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Keras writes its settings when it is first imported: here, and not to the folder of whoever runs the tests.
if "KERAS_HOME" not in os.environ:
    KERAS_HOME = tempfile.TemporaryDirectory(prefix="keras")
    os.environ["KERAS_HOME"] = KERAS_HOME.name

import dualflow  # noqa: F401

# A machine that is busy with something else is no fault of a test; the same tree passes or fails each time.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    max_examples=20,
)
settings.load_profile("patient")
# Other examples at each run, to look for new faults: pytest --hypothesis-profile explore
settings.register_profile("explore", derandomize=False, max_examples=100)
# For a suite that runs once more in another setting: pytest --hypothesis-profile brief
settings.register_profile("brief", max_examples=8)


LEFT_OUT = pytest.StashKey[Counter[str]]()
"""The number of exhaustive tests that the run leaves out, by folder."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", metavar="I/N", help="only files of the I-th of N parts; each is in one of them"
    )
    parser.addoption(
        "--exhaustive",
        action="store_true",
        default=None,
        help="also run the tests marked exhaustive. Only a run without files, -m and -k leaves them out",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run the whole suite on all processors, one file after another on each, if pytest-xdist is installed.

    Such a run leaves the exhaustive tests out. A run that names files, a part, a number of processes or a
    debugger has one process.
    """
    option = config.option
    if hasattr(config, "workerinput"):
        return
    whole = config.args_source is config.ArgsSource.TESTPATHS and option.part is None
    if whole and not getattr(option, "usepdb", False) and getattr(option, "numprocesses", 0) is None:
        option.numprocesses, option.dist = "auto", "loadfile"
    if option.exhaustive is None:
        option.exhaustive = not whole or bool(option.markexpr or option.keyword)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the decision to a process of pytest-xdist, where the options of this file have their defaults."""
    node.workerinput["exhaustive"] = node.config.option.exhaustive


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of other parts, and with ``-m exhaustive`` those that do not name the marker.

    Which files share a process is the same each time.
    """
    part = config.getoption("part")
    if collection_path.suffix != ".py":
        return None
    if config.option.markexpr == "exhaustive" and b"exhaustive" not in collection_path.read_bytes():
        return True
    if not part:
        return None
    number, count = map(int, part.split("/"))
    name = collection_path.relative_to(config.rootpath).as_posix()
    return None if zlib.crc32(name.encode()) % count == number - 1 else True


class CollectsBackwards:
    """A plugin of a process that collects the last file first, and orders the tests as other processes do.

    In a fresh clone Python compiles each module that is imported, pytest rewrites each file of tests, and
    Hypothesis reads the constants of each module. Two processes in the same order would do all of it twice;
    in opposite orders each does one half, and reads what the other has written.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        # Packages import their modules in their own order.
        if collector.nodeid in ("", *collector.config.args):
            report.result.reverse()
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        parts = groupby(items, key=lambda item: item.nodeid.partition("::")[0].split("/")[:2])
        items[:] = chain.from_iterable(reversed([list(tests) for _, tests in parts]))


def pytest_configure(config: pytest.Config) -> None:
    """In a process of pytest-xdist, use the first one's decision; every second one collects backwards."""
    if not hasattr(config, "workerinput"):
        return
    config.option.exhaustive = config.workerinput["exhaustive"]
    process = config.workerinput["workerid"]
    if int(process.removeprefix("gw")) % 2 == 1 and config.args == config.getini("testpaths"):
        config.pluginmanager.register(CollectsBackwards())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.exhaustive:
        return
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    folders = ("/".join(item.path.relative_to(config.rootpath).parts[:2]) for item in left_out)
    config.stash[LEFT_OUT] = Counter(folders)
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=left_out)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the numbers to the process that prints them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash.get(LEFT_OUT, Counter()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep the numbers of a process of pytest-xdist: each collects the whole suite."""
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash.get(LEFT_OUT, Counter())
    if left_out:
        folders = ", ".join(f"{number} of {folder}" for folder, number in sorted(left_out.items()))
        terminalreporter.section("left out")
        terminalreporter.line(f"{left_out.total()} exhaustive tests ({folders})")
        terminalreporter.line("run them with: python -m pytest -m exhaustive")


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test in a process of pytest-xdist, and send the first process the report of its call.

    It prints nothing else. Reports of setups and teardowns that passed, and messages that a test begins and
    ends, take more time than most tests. ``--durations`` and ``--junit-xml`` need them.
    """
    option = item.config.option
    if not hasattr(item.config, "workerinput") or option.durations is not None or option.xmlpath:
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave the collected tests out of garbage collection, which takes seconds for so many objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _what_other_files_hold() -> None:
    """Leave it out of garbage collection, which takes a second where tens of thousands of tests have run.

    Forget the lines of source files that were read for tracebacks: each doctest looks for changes of all.
    """
    gc.collect()
    gc.freeze()
    for name, entry in list(linecache.cache.items()):
        if len(entry) > 1 and entry[1] is not None:  # a file; other lines come from code that has none
            del linecache.cache[name]
