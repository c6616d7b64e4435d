"""A trampoline: runs generators that call each other to any depth, with a stack of constant depth."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias

Calls: TypeAlias = Generator["Calls", None, None]
"""A generator that yields the calls of its function: generators, which run to their end before it goes on."""


def run(function: Calls) -> None:
    """Run ``function``, and the generators that it yields, each where it is yielded.

    An error in one closes all that wait for it, the innermost first.

    >>> def countdown(n):
    ...     if n:
    ...         yield countdown(n - 1)
    ...         print(n, end=" ")
    >>> run(countdown(3))
    1 2 3
    """
    pending = [function]
    try:
        while pending:
            call = next(pending[-1], None)
            if call is None:
                pending.pop()
            else:
                pending.append(call)
    finally:
        while pending:
            pending.pop().close()
