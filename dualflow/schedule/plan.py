"""Plans a graph: allocates storage for every value, and lists the calls that compute them.

Outputs get fresh buffers, constants keep theirs, intermediate values share one arena, and views are layouts
in the buffer of their source. The new value of a variable is computed in the variable's buffer if no later
call reads the old value; otherwise it is copied there at the end. No call that may fail comes after the first
write to a variable, so a call that fails changes no variable. Nodes without native code are host calls; the
values that they read or write have buffers of their own.

Where it pays, calls that don't depend on each other form regions, which threads run concurrently; the arena
keeps apart what is needed at the same time (:mod:`dualflow.schedule.concurrency`).

The bodies of conditionals and loops are planned as graphs inside the graph. Loop-carried values are stored
where the loop's results are, and are updated in place as variables are. A row of a stack is a buffer whose
address moves.
"""

from __future__ import annotations

import itertools

from dualflow.graph.capabilities import ALL, CPU_CACHES, Capabilities
from dualflow.graph.compiled import Footprint, MemoryBlock
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.ir import Graph, Value
from dualflow.graph.symbolic_size_ops import argument_sizes, computes_sizes, has_symbolic_sizes
from dualflow.schedule.call_order import BufferKind
from dualflow.schedule.host_fallback import with_host_fallbacks
from dualflow.schedule.plan_scope import PlanScope, PlanState
from dualflow.schedule.planned import NO_SIZES, Plan
from dualflow.schedule.scope_layouts import ScopeLayouts
from dualflow.sizes.symbolic_sizes import UndecidedSize


def plan(
    graph: Graph,
    capabilities: Capabilities = ALL,
    *,
    separate: bool = False,
    costs: CostModel = CPU,
) -> Plan:
    """The plan of ``graph``; see the docstring of the module.

    Args:
        graph: the graph after its passes.
        capabilities: what the backend's routines read, and the caches; other operands are copied first.
        separate: whether each intermediate value has its own buffer, for memory checks, instead of the arena.
        costs: the cost model of the processor.
    """
    scope = _scope_of_graph(graph, capabilities, costs, capabilities.call_threads, separate=separate)
    state = scope.state
    counts = {
        BufferKind.INPUT: len(graph.inputs),
        BufferKind.CONSTANT: len(state.constants),
        BufferKind.OUTPUT: len(graph.outputs),
        BufferKind.TEMPORARY: len(state.temporaries),
        BufferKind.ARENA: 1,
        BufferKind.STACK: state.row_buffers + state.loop_buffers,
        BufferKind.TASK: 1,
    }
    starts = dict(zip(counts, itertools.accumulate(counts.values(), initial=0), strict=False))
    calls = scope.calls(ScopeLayouts(starts, scope.allocations))
    return Plan(
        calls,
        tuple(v.spec for v in graph.inputs),
        tuple(state.constants),
        tuple(v.spec for v in graph.outputs),
        tuple(state.temporaries),
        scope.arena_bytes,
        state.row_buffers,
        state.loops,
        state.has_data_sizes,
        costs,
        capabilities.cache_bytes or CPU_CACHES,
        state.argument_sizes,
        scope.regions,
    )


def footprint(
    graph: Graph, capabilities: Capabilities, *, in_order: bool = True, costs: CostModel = CPU
) -> Footprint:
    """The memory that :func:`plan` allocates for ``graph``, whose sizes are static, or those of arguments.

    Unless ``in_order``, calls may run concurrently. The other arguments are those of :func:`plan`.

    Raises:
        UndecidedSize: NumPy reads a stack of a loop whose trip count is dynamic.
    """
    replaced: dict[Value, Value] = {}
    threads = 1 if in_order else capabilities.call_threads
    planned = graph if capabilities.host_calls_in_bodies else with_host_fallbacks(graph, replaced)
    scope = _scope_of_graph(planned, capabilities, costs, threads)
    temporaries = scope.state.temporaries
    if not all(spec.shape.is_static for spec in temporaries):
        raise UndecidedSize("the length of a stack that NumPy reads depends on data")
    origin: dict[Value, Value] = {}
    for value in (v for node in graph.nodes for v in node.outputs):
        replacement = replaced.get(value, value)
        origin[scope.replacements.get(replacement, replacement)] = value
    computed = (next((origin[v] for v in step.node.outputs if v in origin), None) for step in scope.steps)
    blocks = [
        MemoryBlock(origin.get(v), birth, tuple(reads), v.spec.nbytes) for v, (birth, reads) in scope.reads()
    ]
    blocks += [MemoryBlock(None, number, (), nbytes) for number, nbytes in scope.inner()]
    non_contiguous = (v for v, allocation in scope.allocations.items() if allocation.strides is not None)
    return Footprint(
        steps=tuple([None if value is None else value.node for value in computed]),
        blocks=tuple(blocks),
        non_contiguous=frozenset(origin[v] for v in non_contiguous if v in origin),
        arena=scope.arena_bytes + scope.task_bytes(),
        held=sum(spec.nbytes for spec in (*(v.spec for v in graph.outputs), *temporaries)),
    )


def _scope_of_graph(
    graph: Graph, capabilities: Capabilities, costs: CostModel, threads: int, *, separate: bool = False
) -> PlanScope:
    """The scope of a whole graph. Calls run in order if sizes depend on data, or values are separate."""
    bound_sizes = NO_SIZES if separate or computes_sizes(graph) else argument_sizes(graph)
    has_data_sizes = has_symbolic_sizes(graph) and not bound_sizes
    state = PlanState(
        capabilities,
        separate=separate,
        costs=costs,
        argument_sizes=bound_sizes,
        has_data_sizes=has_data_sizes,
        threads=1 if separate or has_data_sizes else threads,
    )
    return PlanScope(graph, state, updates_variables=True)
