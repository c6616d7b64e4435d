"""The work that a kernel executes, counted from its loop program: an op counts once per iteration.

Divided by the work of the nodes, each counted once, it shows how much a kernel recomputes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from dualflow.core.symbolic_sizes import typical
from dualflow.schedule.loop_ids import BlockLevel, Level
from dualflow.schedule.loop_program import (
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
    Run,
)
from dualflow.schedule.nest import Nest

Edges = Mapping[Edge, float]


def executed_work(run: Run) -> float:
    """The work of one call of a kernel in additions, including the join of its partial results.

    Loads and stores are not counted. Of a conditional, the most expensive branch counts; of a loop over
    scalars, one iteration.
    """
    join = 0.0 if run.join is None else executed_work(run.join)
    return join + _statements(run, run.kernel.body, {})


def distinct_work(nest: Nest) -> float:
    """The work of a nest's nodes in additions, each computed once; those of other kernels count 0."""
    return sum(
        getattr(step.node.op.kind, "cost", 1.0)
        * typical(math.prod([nest.loops[a].extent for a in step.own if a is not None]))
        for step in nest.steps
        if step.node not in nest.repeated
    )


def work_ratio(runs: Iterable[tuple[Run, Nest]]) -> float:
    """The work that kernels execute divided by that of their nodes; 1 if there are none."""
    pairs = list(runs)
    work = sum(distinct_work(nest) for _, nest in pairs)
    return sum(executed_work(run) for run, _ in pairs) / work if work else 1.0


def _statements(run: Run, body: Sequence[KernelStatement], edges: Edges) -> float:
    """The additions of one execution of ``body``."""
    return sum([_statement(run, statement, edges) for statement in body])


def _statement(run: Run, statement: KernelStatement, edges: Edges) -> float:
    match statement:
        case Compute():
            return float(getattr(statement.node.op.kind, "cost", 1.0))
        case ReduceUpdate() | ReduceCombine() | MaskedLoad():
            return 1.0
        case Once():
            return _parameter(run, statement.extent) * _statements(run, statement.body, edges)
        case For() | RowGroups():
            length = _bound(run, statement.end, edges) - _bound(run, statement.begin, edges)
            return length * _statements(run, statement.body, edges)
        case Blocks():
            length = _bound(run, statement.end, edges) - _bound(run, statement.begin, edges)
            blocks = math.ceil(length / _parameter(run, statement.size))
            return blocks * _block(run, statement, statement.level, length / blocks if blocks else 0.0, edges)
        case Chunks():
            size = _parameter(run, statement.extent) / max(typical(run.total), 1)
            return typical(run.total) * _block(run, statement, BlockLevel.CHUNK, size, edges)
        case Choose():
            return max(_statements(run, branch.body, edges) for branch in statement.branches)
        case Repeat():
            return sum(_statements(run, b.body, edges) for b in (statement.condition, statement.body))
    return 0.0


def _block(run: Run, statement: Blocks | Chunks, level: Level, length: float, edges: Edges) -> float:
    """The additions of one block of average length."""
    begin, end = (Edge(statement.loop, level, side) for side in (False, True))
    return _statements(run, statement.body, {**edges, begin: 0.0, end: length})


def _bound(run: Run, bound: Bound, edges: Edges) -> float:
    if isinstance(bound, LaunchParameter):
        return _parameter(run, bound)
    if isinstance(bound, Edge):
        return edges[bound]
    return float(typical(run.total)) if bound is End.HIGH else 0.0


def _parameter(run: Run, parameter: LaunchParameter) -> float:
    return float(typical(run.parameters[parameter.number]))
