"""The monitor of a job: ends all workers, with an error that names the cause, when the job can't go on.

A thread of each worker reports to the first one through a socket, several times a second: which collectives
it has begun and finished, where its program is, whether it has ended. The first worker compares the reports.
A worker that waits in a collective can't raise an error, so the threads print it and end their processes.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import platform
import secrets
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from types import TracebackType
from typing import Any, Final, NamedTuple

from dualflow.distribute.collective_progress import Progress, user_line
from dualflow.distribute.diagnosis import Job, WorkerReport, connection_lost
from dualflow.distribute.world import World

INTERVAL: Final = 0.2
"""The seconds between reports of a job of few workers."""
EXIT_STATUS: Final = 1
"""The exit status of workers that the monitor ends."""
DONE: Final = "done"
"""The message to all workers when the programs of all have ended."""


class Monitor:
    """A worker's connection to the first worker, and the thread that reports through it.

    Args:
        world: the workers; the constructor uses its communicator.
        progress: the collectives of this worker.

    Attributes:
        timeout: the seconds for which a worker may wait in a collective; only worker 0's value is used.
    """

    def __init__(self, world: World, progress: Progress) -> None:
        self.timeout = 600.0
        self._progress = progress
        self._rank = world.rank
        self._pid = os.getpid()
        self._interval = report_interval(world.size)
        self._error = ""
        self._ended = False
        self._done = threading.Event()
        server = None
        if self._rank == 0:
            server = MonitorServer(world.size, local=world.on_one_machine, timeout=lambda: self.timeout)
        address, token = world.communicator.bcast(server and (server.address, server.token))
        self._socket = socket.create_connection(address, timeout=60)
        self._socket.sendall(hello(token, self._rank, world.hosts[self._rank], self._pid))
        os.register_at_fork(after_in_child=self._socket.close)
        threading.Thread(target=self._run, name="dualflow-monitor", daemon=True).start()
        atexit.register(self._end)
        _report_errors(self)

    def failed(self, error: str) -> None:
        """Report the error that ends this worker's program."""
        self._error = error

    def _end(self) -> None:
        """At exit, wait for all workers: ``MPI_Finalize`` would wait without a timeout or diagnosis."""
        if os.getpid() == self._pid:  # not in a forked child
            self._ended = True
            self._done.wait()

    def _run(self) -> None:
        """Report, and read messages, until the job is done."""
        reported, described, latest = 0, 0, _CollectiveStart(0, 0.0)
        inbox = _Inbox(self._socket)
        while True:
            ended, finished, begun = self._ended, self._progress.finished, self._progress.begun
            if latest.number != begun:
                latest = _CollectiveStart(begun, time.monotonic())
            signatures = self._progress.signatures(reported, begun)
            texts = list(self._progress.descriptions.items())  # after the signatures, which may be new
            report = WorkerReport(
                self._rank,
                begun,
                finished,
                signatures,
                {str(signature): text for signature, text in texts[described:]},
                time.monotonic() - latest.time if begun > finished else 0.0,
                user_line(),
                ended,
                self._error,
            )
            reported, described = begun, len(texts)
            messages = self._send_and_receive(inbox, report)
            if DONE in messages:
                self._done.set()
                return
            if messages:
                end_process(messages[0])

    def _send_and_receive(self, inbox: _Inbox, report: WorkerReport) -> list[str]:
        """Send a report; returns the messages that have arrived meanwhile."""
        with contextlib.suppress(OSError):  # messages that have arrived are still read
            self._socket.settimeout(None)  # a part of a message would spoil the next one
            self._socket.sendall(_message(asdict(report)))
        self._socket.settimeout(self._interval)
        messages = inbox.read()
        return [connection_lost(0, "the first machine")] if messages is None else messages


def report_interval(workers: int) -> float:
    """The seconds between reports of a worker; it grows by INTERVAL for each 100 workers."""
    return INTERVAL * (1 + workers / 100)


class _CollectiveStart(NamedTuple):
    """The number of the latest collective that has begun, and its time in seconds."""

    number: int
    time: float


class MonitorServer:
    """The monitor's server in the first worker, with a connection to each worker.

    Args:
        size: the number of workers.
        local: whether all are on this machine.
        timeout: returns the seconds for which a worker may wait in a collective.

    Attributes:
        address: where workers connect.
        token: what they send first, so that no other program of the network joins.
    """

    def __init__(self, size: int, *, local: bool, timeout: Callable[[], float]) -> None:
        self._listener = socket.create_server(("127.0.0.1" if local else "", 0), backlog=size)
        self.address = ("127.0.0.1" if local else platform.node(), self._listener.getsockname()[1])
        self.token = secrets.token_hex(16)
        self._size, self._timeout = size, timeout
        os.register_at_fork(after_in_child=self._listener.close)
        threading.Thread(target=self._run, name="dualflow-monitor-server", daemon=True).start()

    def _run(self) -> None:
        """Read reports until the job fails or ends, and send all workers the diagnosis, or DONE.

        This worker's own connection comes last: the message on it ends this process.
        """
        peers = sorted([self._accepted() for _ in range(self._size)], key=lambda peer: -peer.rank)
        job = Job(self._size)
        for report in (report for peer in peers for report in peer.reports):
            job.add(WorkerReport(**report))
        with selectors.DefaultSelector() as selector:
            for peer in peers:
                selector.register(peer.inbox.connection, selectors.EVENT_READ, peer)
            diagnosis = ""
            while not diagnosis and not job.has_ended:
                diagnosis = self._read(selector, job) or job.diagnosis(self._timeout())
            for peer in peers:
                if peer.rank == 0:
                    _drain(selector)
                with contextlib.suppress(OSError):  # it has ended
                    peer.inbox.connection.sendall(_message(diagnosis or DONE))

    def _read(self, selector: selectors.BaseSelector, job: Job) -> str:
        """Read the reports that have arrived; returns an error message if a connection has ended, else ""."""
        diagnosis = ""
        for key, _ in selector.select(INTERVAL):
            peer: _Peer = key.data
            reports = peer.inbox.read()
            if reports is None:
                selector.unregister(key.fileobj)
                diagnosis = diagnosis or connection_lost(peer.rank, f"process {peer.pid} on {peer.host}")
            for report in reports or ():
                job.add(WorkerReport(**report))
        return diagnosis

    def _accepted(self) -> _Peer:
        """The next worker that connects; connections of other programs are closed."""
        while True:
            connection, _ = self._listener.accept()
            connection.settimeout(60)
            is_worker = _begins_with(connection, self.token.encode())
            peer = _peer_of(connection) if is_worker else None
            if peer is not None:
                os.register_at_fork(after_in_child=connection.close)
                return peer
            connection.close()


def hello(token: str, rank: int, host: str, pid: int) -> bytes:
    """What a worker sends first: the server's token, and a message with its rank, host and process."""
    return token.encode() + _message([rank, host, pid])


def _begins_with(connection: socket.socket, token: bytes) -> bool:
    """Whether a connection begins with ``token``; another program may send anything, so nothing is parsed."""
    received = b""
    while len(received) < len(token):
        try:
            part = connection.recv(len(token) - len(received))
        except OSError:  # it was reset, or the time is over
            return False
        if not part:
            return False
        received += part
    return secrets.compare_digest(received, token)


class _Inbox:
    """The messages that arrive through a connection, a line of JSON each."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._pending = b""

    def read(self) -> list[Any] | None:
        """The messages that have arrived; none after the connection's timeout; None if it has ended."""
        try:
            received = self.connection.recv(1 << 16)
        except TimeoutError:
            return []
        except OSError:
            return None
        if not received:
            return None
        *lines, self._pending = (self._pending + received).split(b"\n")
        return [json.loads(line) for line in lines]


class _Peer(NamedTuple):
    """A worker that has connected, and the reports that have arrived with its first message."""

    inbox: _Inbox
    rank: int
    host: str
    pid: int
    reports: list[Any]


def _peer_of(connection: socket.socket) -> _Peer | None:
    """The worker at the other end, once its first message has arrived; None if the connection has ended."""
    inbox = _Inbox(connection)
    messages: list[Any] = []
    while not messages:
        arrived = inbox.read()
        if arrived is None:
            return None
        messages += arrived
    (rank, host, pid), *reports = messages
    return _Peer(inbox, rank, host, pid, reports)


def _drain(selector: selectors.BaseSelector) -> None:
    """Discard what arrives for two intervals: a socket closed with unread data loses the data it has sent."""
    end = time.monotonic() + 2 * INTERVAL
    while time.monotonic() < end:
        for key, _ in selector.select(INTERVAL):
            if key.data.inbox.read() is None:
                selector.unregister(key.fileobj)


def _message(content: Any) -> bytes:
    return (json.dumps(content) + "\n").encode()


def end_process(diagnosis: str) -> None:
    """Print the diagnosis, and end this process, whose main thread may wait in a collective."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    print(f"dualflow ends this worker. {diagnosis}", file=sys.stderr, flush=True)
    os._exit(EXIT_STATUS)


def _report_errors(monitor: Monitor) -> None:
    """Report an error that ends the program, after it is printed."""
    show = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        show(kind, error, trace)
        monitor.failed(f"{kind.__name__}: {str(error).partition(chr(10))[0]}")

    sys.excepthook = report
