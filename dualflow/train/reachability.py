"""Parents and ancestors in a graph of objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence


def parents_of(children: Iterable[Iterable[int]]) -> dict[int, list[int]]:
    """The parents of each node that has any, by its number; ``children`` lists the children of each node."""
    parents = defaultdict(list)
    for number, node_children in enumerate(children):
        for child in node_children:
            parents[child].append(number)
    return dict(parents)


def ancestors_of(nodes: Iterable[int], parents: Mapping[int, Sequence[int]]) -> set[int]:
    """The nodes from which ``nodes`` can be reached in one or more steps.

    >>> sorted(ancestors_of([2], parents_of([[1], [2], [], [1]])))
    [0, 1, 3]
    """
    ancestors: set[int] = set()
    pending = list(nodes)
    while pending:
        for parent in parents.get(pending.pop(), ()):
            if parent not in ancestors:
                ancestors.add(parent)
                pending.append(parent)
    return ancestors
