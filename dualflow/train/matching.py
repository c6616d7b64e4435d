"""Matching of objects with a checkpoint's nodes: both graphs are walked together, by names of children."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dualflow.eager.variable import Variable
from dualflow.train.reachability import parents_of
from dualflow.train.saved_graph import SavedNode
from dualflow.train.trackable import children_of, has_state, slots_of


@dataclass(slots=True)
class Matches:
    """The result of matching.

    Attributes:
        values: variables and objects with a state, each with the node of its value; by id.
        nodes: all objects that match a node, with the node.
        mismatched: nodes that match an object which can't take their value, or takes another node's.
    """

    values: dict[int, tuple[Any, int]] = field(default_factory=dict)
    nodes: list[tuple[Any, int]] = field(default_factory=list)
    mismatched: set[int] = field(default_factory=set)

    @property
    def taken(self) -> set[int]:
        """The nodes whose values an object takes."""
        return {number for _, number in self.values.values()}


def match(
    saved: Sequence[SavedNode],
    roots: Iterable[tuple[Any, int]],
    relevant: Container[int],
    node_of: Callable[[Variable], int | None],
) -> Matches:
    """Match the objects below ``roots``, pairs of an object and its node, with the nodes of ``relevant``.

    ``node_of`` returns the node of a variable that was matched before, which optimizers may have slots for.

    A variable that is reached by two paths takes the value of the first one; separate variables take the same
    value if the checkpoint has one variable at their paths.
    """
    matches = Matches(nodes=list(roots))
    visited = {(id(obj), number) for obj, number in matches.nodes}
    for obj, number in matches.nodes:  # which grows in the loop
        _take(matches, saved[number], obj, number)
        children = children_of(obj) if saved[number].children else {}
        for name, child in saved[number].children.items():
            if child in relevant and name in children and (id(children[name]), child) not in visited:
                visited.add((id(children[name]), child))
                matches.nodes.append((children[name], child))
    for obj, number in list(matches.nodes):
        if saved[number].slots:
            _match_slots(matches, saved, obj, number, node_of)
    matches.mismatched -= matches.taken
    return matches


def match_by_name(saved: Sequence[SavedNode], variables: Iterable[Variable]) -> Matches:
    """Match variables with the nodes of their own names."""
    matches = Matches()
    for variable in variables:
        number = saved[0].children.get(variable.name.partition(":")[0])
        if number is not None:
            matches.nodes.append((variable, number))
            _take(matches, saved[number], variable, number)
    return matches


def _take(matches: Matches, node: SavedNode, obj: Any, number: int) -> None:
    """Match an object with a node's value, if the node has one and the object can take it."""
    if not node.has_value:
        return
    fits = isinstance(obj, Variable) if node.key is not None else has_state(obj)
    if fits and matches.values.setdefault(id(obj), (obj, number))[1] == number:
        return
    matches.mismatched.add(number)


def _match_slots(
    matches: Matches,
    saved: Sequence[SavedNode],
    optimizer: Any,
    number: int,
    node_of: Callable[[Variable], int | None],
) -> None:
    """Match the slots of an optimizer: by the variable's node, or by its name if it has none."""
    by_node, by_name = {}, defaultdict(list)
    for slot in saved[number].slots:
        by_node[slot.variable, slot.name] = slot.node
        if slot.variable is None:
            by_name[slot.variable_name, slot.name].append(slot.node)
    for variable, name, slot_variable in slots_of(optimizer):
        owner = matches.values[id(variable)][1] if id(variable) in matches.values else node_of(variable)
        node = by_node.get((owner, name)) if owner is not None else None
        if owner is None:
            candidates = by_name[variable.name.partition(":")[0], name]
            node = candidates.pop(0) if candidates else None
        if node is not None:
            matches.nodes.append((slot_variable, node))
            _take(matches, saved[node], slot_variable, node)


def parents_in(saved: Sequence[SavedNode]) -> dict[int, list[int]]:
    """The numbers of the parents of each node, by its number; variables of optimizers are children, too."""
    return parents_of([*n.children.values(), *(slot.node for slot in n.slots)] for n in saved)
