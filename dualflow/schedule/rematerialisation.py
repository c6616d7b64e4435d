"""Memory for work: a graph that computes values again in the place of keeping them, within so many bytes.

The first step costs nothing: what frees memory runs early. Then, at the step where most memory is taken, the
values that wait there for a later reader are looked at, each with what computing it again takes: what of its
inputs is gone by then is computed again too, or kept if it is much smaller. Those that free most for their
work are dropped, and the planner says where most memory is taken then. The way does not depend on the
budget, which only says where it ends; the least peak that it meets is the smallest possible budget.
(Chen et al., "Training deep nets with sublinear memory cost", 2016; Kirisame et al., "Dynamic tensor
rematerialization", 2021, for choosing by bytes per work.)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate

from dualflow.core.records import NamedTuple
from dualflow.graph.axes import base_of, is_view
from dualflow.graph.compiled import Footprint, MemoryBlock
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.failing import may_fail
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.work import bytes_moved, work
from dualflow.ops.op_kinds import Literal, MatMul
from dualflow.schedule.early_order import FirstReaders, first_readers, ordered_early
from dualflow.schedule.operands import CallKind, kind_of
from dualflow.schedule.recomputation import Parts, Recomputed, recomputed

SHARE = 32
"""One part in so many of the peak is dropped before the planner is asked again."""
SMALL = 16
"""An input so many times smaller than what is computed from it is kept rather than computed again."""
LONGEST = 64
"""The most nodes that are computed again for one value."""
PATIENCE = 48
"""So many times the planner is asked without a smaller peak before the way ends."""

Drop = tuple[int, Value]
"""The place behind which a value is forgotten, and the value."""


class WithinBudget(NamedTuple):
    """A graph that takes no more than so many bytes.

    Attributes:
        graph: it.
        peak: the bytes that it takes, by its plan.
        repeated: those of its nodes that compute something again.
        extra: their share of the work of all.
    """

    graph: Graph
    peak: int
    repeated: tuple[Node, ...] = ()
    extra: float = 0.0


class SmallestPossible(NamedTuple):
    """The least bytes that a graph can take.

    Attributes:
        peak: the bytes, by the plan.
        node: what runs when most is taken.
    """

    peak: int
    node: Node | None


class _Stage(NamedTuple):
    """A graph on the way, and what it takes."""

    made: Recomputed
    taken: Footprint


def within_budget(
    graph: Graph, budget: int, footprint: Callable[[Graph], Footprint], costs: CostModel = CPU
) -> WithinBudget | SmallestPossible:
    """``graph`` with a peak of at most ``budget`` bytes, or the smallest peak that there is.

    Results are the same to the bit. Only what has no effect and can't fail is computed again, by the same
    kernels; values that lie in memory otherwise than in order stay, since sums follow the order in memory.

    Args:
        graph: the graph after its passes; its sizes are numbers.
        budget: the bytes of all that a call takes beside its arguments, variables and constants.
        footprint: the planner: see :class:`dualflow.graph.compiled.Footprint`.
        costs: the figures of the processor.
    """
    taken = footprint(graph)
    if taken.peak <= budget:
        return WithinBudget(graph, taken.peak)
    fixed = first_readers(graph, taken)
    way = _Way(ordered_early(graph, taken, fixed), fixed, footprint, costs)
    best, since = taken, 0
    drops: list[Drop] = []
    while True:
        state = way.state(drops)
        if state.taken.peak <= budget:
            return way.finished(state, drops, budget)
        best, since = (state.taken, 0) if state.taken.peak < best.peak else (best, since + 1)
        found = way.next(state, drops) if since < PATIENCE else []
        if not found:
            return SmallestPossible(best.peak, _at_peak(best))
        way.steps.append(len(drops))
        drops += found


def _at_peak(taken: Footprint) -> Node | None:
    """What runs where most memory is taken: the last node before that has a line."""
    at = _peak(taken)
    return next((n for n in reversed(taken.steps[: at + 1]) if n is not None and n.origin), None)


def _peak(taken: Footprint) -> int:
    """The step at which most memory is taken."""
    change = [0] * (len(taken.steps) + 2)
    for block in taken.blocks:
        change[block.birth] += block.nbytes
        change[max(block.reads, default=block.birth) + 1] -= block.nbytes
    live = list(accumulate(change))
    return live.index(max(live))


def _nanoseconds(node: Node, costs: CostModel) -> float:
    """About what running ``node`` takes."""
    if isinstance(node.op.kind, MatMul):
        return work(node) * costs.product_ns / 2  # a multiplication and an addition are two ops
    return max(work(node) * costs.addition_ns, bytes_moved(node) * costs.memory_byte_ns)


class _Way:
    """What is known of a graph while values are dropped.

    Attributes:
        steps: how many values were dropped when the planner was asked.
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

    def state(self, drops: list[Drop]) -> _Stage:
        """The graph without what is dropped, and what it takes."""
        dropped: dict[int, list[Value]] = {}
        for at, value in drops:
            dropped.setdefault(at, []).append(value)
        made = recomputed(self.graph, dropped, self._parts)
        return _Stage(made, self._footprint(made.graph))

    def finished(self, state: _Stage, drops: list[Drop], budget: int) -> WithinBudget:
        """The first state since the planner was asked before that is within the budget."""
        low, high = (self.steps[-1] if self.steps else 0), len(drops)
        while high - low > 1:
            middle = (low + high) // 2
            found = self.state(drops[:middle])
            if found.taken.peak <= budget:
                state, high = found, middle
            else:
                low = middle
        graph, repeated = state.made.graph, state.made.repeated
        whole = sum(_nanoseconds(n, self.model) for n in graph.nodes if not is_view(n))
        again = sum(_nanoseconds(n, self.model) for n in repeated)
        extra = again / (whole - again) if whole > again else 0.0
        return WithinBudget(graph, state.taken.peak, repeated, extra)

    def next(self, state: _Stage, drops: list[Drop]) -> list[Drop]:
        """What to drop next: what frees most for its work, until a share of the peak is free."""
        found: dict[Drop, None] = {}
        freed = 0
        rows = _Looked(state, set(drops), self).choices()
        for row in sorted(rows, key=lambda row: -row.worth):
            found.update(dict.fromkeys(row.drops))
            freed += row.freed
            if freed * SHARE >= state.taken.arena:
                break
        return list(found)

    def may_repeat(self, value: Value) -> bool:
        """Whether ``value`` may be computed again."""
        return value.node in self._repeatable

    def may_move(self, value: Value) -> bool:
        """Whether ``value`` may be computed later."""
        return self.may_repeat(value) and value.node not in self._first

    def cost(self, value: Value) -> float:
        """What computing ``value`` takes."""
        if value not in self._costs:
            self._costs[value] = _nanoseconds(self._parts.of(value).node, self.model)
        return self._costs[value]

    def inputs(self, value: Value) -> list[Value]:
        """What ``value`` is computed from."""
        return list(dict.fromkeys(map(base_of, self._parts.of(value).inputs)))


class _Choice(NamedTuple):
    """Values to drop together.

    Attributes:
        drops: where each is dropped.
        freed: the bytes that are free at the peak.
        cost: what computing them again takes.
        gain: the share that is left of freed bytes times steps, for what is computed again holds its inputs.
    """

    drops: tuple[Drop, ...]
    freed: int
    cost: float
    gain: float

    @property
    def worth(self) -> float:
        """The bytes that are free for each ns of work."""
        return self.freed * self.gain / (self.cost + 1.0)


class _Waiting(NamedTuple):
    """A value that nobody reads at the peak.

    Attributes:
        drop: where it may be dropped.
        before: the step that reads it last before the peak, or makes it.
        later: the step that reads it next.
        nbytes: its size.
        cost: what computing it again takes; nothing where it is only computed later.
    """

    drop: Drop
    before: int
    later: int
    nbytes: int
    cost: float


class _Looked:
    """A state, seen from the step where most memory is taken."""

    def __init__(self, state: _Stage, dropped: set[Drop], way: _Way) -> None:
        self._blocks = state.taken.blocks
        self._source = state.made.source
        self._dropped = dropped
        self._way = way
        self._peak = _peak(state.taken)
        self._places = _places(state)
        self._versions: dict[Value, list[MemoryBlock]] = {}
        for block in self._blocks:
            value = self._original(block)
            if value is not None:
                self._versions.setdefault(value, []).append(block)

    def choices(self) -> list[_Choice]:
        """What may be dropped: values one by one, and all of a node together, which share their inputs."""
        waiting = [row for block in self._blocks if (row := self._waiting(block)) is not None]
        together: dict[Node | None, list[_Waiting]] = {}
        for row in waiting:
            together.setdefault(row.drop[1].node, []).append(row)
        groups = [[row] for row in waiting] + [rows for rows in together.values() if len(rows) > 1]
        choices = [self._choice(rows, deep=deep) for rows in groups for deep in (True, False)]
        return [choice for choice in choices if choice is not None]

    def _original(self, block: MemoryBlock) -> Value | None:
        """The value of the graph as it was that a block holds."""
        return None if block.value is None else self._source.get(block.value)

    def _waiting(self, block: MemoryBlock) -> _Waiting | None:
        """A block that may be dropped for the time of the peak; None for one that may not."""
        value, way = self._original(block), self._way
        if value is None or block.birth >= self._peak or self._peak in block.reads:
            return None
        earlier = bisect_left(block.reads, self._peak)
        if earlier == len(block.reads) or not (way.may_repeat(value) if earlier else way.may_move(value)):
            return None
        before = block.reads[earlier - 1] if earlier else block.birth
        drop = self._places[before], value
        if drop[0] >= self._places[self._peak] or drop in self._dropped:
            return None
        cost = way.cost(value) if earlier else 0.0
        return _Waiting(drop, before, block.reads[earlier], block.nbytes, cost)

    def _choice(self, rows: list[_Waiting], *, deep: bool) -> _Choice | None:
        """Values of one node with what has to be computed again before them; None where that frees nothing.

        Args:
            rows: the values.
            deep: whether inputs that are gone are computed again too, rather than kept.
        """
        way, later = self._way, min(row.later for row in rows)
        drops, freed = [row.drop for row in rows], sum(row.nbytes for row in rows)
        cost = max(row.cost for row in rows)
        whole = sum(row.nbytes * (later - row.before) for row in rows)
        held, small = 0, freed // SMALL
        seen = {row.drop[1] for row in rows}
        pending = [source for value in seen for source in way.inputs(value)]
        while pending:
            source = pending.pop()
            found = None if source in seen else self._version(source, later)
            seen.add(source)
            last = later if found is None else max(found.reads, default=found.birth)
            if found is None or last >= later:
                continue
            behind = self._places[last], source
            if behind not in self._dropped:
                gone = last < self._peak
                if not (gone and deep and found.nbytes > small and self._may_follow(source, drops)):
                    held += found.nbytes * (later - last)
                    freed -= found.nbytes if gone else 0
                    continue
                drops.append(behind)
            cost += way.cost(source)
            pending += way.inputs(source)
        if freed <= 0 or held >= whole:
            return None
        return _Choice(tuple(drops), freed, cost, 1.0 - held / whole)

    def _may_follow(self, value: Value, drops: list[Drop]) -> bool:
        return self._way.may_repeat(value) and len(drops) < LONGEST

    def _version(self, value: Value, later: int) -> MemoryBlock | None:
        """The block of ``value`` that step ``later`` would find; None for what is there all the time."""
        versions = self._versions.get(value, ())
        at = bisect_right(versions, later, key=lambda b: b.birth)
        return versions[at - 1] if at else None


def _places(state: _Stage) -> list[int]:
    """For each step the place of its node in the graph as it was; that of the next one for copies."""
    found = [len(state.made.place)] * (len(state.taken.steps) + 1)
    for at in reversed(range(len(state.taken.steps))):
        node = state.taken.steps[at]
        found[at] = found[at + 1] if node is None else state.made.place[node]
    return found


def _may_repeat(node: Node, fixed: FirstReaders) -> bool:
    """Whether ``node`` may run twice, and its results be forgotten between."""
    if node.effect is not None or is_view(node) or isinstance(node.op.kind, Literal):
        return False
    kinds = CallKind.KERNEL, CallKind.ASSEMBLY, CallKind.PRODUCT, CallKind.CONTROL
    return kind_of(node) in kinds and fixed.keys().isdisjoint(node.outputs) and not may_fail(node)
