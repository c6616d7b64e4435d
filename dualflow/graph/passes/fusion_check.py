"""Whether the kernels that fusion makes are legal, found another way than fusion finds them.

Fusion knows by two integers for each group that no two wait for each other. Here each group is contracted to
one vertex, and networkx looks for circles. It is for tests, for ``verify``, and for compiles that check their
passes; others don't come here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import networkx as nx

from dualflow.core.errors import InternalError
from dualflow.graph.axes import base_of, dims_of_base, is_view
from dualflow.graph.failing import may_fail
from dualflow.graph.fused import axis_set, index_shape, input_axes, output_axes, reduced_axes
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes import before_fusion
from dualflow.graph.passes.build_fused import Group
from dualflow.graph.passes.fusion import partition
from dualflow.graph.printer import lines_of
from dualflow.ops.op_kinds import Gather

Unit = Group | Node
"""What runs as one: a group, or a node outside of all groups."""

_READS, _FOLLOWS = "reads from", "must stay behind"


def check_fusion(graph: Graph, options: CompileOptions) -> list[str]:
    """What is wrong with the kernels of ``graph``, a trace of static sizes, and of the bodies inside it.

    Each fault is a sentence that names the ops, with the user's lines; nothing is wrong where there is none.
    """
    return [
        fault
        for part in before_fusion(graph, options)
        for fault in faults(part, partition(part, options.cost_model))
    ]


def require_legal_kernels(graph: Graph, options: CompileOptions) -> None:
    """Raise InternalError with what :func:`check_fusion` finds, if it finds something."""
    found = check_fusion(graph, options)
    if found:
        raise InternalError(f"{graph.name}: {'; '.join(found)}")


def faults(graph: Graph, groups: Sequence[Group]) -> list[str]:
    """What is wrong with ``groups`` as the kernels of ``graph``.

    Each node belongs to one group at most. No groups wait for each other, neither by what they read nor since
    effects and what may fail stay in order; each stands behind those that it waits for. Inside of a group,
    all nodes agree on the loop that runs along each dim.
    """
    found = [*_misplaced(graph, groups)]
    if not found:
        found += [*_waiting(graph, groups)]
        found += [fault for group in groups for fault in _disagreeing(group)]
    return found


def quotient(graph: Graph, groups: Sequence[Group]) -> nx.DiGraph:
    """The units of ``graph`` as vertices, with an edge from each to those that wait for it.

    Views belong to whoever reads them. The attribute ``why`` of an edge says what the later one does.
    """
    home: dict[Node, Unit] = {node: group for group in groups for node in group.nodes}
    found = nx.DiGraph()
    effect: Node | None = None
    unordered: list[Unit] = []
    for node in graph.nodes:
        if is_view(node):
            continue
        unit = home.get(node, node)
        found.add_node(unit)
        makers = [maker for value in node.inputs if (maker := base_of(value).node) is not None]
        found.add_edges_from(
            [(home.get(m, m), unit) for m in makers if home.get(m, m) is not unit], why=_READS
        )
        if node.effect is not None:
            earlier = [*unordered, *([] if effect is None else [effect])]
            found.add_edges_from([(u, unit) for u in earlier if not found.has_edge(u, unit)], why=_FOLLOWS)
            effect, unordered = node, []
        elif may_fail(node):
            unordered.append(unit)
            if effect is not None and not found.has_edge(effect, unit):
                found.add_edge(effect, unit, why=_FOLLOWS)
    return found


def _misplaced(graph: Graph, groups: Sequence[Group]) -> Iterator[str]:
    """Nodes in several groups, or of another graph, or in front of what they read."""
    index = {node: i for i, node in enumerate(graph.nodes)}
    count = Counter(node for group in groups for node in group.nodes)
    yield from (f"{named(n)} is computed {times} times" for n, times in count.items() if times > 1)
    yield from (f"{named(n)} is a node of another graph" for n in count if n not in index)
    for group in groups:
        for one, other in pairwise(group.nodes):
            if index.get(one, 0) > index.get(other, 0):
                yield f"{named(other)} is computed behind {named(one)}, which may read it"


def _waiting(graph: Graph, groups: Sequence[Group]) -> Iterator[str]:
    """Units that wait for each other; and those that stand in front of what they wait for."""
    units = quotient(graph, groups)
    position: dict[Unit, int] = {node: i for i, node in enumerate(graph.nodes)}
    position |= {group: group.position for group in groups}
    part = {}
    for number, units_of_part in enumerate(nx.strongly_connected_components(units)):
        part.update(dict.fromkeys(units_of_part, number))
        if len(units_of_part) > 1:
            circle = nx.find_cycle(units.subgraph(units_of_part))
            steps = [f"{named(b)} {units.edges[a, b]['why']} {named(a)}" for a, b in circle]
            yield f"these wait for each other: {', '.join(steps)}"
    for a, b, why in units.edges(data="why"):
        if part[a] != part[b] and position[a] >= position[b]:
            yield f"{named(b)} {why} {named(a)}, but runs before it"


def _disagreeing(group: Group) -> Iterator[str]:
    """Nodes whose index, results or inputs don't lie in the loops of ``group``."""
    inside = set(group.nodes)
    for node in group.nodes:
        own, shape = group.own[node], index_shape(node)
        if len(own) != len(shape) or any(
            (axis is None) != (size == 1) or (axis is not None and group.shape[axis] != size)
            for axis, size in zip(own, shape, strict=False)
        ):
            yield f"{named(node)} of shape {list(shape)} lies on loops {own} of {group.shape}"
            continue
        reduced = reduced_axes(node, own)
        whole = axis_set(own) == group.everything
        if reduced and (reduced != group.reduced or not whole):
            yield f"{named(node)} reduces loops {sorted(reduced)}, its kernel {sorted(group.reduced)}"
        if not reduced and not whole and axis_set(output_axes(node, own)) != group.kept:
            yield f"{named(node)} lies on loops {own}, neither on all of its kernel nor on those it keeps"
        for slot, (value, laid) in enumerate(zip(node.inputs, input_axes(node, own), strict=True)):
            base = base_of(value)
            if base.node is None or base.node not in inside:
                continue
            dims, made = dims_of_base(value), output_axes(base.node, group.own[base.node])
            if dims is None or (isinstance(node.op.kind, Gather) and slot == 0):
                yield f"{named(node)} reads {named(base.node)} out of order, in one kernel with it"
            elif any(d is not None and made[d] not in (None, at) for d, at in zip(dims, laid, strict=True)):
                yield f"{named(node)} reads {named(base.node)} along other loops than those it is made on"


def named(unit: Unit) -> str:
    """The ops of a unit, and the user's lines behind them."""
    nodes = unit.nodes if isinstance(unit, Group) else [unit]
    ops = "+".join(dict.fromkeys(node.op.name for node in nodes))
    lines = ", ".join(dict.fromkeys(line for node in nodes if (line := lines_of(node))))
    return f"{ops} ({lines})" if lines else ops
