"""The nodes of a run that compute strings for its fetches, such as summaries, after the compiled part.

A graph with strings runs op by op through NumPy. So nodes that only make strings from numbers are kept out
of the compiled graph: a training step stays compiled when its summaries are fetched with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from dualflow.core.records import dataclass
from dualflow.graph.interpret import run_node
from dualflow.graph.ir import Node, Value
from dualflow.graph_mode.unknown_rank import POSTPONED

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class StringTail:
    """Nodes that compute strings, such as summaries, in NumPy after the compiled part of a session run.

    Attributes:
        nodes: the nodes, in program order.
        inputs: the values that the compiled part computes for them and for the fetches.
        fetches: the results of the run.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    fetches: tuple[Value, ...]

    def results(self, arrays: Sequence[Array]) -> list[Array]:
        """The fetches, for the ``inputs``.

        Raises:
            DualflowError: of an op.
        """
        values = dict(zip(self.inputs, arrays, strict=True))
        for node in self.nodes:
            values.update(zip(node.outputs, run_node(node, [values[v] for v in node.inputs]), strict=True))
        return [values[v] for v in self.fetches]


def string_tail(
    nodes: Sequence[Node],
    fetches: Sequence[Value],
    fed: Mapping[Value, Any],
    after: Mapping[Node, Sequence[Node]],
) -> StringTail | None:
    """The tail of a run that needs ``nodes``, in program order; None without one.

    It has the nodes with strings, without effects, whose consumers all belong to it.
    """
    ordered_before = {n for node in nodes for n in after.get(node, ())}
    tail: set[Node] = set()
    consumed: set[Value] = set()
    for node in reversed(nodes):
        if _fits(node, fed) and node not in ordered_before and consumed.isdisjoint(node.outputs):
            tail.add(node)
        else:
            consumed.update(node.inputs)
    if not tail:
        return None
    tail_nodes = [n for n in nodes if n in tail]
    return StringTail(tuple(tail_nodes), _boundary(tail_nodes, fetches), tuple(fetches))


def _fits(node: Node, fed: Collection[Value]) -> bool:
    values = (*node.inputs, *node.outputs)
    return (
        node.effect is None
        and node.op is not POSTPONED
        and not node.bodies
        and any(v.spec.dtype.is_string for v in values)
        and all(v not in fed for v in node.outputs)
    )


def _boundary(nodes: Sequence[Node], fetches: Sequence[Value]) -> tuple[Value, ...]:
    computed = {v for node in nodes for v in node.outputs}
    read = [*[v for node in nodes for v in node.inputs], *fetches]
    return tuple(dict.fromkeys([v for v in read if v not in computed]))
