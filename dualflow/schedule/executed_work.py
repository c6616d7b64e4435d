"""The work that a kernel executes, counted from its statements: an op counts once for each iteration.

Divided by the work of the nodes, each counted once, it shows how much a kernel recomputes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from dualflow.graph.ir import Node
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import (
    Blocks,
    Bound,
    Choose,
    Chunks,
    Compute,
    Edge,
    End,
    For,
    KernelStatement,
    LaunchParameter,
    MaskedLoad,
    Once,
    ReduceCombine,
    ReduceUpdate,
    Repeat,
    RowGroups,
)
from dualflow.schedule.loop_ids import BlockLevel, Level
from dualflow.schedule.nest import Nest
from dualflow.sizes.symbolic_sizes import typical

Edges = Mapping[Edge, float]


def executed_work(launch: KernelLaunch) -> float:
    """The work of one call of a kernel in additions, including the join of its partial results.

    Loads and stores are not counted. Of a conditional, the most expensive branch counts; of a loop over
    scalars, one iteration.
    """
    join = 0.0 if launch.join is None else executed_work(launch.join)
    return join + _statements(launch, launch.kernel.body, {})


def distinct_work(nest: Nest) -> float:
    """The work of a nest's nodes in additions, each computed once; 0 for nodes of other kernels."""
    return sum(
        _unit_cost(step.node)
        * typical(math.prod([nest.loops[a].extent for a in step.axis_loops if a is not None]))
        for step in nest.steps
        if step.node not in nest.repeated
    )


def _unit_cost(node: Node) -> float:
    """The work of one element of a node, in additions."""
    return float(getattr(node.op.kind, "cost", 1.0))


def work_ratio(runs: Iterable[tuple[KernelLaunch, Nest]]) -> float:
    """The work that kernels execute divided by that of their nodes; 1 if there are none."""
    pairs = list(runs)
    work = sum(distinct_work(nest) for _, nest in pairs)
    return sum(executed_work(run) for run, _ in pairs) / work if work else 1.0


def _statements(launch: KernelLaunch, body: Sequence[KernelStatement], edges: Edges) -> float:
    """The cost of one execution of ``body``, in units of an addition."""
    return sum([_statement(launch, statement, edges) for statement in body])


def _statement(launch: KernelLaunch, statement: KernelStatement, edges: Edges) -> float:
    match statement:
        case Compute():
            return _unit_cost(statement.node)
        case ReduceUpdate() | ReduceCombine() | MaskedLoad():
            return 1.0
        case Once():
            return _parameter(launch, statement.extent) * _statements(launch, statement.body, edges)
        case For() | RowGroups():
            length = _bound(launch, statement.end, edges) - _bound(launch, statement.begin, edges)
            return length * _statements(launch, statement.body, edges)
        case Blocks():
            length = _bound(launch, statement.end, edges) - _bound(launch, statement.begin, edges)
            blocks = math.ceil(length / _parameter(launch, statement.size))
            return blocks * _block(
                launch, statement, statement.level, length / blocks if blocks else 0.0, edges
            )
        case Chunks():
            size = _parameter(launch, statement.extent) / max(typical(launch.total), 1)
            return typical(launch.total) * _block(launch, statement, BlockLevel.CHUNK, size, edges)
        case Choose():
            return max(_statements(launch, branch.body, edges) for branch in statement.branches)
        case Repeat():
            return sum(_statements(launch, b.body, edges) for b in (statement.condition, statement.body))
    return 0.0


def _block(
    launch: KernelLaunch, statement: Blocks | Chunks, level: Level, length: float, edges: Edges
) -> float:
    """The additions of one block of average length."""
    begin, end = (Edge(statement.loop, level, side) for side in (False, True))
    return _statements(launch, statement.body, {**edges, begin: 0.0, end: length})


def _bound(launch: KernelLaunch, bound: Bound, edges: Edges) -> float:
    if isinstance(bound, LaunchParameter):
        return _parameter(launch, bound)
    if isinstance(bound, Edge):
        return edges[bound]
    return float(typical(launch.total)) if bound is End.HIGH else 0.0


def _parameter(launch: KernelLaunch, parameter: LaunchParameter) -> float:
    return float(typical(launch.parameters[parameter.number]))
