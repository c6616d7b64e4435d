"""List schedules: the time that a graph of tasks takes on a number of workers.

A task is its cost and the tasks that it depends on, which come before it. A free worker takes the ready task
that begins the most expensive chain. (Graham, "Bounds on multiprocessing timing anomalies", 1969; the order
by chains is that of Hu, "Parallel sequencing and assembly line problems", 1961.)
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

Dependences = Sequence[Sequence[int]]
"""For each task the numbers of the tasks that it depends on, all smaller than its own."""

NEGLIGIBLE = 1.05
"""The ratio of two times up to which a worker more isn't worth it."""


def successors(before: Dependences) -> list[list[int]]:
    """For each task, the tasks that depend on it, in order.

    >>> successors([(), (0,), (0, 1)])
    [[1, 2], [2], []]
    """
    after: list[list[int]] = [[] for _ in before]
    for task, sources in enumerate(before):
        for source in sources:
            after[source].append(task)
    return after


def chain_costs(costs: Sequence[float], before: Dependences) -> list[float]:
    """For each task, the cost of the most expensive chain of dependent tasks that begins with it.

    The largest is the span of the graph, its time on any number of workers.

    >>> chain_costs([1.0, 2.0, 5.0], [(), (0,), (0,)])
    [6.0, 2.0, 5.0]
    """
    chains = [0.0] * len(costs)
    for task in reversed(range(len(costs))):
        chains[task] += costs[task]
        for source in before[task]:
            chains[source] = max(chains[source], chains[task])
    return chains


def makespan(costs: Sequence[float], before: Dependences, workers: int) -> float:
    """The time from the first task to the end of the last, on a number of workers.

    >>> makespan([3.0, 1.0, 1.0, 1.0], [(), (), (), ()], 2)
    3.0
    """
    after, chains = successors(before), chain_costs(costs, before)
    waits = [len(sources) for sources in before]
    ready = [(-chains[task], task) for task, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < workers:
            task = heapq.heappop(ready)[1]
            heapq.heappush(running, (now + costs[task], task))
        now, ended = heapq.heappop(running)
        for task in after[ended]:
            waits[task] -= 1
            if not waits[task]:
                heapq.heappush(ready, (-chains[task], task))
    return now


def useful_workers(costs: Sequence[float], before: Dependences, most: int) -> int:
    """The smallest number of workers, up to ``most``, on which the graph takes as long as on ``most``.

    Times that differ by less than :data:`NEGLIGIBLE` count as equal.

    >>> useful_workers([1.0, 1.0, 1.0], [(), (0,), (0,)], 8)
    2
    """
    enough = makespan(costs, before, most) * NEGLIGIBLE
    few, many = 1, max(most, 1)
    while few < many:
        middle = (few + many) // 2
        if makespan(costs, before, middle) <= enough:
            many = middle
        else:
            few = middle + 1
    return many
