"""What native code notes of a failure: the number of the first check that failed."""

from __future__ import annotations

from dualflow.backends.llvm.text import Builder, EmittedValue


def note_failure(b: Builder, status: EmittedValue, number: EmittedValue) -> None:
    """Put ``number`` into the status, unless something has failed before."""
    with b.if_then(b.load(status, 0, number.type).eq(0)):
        b.store(number, status, 0)
