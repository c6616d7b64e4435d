"""Runs the files of tests in several processes, forks of the process that has collected them.

Each takes one file after another, and sends the reports of each test to the first process, which prints them.
Where a process dies, the test that it ran has failed, and a new process runs the others of its file.

Each process of pytest-xdist would collect the whole suite, and its messages take 2 ms for each test: together
a tenth of the time of the suite.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import pytest

CONTEXT = multiprocessing.get_context("fork")


class FinishedTest(NamedTuple):
    """The reports and warnings of a test, as a process sends them.

    Attributes:
        reports: those of its setup, call and teardown, in pytest's serialized form.
        warnings: the arguments of a call of ``pytest_warning_recorded`` for each.
    """

    reports: list[dict[str, Any]]
    warnings: list[dict[str, Any]]


def run_in_processes(session: pytest.Session, count: int) -> bool:
    """Run the collected tests in ``count`` processes. Returns True: no other plugin has to run them.

    Raises:
        pytest.UsageError: the collection has started threads, which the forks would lack.
    """
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        raise pytest.UsageError(
            f"the collection has started threads ({threads - 1}), which a fork lacks. Start them in a "
            "fixture rather than when a file of tests is imported, or run pytest with --processes 1."
        )
    files = Files(session)
    workers = [Worker(files) for _ in range(min(count, len(files.tests)))]
    try:
        while workers:
            wait([x for worker in workers for x in (worker.connection, worker.process.sentinel)])
            for worker in list(workers):
                if not worker.receive():
                    workers.remove(worker)
                    if worker.pending:
                        worker.report_crash()
                        workers.append(Worker(files, list(worker.pending)))
    finally:
        for worker in workers:
            worker.process.terminate()
            worker.process.join()
    return True


class Files:
    """The collected tests by file, and the number of files that processes have taken."""

    def __init__(self, session: pytest.Session) -> None:
        self.session = session
        self.tests = [list(items) for _, items in groupby(session.items, key=lambda item: item.path)]
        self._taken = CONTEXT.Value("q", 0)

    def take(self) -> Iterator[int]:
        """The numbers of files that no other process has taken, each when the one before is finished."""
        while True:
            with self._taken.get_lock():
                number = self._taken.value
                self._taken.value += 1
            if number >= len(self.tests):
                return
            yield number


class Worker:
    """A process, as the first process sees it.

    Attributes:
        process: the fork.
        connection: where its messages arrive: the number of a file before its first test, and finished tests.
        pending: the tests of its file that have not finished, in their order.
    """

    def __init__(self, files: Files, tests: Sequence[pytest.Item] = ()) -> None:
        """Start a process, which runs ``tests`` before it takes a file."""
        self._files, self.pending = files, deque(tests)
        self.connection, other = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(target=run_files, args=(files, tests, other))
        self.process.start()
        other.close()

    def receive(self) -> bool:
        """Read the messages that have arrived. Returns whether others may follow."""
        alive = self.process.is_alive()
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if isinstance(message, int):
                    self.pending.extend(self._files.tests[message])
                else:
                    self._report(message)
        except EOFError:
            self.process.join()
            return False
        return alive

    def _report(self, test: FinishedTest) -> None:
        item = self.pending.popleft()
        for arguments in test.warnings:
            item.ihook.pytest_warning_recorded.call_historic(kwargs=arguments)
        restore = item.ihook.pytest_report_from_serializable
        log(item, [restore(config=item.config, data=data) for data in test.reports])

    def report_crash(self) -> None:
        """Fail the test that the process was running when it ended."""
        status = self.process.exitcode or 0
        end = f"by {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"
        item = self.pending.popleft()
        text = f"the process that ran {item.nodeid} ended {end}"
        log(item, [pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")])


def log(item: pytest.Item, reports: Sequence[pytest.TestReport]) -> None:
    """Pass the reports of a test to all plugins, as if it had run in this process.

    Raises:
        pytest.Session.Failed: as many tests have failed as ``--maxfail`` allows.
        pytest.Session.Interrupted: a plugin stops the run.
    """
    session = item.session
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


# In the forks


class Recorder:
    """A plugin that keeps the reports and warnings of the test that runs."""

    def __init__(self) -> None:
        self._reports: list[pytest.TestReport] = []
        self._warnings: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        filename, line = warning_message.filename, warning_message.lineno
        category = next(c for c in warning_message.category.__mro__ if "<locals>" not in c.__qualname__)
        message = warnings.WarningMessage(str(warning_message.message), category, filename, line)
        self._warnings.append(
            {"warning_message": message, "when": when, "nodeid": nodeid, "location": location}
        )

    def finished_test(self, config: pytest.Config) -> FinishedTest:
        """What was recorded since the last call."""
        serialize = config.hook.pytest_report_to_serializable
        test = FinishedTest([serialize(config=config, report=x) for x in self._reports], self._warnings)
        self._reports, self._warnings = [], []
        return test


def run_files(files: Files, tests: Sequence[pytest.Item], connection: Connection) -> None:
    """Run ``tests``, then the files that this process takes, and send each test when it has finished."""
    config = files.session.config
    plugins, recorder = config.pluginmanager, Recorder()
    plugins.unregister(name="terminalreporter")
    plugins.register(recorder)
    recorder.finished_test(config)  # the warnings of the collection, which pytest repeats for a new plugin
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()  # all processes would share its files
    capture.start_global_capturing()
    run_tests(tests, recorder, connection)
    for number in files.take():
        connection.send(number)
        run_tests(files.tests[number], recorder, connection)


def run_tests(tests: Sequence[pytest.Item], recorder: Recorder, connection: Connection) -> None:
    """Run tests of one file, and send each when it has finished."""
    for item, following in zip_longest(tests, tests[1:]):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        connection.send(recorder.finished_test(item.config))
