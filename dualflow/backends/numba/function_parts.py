"""How a long function is cut into several.

Numba and LLVM take a time for a function that grows with the square of its length: for one of a thousand
lines, more than ten minutes. Cut into parts, each a function, it takes as long as its parts do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dualflow.schedule.statements import Statement, walk

LONG: Final = 100
"""A function of more statements than these, those inside its conditionals and loops counted too, is cut."""
PART: Final = 40
"""So many statements a part has at most, unless it is one conditional or loop. It is no more than
``LONG``."""
FEW: Final = 3
"""So many statements are worth a function."""


def length(program: Sequence[Statement]) -> int:
    """How many statements these are, with those inside of conditionals and loops."""
    return sum(1 for _ in walk(program))


def is_long(program: Sequence[Statement]) -> bool:
    """Whether a function that runs these statements is to be cut."""
    return length(program) > LONG


def groups(program: Sequence[Statement]) -> Iterator[Sequence[Statement]]:
    """The statements in order, those of each part together."""
    group: list[Statement] = []
    room = PART
    for statement in program:
        own = length((statement,))
        if group and own > room:
            yield group
            group, room = [], PART
        group.append(statement)
        room -= own
    if group:
        yield group
