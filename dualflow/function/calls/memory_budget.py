"""``@function(memory_budget=...)``: reports of the memory of a call, and rematerialisation."""

from __future__ import annotations

from functools import partial

from dualflow.core.errors import FailedPreconditionError, ResourceExhaustedError
from dualflow.core.records import dataclass
from dualflow.graph.compiled import Backend, Footprint
from dualflow.graph.cost_model import CostModel
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node
from dualflow.schedule.rematerialisation import SmallestPossible, WithinBudget, within_budget
from dualflow.sizes.symbolic_sizes import UndecidedSize


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


def keep_budget(graph: Graph, budget: int, backend: Backend, costs: CostModel) -> WithinBudget:
    """``graph`` with rematerialisation, so that its plan stays within ``budget`` bytes.

    All passes must have run on it, and all its sizes must be numbers.

    Raises:
        ResourceExhaustedError: no plan stays within the budget.
        FailedPreconditionError: a size depends on data.
    """
    plan = within_budget(graph, budget, partial(_footprint, backend, in_order=True), costs)
    if isinstance(plan, SmallestPossible):
        where = f"\n  {plan.node.origin}" if plan.node is not None else ""
        what = "copies" if plan.node is None else _named(plan.node)
        raise ResourceExhaustedError(
            f"{graph.name!r} can't run in a memory_budget of {budget} bytes: even with all possible values "
            f"computed again it takes {_shown(plan.peak)} ({plan.peak} bytes), most of it by {what}. Raise "
            f"the budget to that, use a smaller batch, or compute in parts.{where}"
        )
    return plan


def _footprint(backend: Backend, graph: Graph, *, in_order: bool) -> Footprint:
    """The memory of a call of ``graph``, from the plan of ``backend``.

    Raises:
        FailedPreconditionError: a size depends on data.
    """
    try:
        return backend.footprint(graph, in_order=in_order)
    except UndecidedSize:
        refuse_unknown(graph, next((n for n in graph.nodes if _has_open_sizes(n)), None))
        raise


def _has_open_sizes(node: Node) -> bool:
    return not all(spec.shape.is_static for spec in node.specs)


def refuse_unknown(graph: Graph, cause: Node | None) -> None:
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
    graph: Graph, plan: WithinBudget | None, budget: int | None, backend: Backend
) -> MemoryReport:
    """The memory of a call of ``graph``; ``plan`` is its rematerialisation, if it has a budget."""
    footprint = _footprint(backend, graph, in_order=budget is not None)
    if plan is None:
        return MemoryReport(footprint.peak, footprint.arena, budget)
    lines = tuple([f"{_named(n)}, {n.origin}" if n.origin else _named(n) for n in plan.repeated])
    return MemoryReport(footprint.peak, footprint.arena, budget, lines, plan.extra)


def _named(node: Node) -> str:
    """The op of a node; of a fused node the ops that it computes."""
    body = body_of(node)
    return node.op.name if body is None else body.name


def _shown(nbytes: int) -> str:
    for name, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {name}"
    return f"{nbytes} bytes"
