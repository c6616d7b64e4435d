"""``@function(memory_budget=...)``: reports of the memory of a call, and rematerialisation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dualflow.core.errors import FailedPreconditionError, ResourceExhaustedError
from dualflow.core.records import dataclass
from dualflow.function.calls.size_decisions import CallSizes
from dualflow.graph.compiled import Backend, Footprint
from dualflow.graph.fused import computed_op_names
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.size_guards import SizeGuards, guard_of, verify_with_bodies
from dualflow.graph.symbolic_size_ops import (
    GUARD_SIZES,
    argument_sizes,
    computes_sizes,
    first_axes,
    is_argument_size,
)
from dualflow.schedule.rematerialisation import SmallestPossible, WithinBudget, within_budget
from dualflow.sizes.symbolic_sizes import SizeVariable, SymInt, UndecidedSize


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The memory of a call of a trace by its plan, without its arguments, variables and constants.

    The scratch memory of kernels, a few rows for each thread, and of NumPy's functions is not counted.

    Attributes:
        peak: the largest number of bytes that are allocated at a time.
        arena: the part of them that intermediate values share.
        budget: the largest number of bytes that a call may allocate; None without a limit.
        recomputed: the steps that compute values again: the ops of each, and the user's line.
        extra_work: their estimated work, relative to that of the graph: 0.25 is a quarter more.
    """

    peak: int
    arena: int
    budget: int | None = None
    recomputed: tuple[str, ...] = ()
    extra_work: float = 0.0

    def __str__(self) -> str:
        text = f"{_shown(self.peak)} at the peak of a call"
        if self.budget is None:
            return text
        text += f", of a budget of {_shown(self.budget)}"
        if not self.recomputed:
            return f"{text}; nothing is computed again"
        return f"{text}; {len(self.recomputed)} steps run again, {self.extra_work:.0%} more work"

    __repr__ = __str__


def keep_budget(
    graph: Graph, options: CompileOptions, backend: Backend, sizes: Mapping[SizeVariable, int]
) -> WithinBudget:
    """``graph`` with rematerialisation, so that its plan stays within the memory budget of ``options``.

    All passes must have run on it. The plan is for calls with the numbers ``sizes`` for size variables.

    Raises:
        ResourceExhaustedError: no plan stays within the budget.
        FailedPreconditionError: a size depends on data.
    """
    budget = options.memory_budget
    assert budget is not None, "there is a budget"
    footprint = partial(_footprint, backend, sizes, in_order=True)
    plan = within_budget(graph, budget, footprint, options.cost_model)
    if isinstance(plan, SmallestPossible):
        where = f"\n  {plan.node.origin}" if plan.node is not None else ""
        what = "copies" if plan.node is None else computed_op_names(plan.node)
        raise ResourceExhaustedError(
            f"{graph.name!r} can't run in a memory_budget of {budget} bytes: even with all possible values "
            f"computed again it takes {_shown(plan.peak)} ({plan.peak} bytes), most of it by {what}. Raise "
            f"the budget to that, use a smaller batch, or compute in parts.{where}"
        )
    if options.checking:
        verify_with_bodies(plan.graph)
    return plan


def guarded_budget(
    graph: Graph, options: CompileOptions, backend: Backend, call_sizes: CallSizes | None
) -> WithinBudget:
    """``graph`` with rematerialisation for the sizes of one call, and a guard for the others.

    It serves all calls whose sizes don't need more memory than the budget. ``call_sizes`` gets the guard.

    Raises:
        ResourceExhaustedError: no plan stays within the budget.
        UndecidedSize: its sizes don't follow from those of arguments.
    """
    if call_sizes is None or computes_sizes(graph):
        raise UndecidedSize("a memory budget is planned for the sizes of arguments")
    axes = first_axes(argument_sizes(graph))
    if not call_sizes.sizes.keys() >= set(axes.values()):
        raise UndecidedSize("a size of the graph is not the size of an argument of the call")
    numbers = {variable: call_sizes.sizes[axis] for variable, axis in axes.items()}
    plan = keep_budget(graph, options, backend, numbers)
    peak = backend.footprint(plan.graph).peak
    if not isinstance(peak, SymInt):
        return plan
    attrs = {"x": options.memory_budget, "y": peak, "equality": False, "outcome": False}
    guard, results = Node(GUARD_SIZES, [], attrs, []), plan.graph.results
    binding = [node for node in plan.graph.nodes if is_argument_size(node)]
    others = [node for node in plan.graph.nodes if not is_argument_size(node)]
    guarded = plan.graph.with_results(results, nodes=(*binding, guard, *others))
    call_sizes.add(SizeGuards(axes, (guard_of(guard),)))
    return plan._replace(graph=guarded)


def _footprint(
    backend: Backend, sizes: Mapping[SizeVariable, int], graph: Graph, *, in_order: bool
) -> Footprint:
    """The memory of a call of ``graph`` with these sizes, from the plan of ``backend``.

    Raises:
        FailedPreconditionError: a size depends on data.
    """
    try:
        return backend.footprint(graph, in_order=in_order).with_sizes(sizes)
    except UndecidedSize:
        reject_unknown(graph, next((n for n in graph.nodes if _has_dynamic_sizes(n)), None))
        raise


def _has_dynamic_sizes(node: Node) -> bool:
    return not all(spec.shape.is_static for spec in node.specs)


def reject_unknown(graph: Graph, cause: Node | None) -> None:
    """Raise an error for a graph whose memory can't be planned.

    Raises:
        FailedPreconditionError: a size of a result of ``cause`` depends on data; or there are strings.
    """
    what = "it has strings, whose memory Python allocates"
    where = ""
    if cause is not None:
        what = f"the size of the result of {cause.op.name} depends on data"
        where = "" if cause.origin is None else f"\n  {cause.origin}"
    raise FailedPreconditionError(
        f"The memory of {graph.name!r} can't be planned: {what}. Leave memory_budget out, or compute that "
        f"part outside of the function.{where}"
    )


def memory_report(
    graph: Graph,
    plan: WithinBudget | None,
    budget: int | None,
    backend: Backend,
    sizes: Mapping[SizeVariable, int],
) -> MemoryReport:
    """The memory of a call of ``graph``.

    Args:
        graph: the graph after its passes.
        plan: its rematerialisation, if it has a budget.
        budget: the budget in bytes.
        backend: plans the graph.
        sizes: the numbers of the size variables in the call.
    """
    footprint = _footprint(backend, sizes, graph, in_order=budget is not None)
    if plan is None:
        return MemoryReport(footprint.peak, footprint.arena, budget)
    lines = tuple(
        [f"{computed_op_names(n)}, {n.origin}" if n.origin else computed_op_names(n) for n in plan.repeated]
    )
    return MemoryReport(footprint.peak, footprint.arena, budget, lines, plan.extra)


def _shown(nbytes: int) -> str:
    for name, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {name}"
    return f"{nbytes} bytes"
