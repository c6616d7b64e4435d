"""Division of a long function into several.

The compile time of Numba and LLVM grows with the square of a function's length: a thousand lines take more
than ten minutes. Several functions take as long as the sum of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dualflow.schedule.program_statements import Statement, walk_program

MAX_STATEMENTS: Final = 100
"""The smallest number of statements, nested ones included, of a function that is divided."""
MAX_PART: Final = 40
"""The largest number of statements of a part that is not one branch or loop; at most ``MAX_STATEMENTS``."""
MIN_PART: Final = 3
"""The smallest number of statements that are worth a function."""


def length(program: Sequence[Statement]) -> int:
    """The number of statements, with those inside branches and loops."""
    return sum(1 for _ in walk_program(program))


def is_long(program: Sequence[Statement]) -> bool:
    """Whether a function of these statements is divided."""
    return length(program) > MAX_STATEMENTS


def groups(program: Sequence[Statement]) -> Iterator[Sequence[Statement]]:
    """The statements in consecutive groups, one for each generated function."""
    group: list[Statement] = []
    capacity = MAX_PART
    for statement in program:
        size = length((statement,))
        if group and size > capacity:
            yield group
            group, capacity = [], MAX_PART
        group.append(statement)
        capacity -= size
    if group:
        yield group
