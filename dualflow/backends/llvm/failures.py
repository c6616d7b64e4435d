"""Emits the status of a failure: the number of the first check that failed."""

from __future__ import annotations

from dualflow.backends.llvm.text import Builder, EmittedValue


def note_failure(b: Builder, status: EmittedValue, number: EmittedValue) -> None:
    """Store ``number`` in the status, unless a check has failed before."""
    with b.if_then(b.load(status, 0, number.type).eq(0)):
        b.store(number, status, 0)
