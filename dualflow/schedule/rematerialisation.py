"""Rematerialisation: recomputes values instead of keeping them, until a graph fits into a memory budget.

Reordering comes first, since it costs nothing: nodes that free memory run early. Then the search is greedy:
at the peak of memory, each value that waits for a later reader is a candidate. Its cost is the
time of computing it again; inputs that are freed by then are recomputed too, or kept if they are much
smaller. The candidates that free the most bytes per cost are dropped, and the planner computes the new peak.
The search does not depend on the budget, which only ends it; so the smallest peak that it reaches is the
smallest possible budget.
(Chen et al., "Training deep nets with sublinear memory cost", 2016; Kirisame et al., "Dynamic tensor
rematerialization", 2021, for choosing by bytes per cost.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate

from dualflow.core.records import NamedTuple
from dualflow.graph.compiled import Footprint, MemoryBlock
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.failing import may_fail
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.views import base_of, is_view
from dualflow.graph.work import nanoseconds
from dualflow.ops.op_kinds import Literal
from dualflow.schedule.early_order import FirstReaders, first_readers, ordered_early
from dualflow.schedule.operands import CallKind, kind_of
from dualflow.schedule.recomputation import Parts, Recomputed, recomputed

DROPPED_FRACTION = 32
"""The planner runs again once 1 / 32 of the peak is dropped."""
SMALL_FRACTION = 16
"""An input is kept rather than recomputed if its reader is at least 16 times larger."""
MAX_RECOMPUTED = 64
"""The largest number of nodes that are recomputed for one value."""
PATIENCE = 48
"""The search ends after this number of runs of the planner without a smaller peak."""

Drop = tuple[int, Value]
"""The position of a node in the graph, and a value that is freed after it."""


class WithinBudget(NamedTuple):
    """A graph that fits into the budget.

    Attributes:
        graph: the graph.
        peak: its peak of memory, in bytes, by its plan.
        repeated: its nodes that recompute a value.
        extra: their cost as a fraction of the cost of all others.
    """

    graph: Graph
    peak: int
    repeated: tuple[Node, ...] = ()
    extra: float = 0.0


class SmallestPossible(NamedTuple):
    """The smallest budget that is possible for a graph.

    Attributes:
        peak: the budget, in bytes.
        node: the node that runs at the peak.
    """

    peak: int
    node: Node | None


class _SearchState(NamedTuple):
    """A state of the search for values to drop: the graph that recomputes them, and its memory use."""

    graph: Recomputed
    footprint: Footprint


def within_budget(
    graph: Graph, budget: int, footprint: Callable[[Graph], Footprint], costs: CostModel = CPU
) -> WithinBudget | SmallestPossible:
    """``graph`` with a peak of at most ``budget`` bytes, or the smallest peak that is possible.

    Results are the same to the bit. Only nodes without effects that can't fail are recomputed, by the same
    kernels. Values with a non-contiguous layout are kept, since sums follow the order in memory.

    Args:
        graph: the graph after its passes, with static sizes.
        budget: in bytes, for everything but arguments, variables and constants.
        footprint: the planner; see :class:`dualflow.graph.compiled.Footprint`.
        costs: the cost model of the processor.
    """
    before = footprint(graph)
    if before.peak <= budget:
        return WithinBudget(graph, before.peak)
    fixed = first_readers(graph, before)
    search = _DropSearch(ordered_early(graph, before, fixed), fixed, footprint, costs)
    best, runs_without_progress = before, 0
    drops: list[Drop] = []
    while True:
        state = search.state(drops)
        if state.footprint.peak <= budget:
            return search.finished(state, drops, budget)
        smaller = state.footprint.peak < best.peak
        best, runs_without_progress = (state.footprint, 0) if smaller else (best, runs_without_progress + 1)
        following = search.next(state, drops) if runs_without_progress < PATIENCE else []
        if not following:
            return SmallestPossible(best.peak, _at_peak(best))
        search.steps.append(len(drops))
        drops += following


def _at_peak(footprint: Footprint) -> Node | None:
    """The last node up to the peak that has a source line."""
    peak = _peak(footprint)
    return next((n for n in reversed(footprint.steps[: peak + 1]) if n is not None and n.origin), None)


def _peak(footprint: Footprint) -> int:
    """The step with the peak of memory."""
    change = [0] * (len(footprint.steps) + 2)
    for block in footprint.blocks:
        change[block.birth] += block.nbytes
        change[max(block.reads, default=block.birth) + 1] -= block.nbytes
    live = list(accumulate(change))
    return live.index(max(live))


class _DropSearch:
    """The greedy search for values to drop in one graph.

    Attributes:
        steps: the number of dropped values at each run of the planner.
    """

    def __init__(
        self,
        graph: Graph,
        fixed: FirstReaders,
        footprint: Callable[[Graph], Footprint],
        costs: CostModel,
    ) -> None:
        self.graph, self.model = graph, costs
        self.steps: list[int] = []
        self._footprint = footprint
        self._parts = Parts()
        self._repeatable = {n for n in graph.nodes if _may_repeat(n, fixed)}
        self._costs: dict[Value, float] = {}
        self._first = set(fixed.values())

    def state(self, drops: list[Drop]) -> _SearchState:
        """The graph in which the values in ``drops`` are recomputed, and its footprint."""
        dropped: dict[int, list[Value]] = {}
        for position, value in drops:
            dropped.setdefault(position, []).append(value)
        recomputing = recomputed(self.graph, dropped, self._parts)
        return _SearchState(recomputing, self._footprint(recomputing.graph))

    def finished(self, state: _SearchState, drops: list[Drop], budget: int) -> WithinBudget:
        """The state within the budget with the fewest drops since the last run of the planner."""
        low, high = (self.steps[-1] if self.steps else 0), len(drops)
        while high - low > 1:
            middle = (low + high) // 2
            tried = self.state(drops[:middle])
            if tried.footprint.peak <= budget:
                state, high = tried, middle
            else:
                low = middle
        graph, repeated = state.graph.graph, state.graph.repeated
        whole = sum(nanoseconds(n, self.model) for n in graph.nodes if not is_view(n))
        again = sum(nanoseconds(n, self.model) for n in repeated)
        extra = again / (whole - again) if whole > again else 0.0
        return WithinBudget(graph, state.footprint.peak, repeated, extra)

    def next(self, state: _SearchState, drops: list[Drop]) -> list[Drop]:
        """The next values to drop: those that free the most bytes per cost."""
        following: dict[Drop, None] = {}
        freed = 0
        candidates = _CandidateFinder(state, set(drops), self).candidates()
        for candidate in sorted(candidates, key=lambda candidate: -candidate.worth):
            following.update(dict.fromkeys(candidate.drops))
            freed += candidate.freed
            if freed * DROPPED_FRACTION >= state.footprint.arena:
                break
        return list(following)

    def may_repeat(self, value: Value) -> bool:
        """Whether ``value`` may be recomputed."""
        return value.node in self._repeatable

    def may_move(self, value: Value) -> bool:
        """Whether ``value`` may be computed later."""
        return self.may_repeat(value) and value.node not in self._first

    def cost(self, value: Value) -> float:
        """The cost of computing ``value``."""
        if value not in self._costs:
            self._costs[value] = nanoseconds(self._parts.of(value).node, self.model)
        return self._costs[value]

    def inputs(self, value: Value) -> list[Value]:
        """The values that ``value`` is computed from."""
        return list(dict.fromkeys(map(base_of, self._parts.of(value).inputs)))


class _Candidate(NamedTuple):
    """A candidate of the search: values to drop together.

    Attributes:
        drops: the values, and where each is freed.
        freed: the bytes that are free at the peak.
        cost: the cost of recomputing them.
        gain: the fraction of the saved bytes times steps that is left after inputs are kept longer for the
            recomputation.
    """

    drops: tuple[Drop, ...]
    freed: int
    cost: float
    gain: float

    @property
    def worth(self) -> float:
        """The freed bytes per ns of recomputation."""
        return self.freed * self.gain / (self.cost + 1.0)


class _Idle(NamedTuple):
    """A value that is in memory at the peak, and not read there.

    Attributes:
        drop: where it may be freed.
        before: the last step before the peak that reads it, or the one that computes it.
        later: the next step that reads it.
        nbytes: its size.
        cost: the cost of recomputing it; 0 if it is only computed later than now.
    """

    drop: Drop
    before: int
    later: int
    nbytes: int
    cost: float


class _CandidateFinder:
    """Finds values to drop during the memory peak of a graph: those stored but not read then."""

    def __init__(self, state: _SearchState, dropped: set[Drop], search: _DropSearch) -> None:
        self._blocks = state.footprint.blocks
        self._source = state.graph.source
        self._dropped = dropped
        self._search = search
        self._peak = _peak(state.footprint)
        self._original_positions = _original_positions(state)
        self._versions: dict[Value, list[MemoryBlock]] = {}
        for block in self._blocks:
            value = self._original(block)
            if value is not None:
                self._versions.setdefault(value, []).append(block)

    def candidates(self) -> list[_Candidate]:
        """The candidates for recomputation: each idle value, and the group of all idle outputs of a node."""
        idle = [value for block in self._blocks if (value := self._idle(block)) is not None]
        together: dict[Node | None, list[_Idle]] = {}
        for value in idle:
            together.setdefault(value.drop[1].node, []).append(value)
        groups = [[value] for value in idle] + [values for values in together.values() if len(values) > 1]
        candidates = [
            self._candidate(values, recompute_inputs=recompute)
            for values in groups
            for recompute in (True, False)
        ]
        return [candidate for candidate in candidates if candidate is not None]

    def _original(self, block: MemoryBlock) -> Value | None:
        """The value of the original graph that ``block`` stores; it may be a recomputed copy.

        None if there is none.
        """
        return None if block.value is None else self._source.get(block.value)

    def _idle(self, block: MemoryBlock) -> _Idle | None:
        """The block as a value that may be freed during the peak; None if it may not."""
        value, search = self._original(block), self._search
        if value is None or block.birth >= self._peak or self._peak in block.reads:
            return None
        earlier = bisect_left(block.reads, self._peak)
        if earlier == len(block.reads) or not (
            search.may_repeat(value) if earlier else search.may_move(value)
        ):
            return None
        before = block.reads[earlier - 1] if earlier else block.birth
        drop = self._original_positions[before], value
        if drop[0] >= self._original_positions[self._peak] or drop in self._dropped:
            return None
        cost = search.cost(value) if earlier else 0.0
        return _Idle(drop, before, block.reads[earlier], block.nbytes, cost)

    def _candidate(self, values: list[_Idle], *, recompute_inputs: bool) -> _Candidate | None:
        """A candidate: idle outputs of one node, and inputs to recompute first; None if it frees nothing.

        Args:
            values: the values.
            recompute_inputs: whether inputs that are freed by then are recomputed too, rather than kept.
        """
        search, next_read = self._search, min(value.later for value in values)
        drops, freed = [value.drop for value in values], sum(value.nbytes for value in values)
        cost = max(value.cost for value in values)
        saved_byte_steps = sum(value.nbytes * (next_read - value.before) for value in values)
        kept_byte_steps, small_bytes = 0, freed // SMALL_FRACTION
        visited = {value.drop[1] for value in values}
        pending = [source for value in visited for source in search.inputs(value)]
        while pending:
            source = pending.pop()
            block = None if source in visited else self._version(source, next_read)
            visited.add(source)
            last_read = next_read if block is None else max(block.reads, default=block.birth)
            if block is None or last_read >= next_read:
                continue
            drop = self._original_positions[last_read], source
            if drop not in self._dropped:
                is_freed_by_peak = last_read < self._peak
                if not (
                    is_freed_by_peak
                    and recompute_inputs
                    and block.nbytes > small_bytes
                    and self._may_follow(source, drops)
                ):
                    kept_byte_steps += block.nbytes * (next_read - last_read)
                    freed -= block.nbytes if is_freed_by_peak else 0
                    continue
                drops.append(drop)
            cost += search.cost(source)
            pending += search.inputs(source)
        if freed <= 0 or kept_byte_steps >= saved_byte_steps:
            return None
        return _Candidate(tuple(drops), freed, cost, 1.0 - kept_byte_steps / saved_byte_steps)

    def _may_follow(self, value: Value, drops: list[Drop]) -> bool:
        return self._search.may_repeat(value) and len(drops) < MAX_RECOMPUTED

    def _version(self, value: Value, later: int) -> MemoryBlock | None:
        """The block that holds ``value`` at step ``later``; None if the value is always in memory."""
        versions = self._versions.get(value, ())
        at = bisect_right(versions, later, key=lambda b: b.birth)
        return versions[at - 1] if at else None


def _original_positions(state: _SearchState) -> list[int]:
    """For each step the position of its node in the original graph; for copies, that of the next node."""
    steps = state.footprint.steps
    positions = [len(state.graph.place)] * (len(steps) + 1)
    for step in reversed(range(len(steps))):
        node = steps[step]
        positions[step] = positions[step + 1] if node is None else state.graph.place[node]
    return positions


def _may_repeat(node: Node, fixed: FirstReaders) -> bool:
    """Whether ``node`` may run twice, with its outputs freed in between."""
    if node.effect is not None or is_view(node) or isinstance(node.op.kind, Literal):
        return False
    kinds = CallKind.KERNEL, CallKind.ASSEMBLY, CallKind.PRODUCT, CallKind.CONTROL
    return kind_of(node) in kinds and fixed.keys().isdisjoint(node.outputs) and not may_fail(node)
