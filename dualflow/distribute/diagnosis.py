"""Diagnoses a job from the reports of its workers, by pure functions.

A job can't go on if

* two workers run different collectives,
* a worker's program has failed with an error,
* a worker has ended, and another one waits for it,
* a worker has waited in a collective for longer than the timeout,
* a worker's connection has ended, as its process has died.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class WorkerReport:
    """The report that a worker's monitor sends several times a second.

    Attributes:
        rank: the worker.
        begun: the number of collectives that it has begun.
        finished: the number of those that it has finished.
        signatures: of the latest collectives that it has begun, which it has not reported before.
        descriptions: texts of signatures that it has not reported before.
        waiting: the seconds for which it has been in the collective that it has begun; 0 outside of all.
        line: the user's line.
        ended: whether its program has ended.
        error: the error that has ended its program; "" for none.
    """

    rank: int
    begun: int = 0
    finished: int = 0
    signatures: Sequence[int] = ()
    descriptions: dict[str, str] = field(default_factory=dict)
    waiting: float = 0.0
    line: str = ""
    ended: bool = False
    error: str = ""


MAX_COLLECTIVES: Final = 1 << 16
"""The number of collectives that are compared at a time."""


class Job:
    """The reports of the workers of a job.

    Args:
        size: the number of workers.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._latest = {rank: WorkerReport(rank) for rank in range(size)}
        self._collectives: dict[int, dict[int, int]] = {}
        self._texts: dict[int, str] = {}
        self._mismatch = ""

    def add(self, report: WorkerReport) -> None:
        """Add the report of a worker."""
        self._latest[report.rank] = report
        # Keys are strings in the JSON of a report.
        self._texts |= {int(signature): text for signature, text in report.descriptions.items()}
        first = report.begun - len(report.signatures)
        for number, signature in enumerate(report.signatures, first):
            self._compare(number, report.rank, signature)

    @property
    def has_ended(self) -> bool:
        """Whether the programs of all workers have ended."""
        return all(report.ended for report in self._latest.values())

    def diagnosis(self, timeout: float) -> str:
        """The reason why the job can't go on; "" if it can.

        Args:
            timeout: the seconds for which a worker may wait in a collective.
        """
        if self._mismatch:
            return self._mismatch
        for report in self._latest.values():
            if report.error:
                return f"Worker {report.rank} has failed: {report.error}"
        waiting = [r for r in self._latest.values() if r.begun > r.finished and not r.ended]
        for report in waiting:
            absent = [r for r in self._latest.values() if r.begun < report.begun]
            for other in absent:
                if other.ended:
                    return (
                        f"Worker {other.rank} has ended after {_count(other.begun)}, and worker "
                        f"{report.rank} waits in {self._collective(report)}: the workers run unequal numbers "
                        "of steps. Give all of them as many batches."
                    )
            if report.waiting > timeout:
                return self._timeout_message(report, absent, timeout)
        return ""

    def _compare(self, number: int, rank: int, signature: int) -> None:
        """Compare a collective of one worker with that of the others."""
        by_rank = self._collectives.setdefault(number, {})
        by_rank[rank] = signature
        for other, theirs in by_rank.items():
            if theirs != signature and not self._mismatch:
                low, high = sorted([(rank, signature), (other, theirs)])
                self._mismatch = (
                    f"Collective {number + 1} is {self._text(low[1])} on worker {low[0]} and "
                    f"{self._text(high[1])} on worker {high[0]}: all workers must run the same functions on "
                    "tensors of the same shapes, in the same order."
                )
        if len(by_rank) == self._size:
            del self._collectives[number]
        elif len(self._collectives) > MAX_COLLECTIVES:
            del self._collectives[min(self._collectives)]

    def _timeout_message(self, report: WorkerReport, absent: Iterable[WorkerReport], timeout: float) -> str:
        text = f"Worker {report.rank} has waited {timeout:g} s (timeout=) in {self._collective(report)}"
        others = [f"worker {r.rank}, {r.line or 'which has not reported its line'}" for r in absent]
        return f"{text} for {'; '.join(others) or 'the network'}."

    def _collective(self, report: WorkerReport) -> str:
        signature = self._collectives.get(report.begun - 1, {}).get(report.rank, 0)
        line = f", {report.line}" if report.line else ""
        return f"collective {report.begun}, {self._text(signature)}{line}"

    def _text(self, signature: int) -> str:
        return self._texts.get(signature, "a collective")


def connection_lost(rank: int, where: str) -> str:
    """The diagnosis for a worker whose connection has ended."""
    return f"Worker {rank} ({where}) has died: it was killed, or has crashed."


def _count(collectives: int) -> str:
    return f"{collectives} collective{'s' * (collectives != 1)}"
