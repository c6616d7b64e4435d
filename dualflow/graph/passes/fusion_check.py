"""An independent check that the kernels of the fusion pass are legal.

Fusion avoids cycles by two integers per group. Here each group is contracted to one vertex, and networkx
searches cycles. Tests, ``verify`` and compiles with ``checking`` use it; other compiles don't.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import networkx as nx

from dualflow.core.errors import InternalError
from dualflow.graph.failing import may_fail
from dualflow.graph.fused import axis_set, index_shape, operands_with_axes, output_axes, reduced_axes
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.build_fused import Group
from dualflow.graph.passes.fusion import partition
from dualflow.graph.passes.pipeline import before_fusion
from dualflow.graph.printer import lines_of
from dualflow.graph.views import base_of, dims_of_base, is_view
from dualflow.ops.op_kinds import Gather

Unit = Group | Node
"""A unit of execution: a group, or a node outside all groups."""

_READS, _FOLLOWS = "reads from", "must stay after"


def check_fusion(graph: Graph, options: CompileOptions) -> list[str]:
    """The faults of the kernels of ``graph``, a trace of static sizes, and of its bodies.

    Each fault is a sentence that names the ops, with the user's lines.
    """
    return [
        fault
        for part in before_fusion(graph, options)
        for fault in faults(part, partition(part, options.cost_model))
    ]


def require_legal_kernels(graph: Graph, options: CompileOptions) -> None:
    """Raise InternalError with the faults of :func:`check_fusion`, if there are any."""
    all_faults = check_fusion(graph, options)
    if all_faults:
        raise InternalError(f"{graph.name}: {'; '.join(all_faults)}")


def faults(graph: Graph, groups: Sequence[Group]) -> list[str]:
    """The faults of ``groups`` as the kernels of ``graph``.

    Each node must belong to at most one group. Dependencies between groups, by operands and by the order of
    effects and nodes that may fail, must have no cycles, and groups must be in topological order. Inside a
    group, all nodes must agree on the loop of each dim.
    """
    all_faults = [*_misplaced(graph, groups)]
    if not all_faults:
        all_faults += [*_misordered(graph, groups)]
        all_faults += [fault for group in groups for fault in _disagreeing(group)]
    return all_faults


def quotient(graph: Graph, groups: Sequence[Group]) -> nx.DiGraph:
    """The dependency graph of units: an edge from each unit to the units that depend on it.

    Views belong to their consumers. The attribute ``why`` of an edge is the reason.
    """
    unit_of: dict[Node, Unit] = {node: group for group in groups for node in group.nodes}
    digraph = nx.DiGraph()
    effect: Node | None = None
    unordered: list[Unit] = []
    for node in graph.nodes:
        if is_view(node):
            continue
        unit = unit_of.get(node, node)
        digraph.add_node(unit)
        producers = [producer for value in node.inputs if (producer := base_of(value).node) is not None]
        digraph.add_edges_from(
            [(unit_of.get(m, m), unit) for m in producers if unit_of.get(m, m) is not unit], why=_READS
        )
        if node.effect is not None:
            earlier = [*unordered, *([] if effect is None else [effect])]
            digraph.add_edges_from(
                [(u, unit) for u in earlier if not digraph.has_edge(u, unit)], why=_FOLLOWS
            )
            effect, unordered = node, []
        elif may_fail(node):
            unordered.append(unit)
            if effect is not None and not digraph.has_edge(effect, unit):
                digraph.add_edge(effect, unit, why=_FOLLOWS)
    return digraph


def _misplaced(graph: Graph, groups: Sequence[Group]) -> Iterator[str]:
    """The faults of nodes that are in several groups, in another graph, or before their operands."""
    index = {node: i for i, node in enumerate(graph.nodes)}
    count = Counter(node for group in groups for node in group.nodes)
    yield from (f"{named(n)} is computed {times} times" for n, times in count.items() if times > 1)
    yield from (f"{named(n)} is a node of another graph" for n in count if n not in index)
    for group in groups:
        for one, other in pairwise(group.nodes):
            if index.get(one, 0) > index.get(other, 0):
                yield f"{named(other)} is computed after {named(one)}, which may read it"


def _misordered(graph: Graph, groups: Sequence[Group]) -> Iterator[str]:
    """The faults of units that depend on each other, or run before a unit that they depend on."""
    units = quotient(graph, groups)
    position: dict[Unit, int] = {node: i for i, node in enumerate(graph.nodes)}
    position |= {group: group.position for group in groups}
    part = {}
    for number, units_of_part in enumerate(nx.strongly_connected_components(units)):
        part.update(dict.fromkeys(units_of_part, number))
        if len(units_of_part) > 1:
            circle = nx.find_cycle(units.subgraph(units_of_part))
            steps = [f"{named(b)} {units.edges[a, b]['why']} {named(a)}" for a, b in circle]
            yield f"these depend on each other: {', '.join(steps)}"
    for a, b, why in units.edges(data="why"):
        if part[a] != part[b] and position[a] >= position[b]:
            yield f"{named(b)} {why} {named(a)}, but runs before it"


def _disagreeing(group: Group) -> Iterator[str]:
    """The faults of nodes whose axes don't fit the loops of ``group``."""
    inside = set(group.nodes)
    for node in group.nodes:
        index_axes, shape = group.index_axes[node], index_shape(node)
        if len(index_axes) != len(shape) or any(
            (axis is None) != (size == 1) or (axis is not None and group.shape[axis] != size)
            for axis, size in zip(index_axes, shape, strict=False)
        ):
            yield f"{named(node)} of shape {list(shape)} has the loops {index_axes} of {group.shape}"
            continue
        reduced = reduced_axes(node, index_axes)
        complete = axis_set(index_axes) == group.all_axes
        if reduced and (reduced != group.reduced or not complete):
            yield f"{named(node)} reduces loops {sorted(reduced)}, its kernel {sorted(group.reduced)}"
        if not reduced and not complete and axis_set(output_axes(node, index_axes)) != group.parallel_axes:
            yield f"{named(node)} has the loops {index_axes}, neither all of its kernel nor the parallel ones"
        for operand, (value, read_axes) in enumerate(operands_with_axes(node, index_axes)):
            base = base_of(value)
            if base.node is None or base.node not in inside:
                continue
            dims, produced_axes = dims_of_base(value), output_axes(base.node, group.index_axes[base.node])
            if dims is None or (isinstance(node.op.kind, Gather) and operand == 0):
                yield f"{named(node)} reads {named(base.node)} out of order, in one kernel with it"
            elif any(
                d is not None and produced_axes[d] not in (None, at)
                for d, at in zip(dims, read_axes, strict=True)
            ):
                yield f"{named(node)} reads {named(base.node)} along other loops than it is computed on"


def named(unit: Unit) -> str:
    """The ops of a unit, with the user's lines."""
    nodes = unit.nodes if isinstance(unit, Group) else [unit]
    ops = "+".join(dict.fromkeys(node.op.name for node in nodes))
    lines = ", ".join(dict.fromkeys(line for node in nodes if (line := lines_of(node))))
    return f"{ops} ({lines})" if lines else ops
