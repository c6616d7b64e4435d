"""Groups of nodes that a picture shows as one box.

Repeated ops are equal but for their attributes: they read the same values, on the same line, as in
``[x[i] for i in range(31)]``. A few of them are one box if the same boxes read their results. A large graph
is folded: runs of consecutive nodes of one function of the user are one box, or of one line if one function
has called all of them. No cycle results: consecutive nodes read only earlier ones, and repeated ops have
common inputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from dualflow.graph.ir import Graph, Node
from dualflow.ops.op_kinds import Literal

LARGE: Final = 200
"""The smallest number of nodes of a graph that is folded."""
_MOST_BOXES: Final = 150
_FEWEST_REPEATED: Final = 3
_FEWEST_OF_ANY_CONSUMERS: Final = 8
"""The smallest number of repeated ops that are one box even if different boxes read their results."""

Group = tuple[Node, ...]


def groups_of(graph: Graph) -> list[Group]:
    """The boxes of a graph in an order in which each follows those that it reads: most are single nodes."""
    nodes = [n for n in graph.nodes if not isinstance(n.op.kind, Literal) or n.output in graph.results]
    return _folded(nodes) if len(nodes) >= LARGE else _with_repeated(graph, nodes)


def _with_repeated(graph: Graph, nodes: Sequence[Node]) -> list[Group]:
    """The nodes in groups: repeated ops in one group, at the position of the first; others alone."""
    users, results = graph.users(), set(graph.results)
    repeated = _grouped(
        [n for n in nodes if n.effect is None and not n.bodies and n.outputs],
        lambda n: (n.op, n.inputs, n.specs, n.origin),
    )
    groups = [group for group in repeated if len(group) >= _FEWEST_OF_ANY_CONSUMERS]
    for few in repeated:
        if len(few) < _FEWEST_OF_ANY_CONSUMERS:
            same_consumers = _grouped(
                few, lambda n: tuple([(*users.get(v, ()), v in results) for v in n.outputs])
            )
            groups += [group for group in same_consumers if len(group) >= _FEWEST_REPEATED]
    group_of = {node: group for group in groups for node in group}
    return list(dict.fromkeys(group_of.get(node, (node,)) for node in nodes))


def _grouped(nodes: Iterable[Node], key: Callable[[Node], Any]) -> list[Group]:
    groups: dict[Any, list[Node]] = defaultdict(list)
    for node in nodes:
        groups[key(node)].append(node)
    return list(map(tuple, groups.values()))


def _folded(nodes: Sequence[Node]) -> list[Group]:
    """Groups of consecutive nodes of one function, or of one line if that gives few boxes."""
    by_function = _runs(nodes, lambda n: None if n.origin is None else (n.origin.file, n.origin.function))
    if len(by_function) > 1:
        return by_function
    by_line = _runs(nodes, lambda n: n.origin)
    return by_line if len(by_line) <= _MOST_BOXES else by_function


def _runs(nodes: Sequence[Node], key: Callable[[Node], Any]) -> list[Group]:
    return [tuple(run) for _, run in groupby(nodes, key)]
