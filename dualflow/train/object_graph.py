"""The graph of objects reachable from a checkpoint's root, in TensorFlow's order and with its names."""

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
    """An object and its edges in the graph of objects.

    Attributes:
        obj: the object.
        name: its path from the root, ``net/layers/0``.
        children: the nodes of its children, by name.
        slots: the slots of an optimizer: the variable, its node, the slot's name and the slot's node.
    """

    obj: Any
    name: str
    children: dict[str, int] = field(default_factory=dict)
    slots: list[tuple[Variable, int | None, str, int]] = field(default_factory=list)


def live_graph(root: Any, alias: Any = None) -> list[LiveNode]:
    """All objects reachable from ``root``, breadth first, beginning with the root.

    Args:
        root: the root.
        alias: an object that is treated as the same node as the root.
    """
    nodes = [LiveNode(root, "")]
    number = {id(root): 0, id(alias if alias is not None else root): 0}
    for node in nodes:  # which grows in the loop
        for name, child in children_of(node.obj).items():
            if id(child) not in number:
                number[id(child)] = len(nodes)
                nodes.append(
                    LiveNode(child, f"{node.name}/{_escaped(name)}" if node.name else _escaped(name))
                )
            node.children[name] = number[id(child)]
    used: set[str] = set()
    for node in list(nodes):
        for variable, name, slot in slots_of(node.obj):
            if id(slot) not in number:
                owner = number.get(id(variable))
                holder = nodes[owner].name if owner is not None else variable.name.partition(":")[0]
                path = _unique_path(f"{holder}/{SLOT}/{node.name}/{_escaped(name)}", used)
                number[id(slot)] = len(nodes)
                nodes.append(LiveNode(slot, path))
            node.slots.append((variable, number.get(id(variable)), name, number[id(slot)]))
    return nodes


def with_state(nodes: list[LiveNode]) -> set[int]:
    """The nodes that have a state, and their ancestors; the root always."""
    parents = parents_of([*n.children.values(), *(slot for *_, slot in n.slots)] for n in nodes)
    stateful = {i for i, n in enumerate(nodes) if isinstance(n.obj, Variable) or has_state(n.obj)}
    return stateful | ancestors_of(stateful, parents) | {0}


def key_of(node: LiveNode) -> str:
    """The name of a variable's array."""
    return f"{node.name}/{VALUE}"


def reject_graph_variables(nodes: list[LiveNode]) -> None:
    """Raise an error if a variable belongs to an explicit graph, since sessions hold its value."""
    for node in nodes:
        if isinstance(node.obj, Variable) and value_of(node.obj) is None:
            raise FailedPreconditionError(
                f"{node.name} is {node.obj.name}, a variable of an explicit graph: sessions hold its "
                "values. Save and restore them with df.compat.v1.train.Saver, which takes a session."
            )


def _unique_path(path: str, used: set[str]) -> str:
    """``path``, with a number if ``used`` has it already; adds the result to ``used``."""
    numbered = (f"{path}_{i}" for i in itertools.count(1))
    unique = next(p for p in itertools.chain([path], numbered) if p not in used)
    used.add(unique)
    return unique


def _escaped(name: str) -> str:
    """A name as a component of a path, escaped as by TensorFlow."""
    return name.replace(".", "..").replace("/", ".S")
