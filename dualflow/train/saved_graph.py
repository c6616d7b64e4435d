"""The object graph of a checkpoint as JSON, and back.

A node is ``{"children": {NAME: NODE}, "key": ARRAY, "variable": NAME, "state": ..., "slots": [...]}``, where
each part may be missing: the array of a variable and the variable's own name, an object's own state, and an
optimizer's slots, ``[NODE of the variable or null, its name, the slot's name, NODE of the slot]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dualflow.eager.variable import Variable
from dualflow.train.folder import Folder, damaged
from dualflow.train.object_graph import VALUE, LiveNode, key_of, with_state
from dualflow.train.trackable import has_state, state_of


@dataclass(frozen=True, slots=True)
class SavedSlot:
    """A slot of an optimizer: whose it is, its name, and its node."""

    variable: int | None
    variable_name: str
    name: str
    node: int


@dataclass(frozen=True, slots=True)
class SavedNode:
    """A node of a checkpoint.

    Attributes:
        children: numbers of nodes by name.
        key: the array of a variable; None for what is none.
        variable: the variable's own name.
        state: of the object's own, in a tuple; None where it has none.
        slots: of an optimizer.
    """

    children: Mapping[str, int]
    key: str | None
    variable: str
    state: tuple[Any] | None
    slots: tuple[SavedSlot, ...]

    @property
    def holds(self) -> bool:
        """Whether there is something to give to the node's object."""
        return self.key is not None or self.state is not None


def to_json(nodes: list[LiveNode]) -> list[Any]:
    """The nodes that lead to a state, and the states of objects, as they are now."""
    kept = sorted(with_state(nodes))
    place = {number: i for i, number in enumerate(kept)}
    return [_node_json(nodes[number], place) for number in kept]


def variables_in(nodes: list[LiveNode]) -> dict[str, Variable]:
    """The variables to save, by the names of their arrays."""
    return {key_of(n): n.thing for n in nodes if isinstance(n.thing, Variable)}


def by_name(variables: Mapping[str, Variable]) -> list[Any]:
    """The graph of a checkpoint that knows variables by their names only."""
    leaves = [{"key": name, "variable": name} for name in variables]
    return [{"children": {name: i for i, name in enumerate(variables, 1)}, "flat": True}, *leaves]


def is_flat(folder: Folder) -> bool:
    """Whether a checkpoint knows variables by their names only."""
    return bool(folder.nodes) and isinstance(folder.nodes[0], dict) and folder.nodes[0].get("flat") is True


def from_json(folder: Folder) -> list[SavedNode]:
    """The nodes of a checkpoint.

    Raises:
        DataLossError: they are no graph.
    """
    try:
        nodes = [_node(x) for x in folder.nodes]
        count = len(nodes)
        if not nodes:
            raise ValueError("it has no root")
        known = {None, *folder.entries}
        for node in nodes:
            numbers = [*node.children.values(), *(s.node for s in node.slots)]
            numbers += [s.variable for s in node.slots if s.variable is not None]
            if not all(0 <= n < count for n in numbers) or node.key not in known:
                raise ValueError("a node names one that is not there")
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise damaged(folder.path, f"its object graph is none: {error}") from error
    return nodes


def names_of(nodes: list[SavedNode]) -> dict[int, str]:
    """For each node that holds something, the name to show: the path to it, and for a slot whose it is."""
    found = {0: ""}
    order = [0]
    for number in order:  # grows meanwhile
        for name, child in nodes[number].children.items():
            if child not in found:
                path = f"{found[number]}/{name}" if found[number] else name
                found[child] = (nodes[child].key or path).removesuffix(f"/{VALUE}")
                order.append(child)
    for number in order:
        for slot in nodes[number].slots:
            owner = found.get(slot.variable, "") if slot.variable is not None else ""
            found.setdefault(slot.node, f"{found[number]}.{slot.name}[{owner or slot.variable_name}]")
    return {number: name for number, name in found.items() if nodes[number].holds}


def _node_json(node: LiveNode, place: dict[int, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    children = {name: place[child] for name, child in node.children.items() if child in place}
    if children:
        found["children"] = children
    if isinstance(node.thing, Variable):
        found |= {"key": key_of(node), "variable": node.thing.name.partition(":")[0]}
    elif has_state(node.thing):
        found["state"] = state_of(node.thing)
    if node.slots:
        found["slots"] = [
            [None if owner is None else place[owner], variable.name.partition(":")[0], name, place[slot]]
            for variable, owner, name, slot in node.slots
        ]
    return found


def _node(given: Any) -> SavedNode:
    children = {str(name): int(number) for name, number in given.get("children", {}).items()}
    slots = tuple(SavedSlot(v, str(n), str(s), int(i)) for v, n, s, i in given.get("slots", ()))
    key = given.get("key")
    return SavedNode(
        children,
        None if key is None else str(key),
        str(given.get("variable", "")),
        (given["state"],) if "state" in given else None,
        slots,
    )
