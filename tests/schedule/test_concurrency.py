"""Regions: which steps may run at the same time, whether that pays, and the memory that they need."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from dualflow.graph.list_schedule import chain_costs, makespan, useful_workers
from dualflow.schedule.arena import aligned
from dualflow.schedule.concurrency import Region, StepAccess, Task, dependences, group_steps
from dualflow.schedule.concurrent_arena import AccessedBlock, assign_concurrent, assign_shared

Before = list[tuple[int, ...]]


@st.composite
def task_graphs(draw: st.DrawFn, most: int = 14) -> Before:
    """Tasks in order, each with the earlier ones that it depends on."""
    count = draw(st.integers(1, most))
    return [
        tuple(sorted(draw(st.sets(st.integers(0, task - 1), max_size=3)))) if task else ()
        for task in range(count)
    ]


@st.composite
def weighted(draw: st.DrawFn) -> tuple[list[float], Before]:
    before = draw(task_graphs())
    costs = draw(st.lists(st.integers(1, 20), min_size=len(before), max_size=len(before)))
    return [float(cost) for cost in costs], before


def ancestors(before: Sequence[Sequence[int]]) -> list[set[int]]:
    """For each task all tasks that it depends on, directly or not."""
    earlier: list[set[int]] = []
    for sources in before:
        earlier.append(set(sources).union(*(earlier[i] for i in sources)))
    return earlier


# The time of a graph of tasks


@given(weighted(), st.integers(1, 5))
def test_a_schedule_is_within_grahams_bounds(graph: tuple[list[float], Before], workers: int) -> None:
    costs, before = graph
    work, span = sum(costs), max(chain_costs(costs, before))
    time = makespan(costs, before, workers)
    assert max(span, work / workers) <= time <= work / workers + span


@given(weighted())
def test_one_worker_takes_the_whole_work(graph: tuple[list[float], Before]) -> None:
    assert makespan(*graph, 1) == sum(graph[0])


def test_more_workers_than_branches_are_of_no_use() -> None:
    assert useful_workers([1.0] * 6, [(), (0,), (1,), (), (3,), (4,)], 16) == 2


# Dependences


ACCESSES = st.builds(
    lambda reads, writes: StepAccess(tuple(reads), tuple(writes), writes_input=False, fails=False),
    st.sets(st.sampled_from("abcd")),
    st.sets(st.sampled_from("abcd"), max_size=2),
)


@given(st.lists(ACCESSES, max_size=10))
def test_steps_with_a_common_storage_that_one_writes_keep_their_order(accesses: list[StepAccess]) -> None:
    before = ancestors(dependences(accesses))
    for j, later in enumerate(accesses):
        for i, earlier in enumerate(accesses[:j]):
            shared = set(earlier.writes) & {*later.reads, *later.writes} or set(later.writes) & set(
                earlier.reads
            )
            if shared:
                assert i in before[j]


def test_steps_that_only_read_the_same_are_independent() -> None:
    read = StepAccess(("a",), (), writes_input=False, fails=False)
    assert dependences([read, read, read]) == ((), (), ())


def test_steps_that_may_fail_keep_their_order() -> None:
    check = StepAccess((), (), writes_input=False, fails=True)
    assert dependences([check, check._replace(fails=False), check]) == ((), (), (0,))


# Groups


@given(weighted(), st.integers(0, 30))
def test_groups_are_tasks_in_an_order_that_keeps_dependences(
    graph: tuple[list[float], Before], short: int
) -> None:
    costs, before = graph
    groups = group_steps(costs, before, float(short))
    order = [step for group in groups for step in group]
    assert sorted(order) == list(range(len(costs)))
    place = {step: at for at, step in enumerate(order)}
    assert all(place[source] < place[step] for step, sources in enumerate(before) for source in sources)
    assert all(group == sorted(group) for group in groups)


def test_a_chain_is_one_group() -> None:
    assert group_steps([50.0] * 4, [(), (0,), (1,), (2,)], 5.0) == [[0, 1, 2, 3]]


def test_long_branches_stay_apart_and_short_ones_are_joined() -> None:
    before: Before = [(), (), (0, 1)]
    assert group_steps([9.0, 9.0, 1.0], before, 5.0) == [[0], [1], [2]]
    assert group_steps([1.0, 1.0, 1.0], before, 5.0) == [[0, 1, 2]]


# Memory


@st.composite
def regions_with_blocks(draw: st.DrawFn) -> tuple[list[Region], list[AccessedBlock], int]:
    """Regions with steps before, between and after them, and blocks that the steps access."""
    at, regions = draw(st.integers(0, 2)), []
    for _ in range(draw(st.integers(1, 2))):
        tasks = []
        for before in draw(task_graphs(6)):
            length = draw(st.integers(1, 2))
            tasks.append(Task(range(at, at + length), before, 0.0))
            at += length
        regions.append(Region(tuple(tasks), 2, 2))
        at += draw(st.integers(0, 2))
    steps = st.sets(st.integers(0, at), min_size=1, max_size=4).map(lambda s: tuple(sorted(s)))
    blocks = draw(st.lists(st.builds(AccessedBlock, steps, st.integers(1, 300)), max_size=12))
    return regions, blocks, at


def always_before(regions: Sequence[Region], first: int, then: int) -> bool:
    """Whether a step ends before another one begins, on any number of threads."""
    for region in regions:
        if first in region.steps and then in region.steps:
            task = {step: i for i, t in enumerate(region.tasks) for step in t.steps}
            if task[first] != task[then]:
                return task[first] in ancestors([t.before for t in region.tasks])[task[then]]
    return first < then


@given(regions_with_blocks())
def test_blocks_share_bytes_only_if_one_is_dead_before_the_other_in_every_order(
    plan: tuple[list[Region], list[AccessedBlock], int],
) -> None:
    regions, blocks, _ = plan
    offsets, size = assign_shared(blocks, regions)
    for i, (block, at) in enumerate(zip(blocks, offsets, strict=True)):
        assert 0 <= at <= at + block.nbytes <= size
        for other, place in zip(blocks[:i], offsets[:i], strict=True):
            apart = at + block.nbytes <= place or place + other.nbytes <= at
            assert (
                apart
                or all(always_before(regions, x, y) for x in block.steps for y in other.steps)
                or all(always_before(regions, y, x) for x in block.steps for y in other.steps)
            )


def test_a_chain_inside_of_a_task_reuses_its_memory() -> None:
    region = Region((Task(range(4), (), 0.0), Task(range(4, 8), (), 0.0)), 2, 2)
    blocks = [AccessedBlock((i, i + 1), 64) for i in (0, 1, 2, 4, 5, 6)]
    offsets, size = assign_shared(blocks, [region])
    assert size == 4 * aligned(64)
    assert set(offsets[:3]).isdisjoint(offsets[3:])


def test_values_of_one_task_are_in_the_memory_of_its_thread() -> None:
    region = Region((Task(range(3), (), 0.0), Task(range(3, 5), (), 0.0)), 2, 2)
    blocks = [AccessedBlock(steps, 64) for steps in [(0, 1), (1, 2), (3, 4), (2, 5), (0, 3)]]
    memory = assign_concurrent(blocks, [region])
    assert memory.in_task == [True, True, True, False, False]
    assert memory.offsets[:3] == [0, aligned(64), 0]
    assert memory.task_bytes == [2 * aligned(64)]
    assert memory.arena_bytes == 2 * aligned(64)
