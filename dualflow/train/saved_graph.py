"""Conversion of the object graph of a checkpoint to JSON and back.

A node is ``{"children": {NAME: NODE}, "key": ARRAY, "variable": NAME, "state": ..., "slots": [...]}``; each
part is optional: ``key`` and ``variable`` are the array and the name of a variable, ``state`` is an object's
own state, and a slot of an optimizer is ``[NODE of the variable or null, its name, the slot's name, NODE of
the slot]``.
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
    """A slot of an optimizer: its variable's node and name, its own name, and its node."""

    variable: int | None
    variable_name: str
    name: str
    node: int


@dataclass(frozen=True, slots=True)
class SavedNode:
    """A node of a checkpoint.

    Attributes:
        children: the nodes of its children, by name.
        key: the array of a variable; None for other objects.
        variable: the variable's own name.
        state: the object's own state, in a tuple; None without one.
        slots: the slots of an optimizer.
    """

    children: Mapping[str, int]
    key: str | None
    variable: str
    state: tuple[Any] | None
    slots: tuple[SavedSlot, ...]

    @property
    def has_value(self) -> bool:
        """Whether the node has a value."""
        return self.key is not None or self.state is not None


def to_json(nodes: list[LiveNode]) -> list[Any]:
    """The nodes with a state and their ancestors, with the present states of objects."""
    saved = sorted(with_state(nodes))
    place = {number: i for i, number in enumerate(saved)}
    return [_node_json(nodes[number], place) for number in saved]


def variables_in(nodes: list[LiveNode]) -> dict[str, Variable]:
    """The variables to save, by the names of their arrays."""
    return {key_of(n): n.obj for n in nodes if isinstance(n.obj, Variable)}


def by_name(variables: Mapping[str, Variable]) -> list[Any]:
    """A flat graph, in which variables are identified by their names only."""
    leaves = [{"key": name, "variable": name} for name in variables]
    return [{"children": {name: i for i, name in enumerate(variables, 1)}, "flat": True}, *leaves]


def is_flat(folder: Folder) -> bool:
    """Whether the graph of a checkpoint is flat: variables are identified by their names only."""
    return bool(folder.nodes) and isinstance(folder.nodes[0], dict) and folder.nodes[0].get("flat") is True


def from_json(folder: Folder) -> list[SavedNode]:
    """The nodes of a checkpoint.

    Raises:
        DataLossError: they don't form a graph.
    """
    try:
        nodes = [_node(x) for x in folder.nodes]
        count = len(nodes)
        if not nodes:
            raise ValueError("it has no root")
        keys = {None, *folder.entries}
        for node in nodes:
            numbers = [*node.children.values(), *(s.node for s in node.slots)]
            numbers += [s.variable for s in node.slots if s.variable is not None]
            if not all(0 <= n < count for n in numbers) or node.key not in keys:
                raise ValueError("a node refers to a missing one")
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise damaged(folder.path, f"its object graph is invalid: {error}") from error
    return nodes


def names_of(nodes: list[SavedNode]) -> dict[int, str]:
    """The name to show for each node with a value: its path; for a slot its optimizer, name and variable."""
    names = {0: ""}
    order = [0]
    for number in order:  # which grows in the loop
        for name, child in nodes[number].children.items():
            if child not in names:
                path = f"{names[number]}/{name}" if names[number] else name
                names[child] = (nodes[child].key or path).removesuffix(f"/{VALUE}")
                order.append(child)
    for number in order:
        for slot in nodes[number].slots:
            owner = names.get(slot.variable, "") if slot.variable is not None else ""
            names.setdefault(slot.node, f"{names[number]}.{slot.name}[{owner or slot.variable_name}]")
    return {number: name for number, name in names.items() if nodes[number].has_value}


def _node_json(node: LiveNode, place: dict[int, int]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    children = {name: place[child] for name, child in node.children.items() if child in place}
    if children:
        entry["children"] = children
    if isinstance(node.obj, Variable):
        entry |= {"key": key_of(node), "variable": node.obj.name.partition(":")[0]}
    elif has_state(node.obj):
        entry["state"] = state_of(node.obj)
    if node.slots:
        entry["slots"] = [
            [None if owner is None else place[owner], variable.name.partition(":")[0], name, place[slot]]
            for variable, owner, name, slot in node.slots
        ]
    return entry


def _node(entry: Any) -> SavedNode:
    children = {str(name): int(number) for name, number in entry.get("children", {}).items()}
    slots = tuple(SavedSlot(v, str(n), str(s), int(i)) for v, n, s, i in entry.get("slots", ()))
    key = entry.get("key")
    return SavedNode(
        children,
        None if key is None else str(key),
        str(entry.get("variable", "")),
        (entry["state"],) if "state" in entry else None,
        slots,
    )
