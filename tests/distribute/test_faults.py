"""What a job does when something goes wrong on one of its workers: all end, with an error that names it."""

from __future__ import annotations

import json
import socket
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest
from workers import launch

from dualflow.distribute.diagnosis import Job, WorkerReport
from dualflow.distribute.monitor import MonitorServer, hello

PROGRAM = Path(__file__).with_name("programs") / "faults.py"
DIFFERENT = r"Collective 4 is all_reduce of float32\[4\] on worker 0 and "
FAULTS = {
    "kill": r"Worker 1 \(process \d+ on \S+\) has died|rank 1 .* signal 9",
    "raise": r"Worker 1 has failed: ZeroDivisionError: a fault of the test",
    "steps": r"Worker 1 has ended after 3 collectives, and worker 0 waits in collective 4, all_reduce of",
    "shape": DIFFERENT + r"all_reduce of float32\[5\] on worker 1",
    "dtype": DIFFERENT + r"all_reduce of float64\[4\] on worker 1",
    "function": DIFFERENT + r"all_gather of float32\[any\] on worker 1",
    "hang": r"Worker 0 has waited 2 s \(timeout=\) in collective 4.* for worker 1, File .*faults.py\", line",
    "interrupt": r"Worker 1 has failed: KeyboardInterrupt",
    "version": r"Worker 1 runs dualflow 9.9, and worker 0 runs",
}
IN_EACH_RUN = ("kill", "steps", "shape")
"""The faults of which each run of the suite starts a job; the exhaustive one starts all."""


@pytest.mark.parametrize(
    "fault", [f if f in IN_EACH_RUN else pytest.param(f, marks=pytest.mark.exhaustive) for f in FAULTS]
)
def test_a_fault_of_one_worker_ends_all_and_is_named(fault: str) -> None:
    ended: subprocess.CompletedProcess[str] = launch([str(PROGRAM), fault], 2, timeout=100)
    assert ended.returncode != 0
    assert_matches(FAULTS[fault], ended.stderr)
    if fault != "version":  # which ends the job before a worker has its number
        assert sorted(ended.stdout.splitlines()) == ["[0] worker 0", "[1] worker 1"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("fault", "form"),
    [("steps", "loop"), ("hang", "loop"), ("interrupt", "loop"), ("shape", "loop"), ("shape", "any-size")],
)
def test_a_fault_is_named_in_loops_and_with_dynamic_sizes(fault: str, form: str) -> None:
    ended: subprocess.CompletedProcess[str] = launch([str(PROGRAM), fault, form], 2, timeout=100)
    assert ended.returncode != 0
    assert_matches(FAULTS[fault], ended.stderr)


def assert_matches(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=pattern):  # shows the text
        raise ValueError(" ".join(text.split()))


# The server of the monitor


def test_the_monitor_ignores_what_other_programs_send() -> None:
    server = MonitorServer(1, local=True, timeout=lambda: 60.0)
    for line in (b"", b"\n", b"GET / HTTP/1.1\r\nHost: a.org\r\n\r\n", b"\xff\xfe" * 30, b"[" * 5000 + b"\n"):
        with socket.create_connection(server.address) as other:
            other.sendall(line)
    greeting = hello(server.token, 0, "host", 1)
    with socket.create_connection(server.address, timeout=60) as worker:
        worker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # each part is a segment
        for part in (greeting[:5], greeting[5:40], greeting[40:]):
            worker.sendall(part)
        worker.sendall(json.dumps(asdict(report(0, 0, 0, ended=True))).encode() + b"\n")
        assert worker.recv(100) == b'"done"\n'


# The diagnoses, which are functions of reports


def report(
    rank: int, begun: int, finished: int, signatures: tuple[int, ...] = (), **state: object
) -> WorkerReport:
    texts = {"7": "all_reduce of float32[4]", "8": "broadcast of int32[]"}
    return WorkerReport(rank, begun, finished, signatures, texts, **state)  # type: ignore[arg-type]


def diagnosis(*reports: WorkerReport, timeout: float = 60.0) -> str:
    job = Job(2)
    for one in reports:
        job.add(one)
    return job.diagnosis(timeout)


def test_a_job_that_runs_has_no_diagnosis() -> None:
    assert diagnosis() == ""
    assert diagnosis(report(0, 2, 1, (7, 8), waiting=59.0), report(1, 1, 1, (7,))) == ""
    assert diagnosis(report(0, 1, 1, (7,)), report(0, 2, 2, (8,)), report(1, 2, 2, (7, 8))) == ""


def test_a_worker_that_has_ended_is_no_fault_while_no_other_waits_for_it() -> None:
    assert diagnosis(report(0, 2, 2, (7, 7)), report(1, 2, 2, (7, 7), ended=True)) == ""
    assert diagnosis(report(0, 2, 1, (7, 7)), report(1, 2, 2, (7, 7), ended=True)) == ""


def test_collectives_that_differ_are_named_whichever_worker_reports_first() -> None:
    expected = "Collective 2 is all_reduce of float32[4] on worker 0 and broadcast of int32[] on worker 1"
    first, second = report(0, 2, 1, (7, 7)), report(1, 2, 1, (7, 8))
    assert diagnosis(first, second).startswith(expected)
    assert diagnosis(second, first).startswith(expected)


def test_a_late_worker_is_named_with_its_line() -> None:
    late = report(1, 1, 1, (7,), line='File "a.py", line 3, in f')
    text = diagnosis(report(0, 2, 1, (7, 7), waiting=61.0), late)
    assert (
        'has waited 60 s (timeout=) in collective 2, all_reduce of float32[4] for worker 1, File "a.py"'
        in text
    )


def test_a_job_ends_when_all_have_ended() -> None:
    job = Job(2)
    job.add(report(0, 1, 1, (7,), ended=True))
    assert not job.has_ended
    job.add(report(1, 1, 1, (7,), ended=True))
    assert job.has_ended
