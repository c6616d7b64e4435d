"""How a long function is cut into several.

Numba and LLVM take a time for a function that grows with the square of its length: one of a thousand lines
took ten minutes. Cut into parts, each a function, it takes as long as its parts do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dualflow.schedule.plan import PlannedCall

LONG: Final = 100
"""A function of more calls than these, those inside its choices and loops counted too, is cut."""
PART: Final = 40
"""So many calls a part has at most, unless it is one choice or loop."""
FEW: Final = 3
"""So many calls are worth a function."""


def length(calls: Sequence[PlannedCall]) -> int:
    """How many calls these are, with those inside of choices and loops."""
    return sum(1 for call in calls for _ in call.walk())


def is_long(calls: Sequence[PlannedCall]) -> bool:
    """Whether a function that makes these calls is to be cut."""
    return length(calls) > LONG


def groups(calls: Sequence[PlannedCall]) -> Iterator[Sequence[PlannedCall]]:
    """The calls in order, those of each part together."""
    group: list[PlannedCall] = []
    room = PART
    for call in calls:
        room -= (own := length((call,)))
        if group and room < 0:
            yield group
            group, room = [], PART - own
        group.append(call)
    if group:
        yield group
