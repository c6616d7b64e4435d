"""Which object takes which value of a checkpoint: both graphs are walked together, by names of children."""

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
    """What was found.

    Attributes:
        values: the variables and the objects with a state, each with the node of its value; by identity.
        nodes: all objects that a node was found for, with the node.
        refused: nodes whose place holds something that can't take their value, or has one of another node.
    """

    values: dict[int, tuple[Any, int]] = field(default_factory=dict)
    nodes: list[tuple[Any, int]] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)

    @property
    def taken(self) -> set[int]:
        """The nodes whose values somebody takes."""
        return {number for _, number in self.values.values()}


def match(
    saved: Sequence[SavedNode],
    anchors: Iterable[tuple[Any, int]],
    wanted: Container[int],
    node_of: Callable[[Variable], int | None],
) -> Matches:
    """Walk from objects whose nodes are known, to the nodes of ``wanted``.

    ``node_of`` tells the nodes of variables that were found before, which optimizers may have slots for.

    A variable that is found in two places takes the value of the first; variables that are apart where the
    checkpoint has one take its value both.
    """
    found = Matches(nodes=list(anchors))
    seen = {(id(thing), number) for thing, number in found.nodes}
    for thing, number in found.nodes:  # grows meanwhile
        _take(found, saved[number], thing, number)
        children = children_of(thing) if saved[number].children else {}
        for name, child in saved[number].children.items():
            if child in wanted and name in children and (id(children[name]), child) not in seen:
                seen.add((id(children[name]), child))
                found.nodes.append((children[name], child))
    for thing, number in list(found.nodes):
        if saved[number].slots:
            _match_slots(found, saved, thing, number, node_of)
    found.refused -= found.taken
    return found


def match_by_name(saved: Sequence[SavedNode], variables: Iterable[Variable]) -> Matches:
    """The variables whose own names are those of the nodes."""
    found = Matches()
    for variable in variables:
        number = saved[0].children.get(variable.name.partition(":")[0])
        if number is not None:
            found.nodes.append((variable, number))
            _take(found, saved[number], variable, number)
    return found


def _take(found: Matches, node: SavedNode, thing: Any, number: int) -> None:
    """Note that an object takes the value of a node, if there is one and it can."""
    if not node.holds:
        return
    fits = isinstance(thing, Variable) if node.key is not None else has_state(thing)
    if fits and found.values.setdefault(id(thing), (thing, number))[1] == number:
        return
    found.refused.add(number)


def _match_slots(
    found: Matches,
    saved: Sequence[SavedNode],
    optimizer: Any,
    number: int,
    node_of: Callable[[Variable], int | None],
) -> None:
    """Find the slots of an optimizer: by the variable's node, or by its name where it has none."""
    known, named = {}, defaultdict(list)
    for slot in saved[number].slots:
        known[slot.variable, slot.name] = slot.node
        if slot.variable is None:
            named[slot.variable_name, slot.name].append(slot.node)
    for variable, name, own in slots_of(optimizer):
        owner = found.values[id(variable)][1] if id(variable) in found.values else node_of(variable)
        node = known.get((owner, name)) if owner is not None else None
        if owner is None:
            left = named[variable.name.partition(":")[0], name]
            node = left.pop(0) if left else None
        if node is not None:
            found.nodes.append((own, node))
            _take(found, saved[node], own, node)


def parents_in(saved: Sequence[SavedNode]) -> dict[int, list[int]]:
    """The nodes that have a node as a child or a slot, by its number."""
    return parents_of([*n.children.values(), *(slot.node for slot in n.slots)] for n in saved)
