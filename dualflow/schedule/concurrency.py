"""Regions of a plan whose calls run concurrently, and whether that pays.

    q = x @ a     k = x @ b     v = x @ c           three tasks without dependences
    s = softmax(q @ k.T)                            a task after the first two
    y = s @ v                                       a task after that and the third

The calls of a graph depend on each other by the storage that they read and write. Between calls that have to
run alone, such as loops, checks and NumPy kernels, the others form a *window*. A window becomes a *region* of
tasks if the estimated time on several threads is clearly less than that of its calls in order, each of which
splits its own loops over the threads. So a graph of large calls stays as it is.

A task is one call, or several that run in order on one thread: a chain, or calls so short that handing them
to another thread costs more than they take. (Sarkar, "Partitioning and scheduling parallel programs for
multiprocessors", 1989.)

If sizes are symbolic, the tasks are those of small sizes, and each call decides by its own sizes: if the work
is small, or its calls are so large that each is split, one thread runs the tasks in order.

Order in which calls take effect: a call that may fail comes after earlier ones that may fail, so the first
error is that of the program in order; a call that writes to an input is in no region with an earlier call
that may fail.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Collection, Hashable, Iterator, Sequence

from dualflow.core.records import NamedTuple
from dualflow.graph.cost_model import CostModel
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Node
from dualflow.graph.list_schedule import (
    Dependences,
    chain_costs,
    makespan,
    successors,
    useful_workers,
)
from dualflow.graph.work import element_count, nanoseconds
from dualflow.ops.record import Effect
from dualflow.schedule.operands import CallKind, StridedNode, kind_of
from dualflow.sizes.size_functions import largest, smallest
from dualflow.sizes.symbolic_sizes import SizeFactor, is_static, size_variables, typical

MAX_STEPS = 256
"""The largest number of calls of a region: planning its memory takes quadratic time."""
MAX_TIME_FRACTION = 0.85
"""The fraction of the time in order that a region may take at most."""
SMALL_SIZE = 64
"""The value of size variables for which the tasks of a region are formed."""
LARGE_CALL = 8
"""The average time of a call, in chunks, above which each call is split over the threads."""
WORK_UNITS = 256
"""The units of work per nanosecond, in which it is an integer."""

_CONCURRENT = frozenset(
    (
        CallKind.KERNEL,
        CallKind.ASSEMBLY,
        CallKind.PRODUCT,
        CallKind.WINDOW_SUM,
        CallKind.SCATTER,
        CallKind.BOUNDS,
        CallKind.MOVE,
        CallKind.FOURIER,
    )
)
"""The kinds of calls that may run in a task: machine code that returns soon, and doesn't call Python."""


class StepAccess(NamedTuple):
    """The storage that a step reads and writes.

    Attributes:
        reads, writes: the keys of the storage.
        writes_input: whether it writes to an input of the graph, such as a variable.
        fails: whether it may end the program.
    """

    reads: tuple[Hashable, ...]
    writes: tuple[Hashable, ...]
    writes_input: bool
    fails: bool


class Task(NamedTuple):
    """Steps that one thread runs in order.

    Attributes:
        steps: their numbers, which are consecutive.
        before: the numbers of the tasks of the region that end before it begins, all smaller than its own.
        chain_ns: the estimated time of the longest chain of tasks that begins with it.
    """

    steps: range
    before: tuple[int, ...]
    chain_ns: float


class Region(NamedTuple):
    """Consecutive steps of a plan as tasks, which threads may run concurrently.

    Attributes:
        tasks: the tasks, in an order that is right for one thread.
        threads: the number of threads that are of use.
        call_threads: the same for the sizes of a call.
        task_bytes: the memory of a thread for the values that only its task accesses.
    """

    tasks: tuple[Task, ...]
    threads: int
    call_threads: int
    task_bytes: int = 0

    @property
    def steps(self) -> range:
        """The numbers of all steps."""
        return range(self.tasks[0].steps.start, self.tasks[-1].steps.stop)

    def predecessor_masks(self) -> list[int]:
        """For each task a mask of itself and the tasks that end before it begins: bit ``j`` is task ``j``."""
        masks: list[int] = []
        for number, task in enumerate(self.tasks):
            mask = 1 << number
            for source in task.before:
                mask |= masks[source]
            masks.append(mask)
        return masks


class ConcurrentOrder(NamedTuple):
    """A schedule: the order of steps, and the regions whose tasks run concurrently.

    The order has the positions of the steps in the order without regions.
    """

    order: tuple[int, ...]
    regions: tuple[Region, ...]


class _Window(NamedTuple):
    """Consecutive steps that may run concurrently.

    Attributes:
        steps: their numbers.
        costs: the estimated time of each on one thread, in ns.
        split: the same if it splits its loops over all threads.
        before: the steps that each depends on, numbered from the first step of the window.
        nodes: their nodes.
    """

    steps: range
    costs: tuple[float, ...]
    split: tuple[float, ...]
    before: tuple[tuple[int, ...], ...]
    nodes: tuple[Node, ...]

    def part(self, begin: int, end: int) -> _Window:
        """Some consecutive steps of the window, numbered from ``begin`` to ``end``."""
        before = tuple([tuple([i - begin for i in x if i >= begin]) for x in self.before[begin:end]])
        part = slice(begin, end)
        return _Window(self.steps[part], self.costs[part], self.split[part], before, self.nodes[part])


class _RegionCandidate(NamedTuple):
    """A possible region.

    Attributes:
        window: its steps.
        groups: the steps of each task, numbered from the first step of the window.
        before: for each task, those that end before it begins.
        times: the estimated time of each task, in ns.
        ns: the estimated time on several threads.
    """

    window: _Window
    groups: list[list[int]]
    before: list[tuple[int, ...]]
    times: list[float]
    ns: float


def concurrent_order(
    steps: Sequence[StridedNode],
    accesses: Sequence[StepAccess],
    costs: CostModel,
    threads: int,
    bound: Collection[SizeFactor],
) -> ConcurrentOrder:
    """The order of ``steps`` with regions where they pay; without any, the order as it is.

    Args:
        steps: the calls in order.
        accesses: what each reads and writes.
        costs: the cost model of the processor.
        threads: the number of threads.
        bound: the size variables whose values are known before the first step.
    """
    order = list(range(len(steps)))
    regions: list[Region] = []
    for window in _windows(steps, accesses, costs, threads, frozenset(bound)):
        for candidate in _best_candidates(window, costs, threads):
            region, positions = _region(candidate, costs, threads)
            regions.append(region)
            order[region.steps.start : region.steps.stop] = positions
    return ConcurrentOrder(tuple(order), tuple(regions))


# Windows


def _windows(
    steps: Sequence[StridedNode],
    accesses: Sequence[StepAccess],
    costs: CostModel,
    threads: int,
    bound: frozenset[SizeFactor],
) -> Iterator[_Window]:
    """The windows, except for chains, in which each step depends on the previous one."""
    begin = 0  # the first step of the current window
    may_fail = False  # whether a step of the current window may end the program
    for step in range(len(steps) + 1):
        concurrent = step < len(steps) and _may_be_concurrent(steps[step].node, bound)
        # an input, such as a variable, is not written if an earlier step fails
        writes_after_failure = concurrent and may_fail and accesses[step].writes_input
        if not concurrent or writes_after_failure or step - begin == MAX_STEPS:
            before = dependences(accesses[begin:step])
            is_chain = all(i - 1 in before[i] for i in range(1, step - begin))
            if not is_chain:
                yield _window(steps, range(begin, step), before, costs, threads)
            begin, may_fail = (step if concurrent else step + 1), False
        may_fail |= concurrent and accesses[step].fails


def _may_be_concurrent(node: Node, bound: frozenset[SizeFactor]) -> bool:
    """Whether a step may run in a task: it is machine code of a known size, without loops over scalars.

    Those poll for signals, which only the main thread handles.
    """
    if kind_of(node) not in _CONCURRENT or node.effect not in (None, Effect.CHECK):
        return False
    body = body_of(node)
    nodes = (node,) if body is None else (node, *body.nodes)
    if body is not None and any(n.attrs and n.bodies for n in body.nodes):
        return False
    specs = [v.spec for n in nodes for v in (*n.inputs, *n.outputs)]
    shapes = {id(spec.shape): spec.shape for spec in specs}.values()  # values share most of them
    return all(shape.is_static and size_variables(shape) <= bound for shape in shapes)


def _window(
    steps: Sequence[StridedNode],
    numbers: range,
    before: tuple[tuple[int, ...], ...],
    costs: CostModel,
    threads: int,
) -> _Window:
    kinds = [kind_of(steps[i].node) for i in numbers]
    small = functools.cache(_small)  # few sizes are different
    ns = [nanoseconds(steps[i].node, costs, small) for i in numbers]
    split_costs = [_split_ns(x, kind, costs, threads) for x, kind in zip(ns, kinds, strict=True)]
    nodes = tuple([steps[i].node for i in numbers])
    return _Window(numbers, tuple(ns), tuple(split_costs), before, nodes)


def _small(size: int) -> int:
    """The number for a size where tasks are formed."""
    return typical(size, SMALL_SIZE)


def _split_ns(ns: float, kind: CallKind, costs: CostModel, threads: int) -> float:
    """The time of a call that splits its loops over threads, if it is long enough."""
    chunk_ns = costs.chunk_ns * (2 if kind is CallKind.PRODUCT else 1)
    parts = min(threads, int(ns / chunk_ns))
    return ns if parts < 2 else min(ns, ns / parts + costs.split_ns)


def dependences(accesses: Sequence[StepAccess]) -> tuple[tuple[int, ...], ...]:
    """For each step the earlier ones that it depends on.

    They wrote what it reads, or accessed what it writes; of steps that may fail, also the previous one.

    >>> def access(reads, writes):
    ...     return StepAccess(reads, writes, False, False)
    >>> dependences([access((), "a"), access("a", "b"), access((), "c"), access("c", "a")])
    ((), (0,), (), (0, 1, 2))
    """
    writer: dict[Hashable, int] = {}
    readers: dict[Hashable, list[int]] = {}
    failing: int | None = None
    before: list[tuple[int, ...]] = []
    for step, access in enumerate(accesses):
        sources = {writer[key] for key in (*access.reads, *access.writes) if key in writer}
        for key in access.writes:
            sources.update(readers.pop(key, ()))
            writer[key] = step
        for key in access.reads:
            if key not in access.writes:
                readers.setdefault(key, []).append(step)
        if access.fails:
            sources.update(() if failing is None else (failing,))
            failing = step
        before.append(tuple(sorted(sources)))
    return tuple(before)


# Candidates


def _best_candidates(window: _Window, costs: CostModel, threads: int) -> list[_RegionCandidate]:
    """The parts of a window that become regions: all of it, those between long calls, or none."""
    whole = _candidate(window, costs, threads)
    parts = [x for part in _between_long(window) if (x := _candidate(part, costs, threads))]
    in_order = sum(window.split)
    ns_of_parts = in_order - sum(sum(x.window.split) - x.ns for x in parts)
    if whole is not None and whole.ns <= ns_of_parts:
        return [whole]
    return parts


def _between_long(window: _Window) -> Iterator[_Window]:
    """The parts of a window between calls that are faster on several threads."""
    begin = 0
    for end in range(len(window.steps) + 1):
        if end == len(window.steps) or window.split[end] < window.costs[end]:
            if 1 < end - begin < len(window.steps):
                yield window.part(begin, end)
            begin = end + 1


def _candidate(window: _Window, costs: CostModel, threads: int) -> _RegionCandidate | None:
    """The window as a region; None if that doesn't pay."""
    in_order = sum(window.split)
    span = max(chain_costs(window.costs, window.before))
    max_ns = min(MAX_TIME_FRACTION * in_order, in_order - costs.chunk_ns / 2)
    if max(span, sum(window.costs) / threads) + costs.region_ns > max_ns:
        return None
    groups = group_steps(window.costs, window.before, costs.chunk_ns / 2)
    before = _between(groups, window.before)
    times = [sum(window.costs[i] for i in group) + costs.task_ns for group in groups]
    ns = makespan(times, before, threads) + costs.region_ns
    return _RegionCandidate(window, groups, before, times, ns) if ns <= max_ns else None


def _region(candidate: _RegionCandidate, costs: CostModel, threads: int) -> tuple[Region, list[int]]:
    """The region of a candidate, and for each of its steps the position in the original order."""
    window, groups, before, times, _ = candidate
    chains = chain_costs(times, before)
    positions = [window.steps[i] for group in groups for i in group]
    tasks, begin = [], window.steps.start
    for group, sources, chain in zip(groups, before, chains, strict=True):
        tasks.append(Task(range(begin, begin + len(group)), sources, chain))
        begin += len(group)
    max_threads = useful_workers(times, before, min(threads, len(groups)))
    return Region(tuple(tasks), max_threads, _call_threads(window, costs, max_threads)), positions


def _call_threads(window: _Window, costs: CostModel, max_threads: int) -> int:
    """The number of threads for the sizes of a call, as one formula of symbolic sizes, without comparisons.

    * Little work, less than four chunks: 1.
    * More: one for two chunks, up to ``max_threads``.
    * Steps that take LARGE_CALL chunks on average: 1, because each splits its own loops over the threads.
      Then ``large`` is 1 or more, and the difference is 0 or less.
    """
    counts = [element_count(node) for node in window.nodes]  # the time of each is proportional to it
    if is_static(counts):
        return max_threads
    work = sum(
        round(WORK_UNITS * ns / max(_small(count), 1)) * count
        for ns, count in zip(window.costs, counts, strict=True)
    )
    chunk = round(WORK_UNITS * costs.chunk_ns)
    large = work // (LARGE_CALL * chunk * len(window.steps))
    return largest(1, smallest(max_threads, work // (2 * chunk)) - max_threads * large)


def group_steps(costs: Sequence[float], before: Dependences, short: float) -> list[list[int]]:
    """Steps in groups that run in order on one thread, and the groups in an order that keeps dependences.

    A step joins the group of its sources if it is the only step that waits for it, or if both together take
    less than ``short``. Of several source groups, those join it that the step alone waits for, while all
    together take less than ``short``. The graph of groups stays acyclic.

    Args:
        costs: the time of each step.
        before: the steps that each depends on.
        short: the time up to which steps are joined that could run at the same time.

    >>> group_steps([9.0, 9.0, 9.0, 9.0], [(), (0,), (), (1, 2)], 5.0)
    [[0, 1], [2], [3]]
    """
    after = successors(before)
    group_of: list[int] = []
    members: dict[int, list[int]] = {}
    total: dict[int, float] = {}
    exits: dict[int, set[int]] = {}
    for step, cost in enumerate(costs):
        sources = {group_of[i] for i in before[step]}
        joined = _joined(step, cost, sources, total, exits, short)
        group = joined[0] if joined else step
        steps = sorted([i for other in joined for i in members.pop(other)])
        members[group] = [*steps, step]
        total[group] = sum([total[other] for other in joined]) + cost
        exits[group] = set().union(*(exits[other] for other in joined), after[step]) - {step}
        group_of.append(group)
        for i in steps:
            group_of[i] = group
    return _in_order(list(members.values()), before)


def _joined(
    step: int,
    cost: float,
    sources: set[int],
    total: dict[int, float],
    exits: dict[int, set[int]],
    short: float,
) -> list[int]:
    """The groups to merge with ``step``; none if it starts a group."""
    if len(sources) == 1:
        (only,) = sources
        return [only] if exits[only] == {step} or total[only] + cost <= short else []
    joined: list[int] = []
    for source in sorted(sources, key=lambda group: (total[group], group)):
        if exits[source] == {step} and total[source] + cost <= short:
            joined.append(source)
            cost += total[source]
    return joined


def _in_order(groups: Sequence[list[int]], before: Dependences) -> list[list[int]]:
    """Groups in an order that keeps dependences; of several possible ones, that of their first steps."""
    sources = _between(groups, before)
    after = successors(sources)
    waits = [len(x) for x in sources]
    ready = [(groups[i][0], i) for i, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    order: list[list[int]] = []
    while ready:
        _, group = heapq.heappop(ready)
        order.append(groups[group])
        for other in after[group]:
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready, (groups[other][0], other))
    assert len(order) == len(groups), "no group depends on itself"
    return order


def _between(groups: Sequence[Sequence[int]], before: Dependences) -> list[tuple[int, ...]]:
    """For each group, the other groups that its steps depend on."""
    group_of = {step: number for number, group in enumerate(groups) for step in group}
    return [
        tuple(sorted({group_of[i] for step in group for i in before[step]} - {number}))
        for number, group in enumerate(groups)
    ]
