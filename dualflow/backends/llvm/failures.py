"""What native code notes of a failure: the number of the first check that failed."""

from __future__ import annotations

from dualflow.backends.llvm.text import Builder, Value


def note_failure(b: Builder, status: Value, number: Value) -> None:
    """Put ``number`` into the status, unless something has failed before."""
    with b.if_then(b.load(status, 0, number.type).eq(0)):
        b.store(number, status, 0)
