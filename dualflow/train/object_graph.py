"""The objects that a checkpoint finds from its root, in TensorFlow's order and under TensorFlow's names."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Final

from dualflow.core.errors import FailedPreconditionError
from dualflow.eager.updates import value_of
from dualflow.eager.variable import Variable
from dualflow.train.reachability import ancestors_of, parents_of
from dualflow.train.trackable import children_of, has_state, slots_of

VALUE: Final = ".ATTRIBUTES/VARIABLE_VALUE"
SLOT: Final = ".OPTIMIZER_SLOT"


@dataclass(slots=True)
class LiveNode:
    """An object, the name it is found by, and the numbers of its children.

    Attributes:
        thing: the object.
        name: its path from the root, ``net/layers/0``.
        children: numbers of nodes by name.
        slots: of an optimizer: the variable, its node, the slot's name and the slot's node.
    """

    thing: Any
    name: str
    children: dict[str, int] = field(default_factory=dict)
    slots: list[tuple[Variable, int | None, str, int]] = field(default_factory=list)


def live_graph(root: Any, alias: Any = None) -> list[LiveNode]:
    """All objects that are found from ``root``, nearest first; the root is the first of them.

    Args:
        root: where to begin.
        alias: an object that is the same node as the root.
    """
    nodes = [LiveNode(root, "")]
    number = {id(root): 0, id(alias if alias is not None else root): 0}
    for node in nodes:  # grows meanwhile
        for name, child in children_of(node.thing).items():
            if id(child) not in number:
                number[id(child)] = len(nodes)
                nodes.append(
                    LiveNode(child, f"{node.name}/{_escaped(name)}" if node.name else _escaped(name))
                )
            node.children[name] = number[id(child)]
    taken: set[str] = set()
    for node in list(nodes):
        for variable, name, slot in slots_of(node.thing):
            if id(slot) not in number:
                owner = number.get(id(variable))
                holder = nodes[owner].name if owner is not None else variable.name.partition(":")[0]
                path = _free(f"{holder}/{SLOT}/{node.name}/{_escaped(name)}", taken)
                number[id(slot)] = len(nodes)
                nodes.append(LiveNode(slot, path))
            node.slots.append((variable, number.get(id(variable)), name, number[id(slot)]))
    return nodes


def with_state(nodes: list[LiveNode]) -> set[int]:
    """The numbers of the nodes that have a state, and of those that lead to one; the root's always."""
    parents = parents_of([*n.children.values(), *(slot for *_, slot in n.slots)] for n in nodes)
    own = {i for i, n in enumerate(nodes) if isinstance(n.thing, Variable) or has_state(n.thing)}
    return own | ancestors_of(own, parents) | {0}


def key_of(node: LiveNode) -> str:
    """The name of a variable's array."""
    return f"{node.name}/{VALUE}"


def refuse_graph_variables(nodes: list[LiveNode]) -> None:
    """Raise if a variable's value lies in sessions."""
    for node in nodes:
        if isinstance(node.thing, Variable) and value_of(node.thing) is None:
            raise FailedPreconditionError(
                f"{node.name} is {node.thing.name}, a variable of an explicit graph: sessions hold its "
                "values. Save and restore them with df.compat.v1.train.Saver, which takes a session."
            )


def _free(path: str, taken: set[str]) -> str:
    """The path, with a number where variables that are not saved share a name; it is taken then."""
    numbered = (f"{path}_{i}" for i in itertools.count(1))
    found = next(p for p in itertools.chain([path], numbered) if p not in taken)
    taken.add(found)
    return found


def _escaped(name: str) -> str:
    """A name as a part of a path, as TensorFlow writes it."""
    return name.replace(".", "..").replace("/", ".S")
