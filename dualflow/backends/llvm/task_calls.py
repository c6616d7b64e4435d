"""Emits the step of a region: tasks that threads run at the same time; imported only where there are any."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dualflow.backends.llvm.entry import Entry, Unit
from dualflow.backends.llvm.runtime import jit, threads
from dualflow.backends.llvm.steps import StepKind
from dualflow.graph.list_schedule import successors
from dualflow.schedule.arena import aligned
from dualflow.schedule.concurrency import Region
from dualflow.schedule.program_statements import RunTasks, Statement

_HEAD = 11
"""The words of the step before those of its tasks; see ``runtime/tasks.ll``."""
_THREADS, _ENTRIES, _WORKSPACE, _ARENA, _SCRATCH, _BYTES, _TASKS, _FIRST = range(3, _HEAD)


def write_tasks(
    entry: Entry, statement: RunTasks, run_in: Callable[[Entry, Sequence[Statement]], None], *, loops: bool
) -> None:
    """Emit the step of a region.

    The calls of a task don't split their loops, as the pool is busy. If sizes are symbolic, a call may run
    all tasks on one thread; then the pool is free, and the calls of a task may split theirs.

    Args:
        entry: the entry that runs the region.
        statement: the region.
        run_in: emits statements in an entry.
        loops: whether the entry has loops, and so a table of buffers with addresses of its own.
    """
    unit, region = entry.unit, statement.region
    words = _words(region)
    step = entry.step(StepKind.TASKS, words)
    unit.set_callee(step, threads.tasks_source())
    unit.addresses["sched_yield"] = jit.process_symbol("sched_yield")
    unit.use_threads()
    before, unit.threads = unit.threads, 1 if type(region.call_threads) is int else unit.threads
    unit.task_start = unit.task_bytes = region.task_bytes
    for number, task in enumerate(statement.tasks):
        unit.params[step + _HEAD + 4 * number] = _task_list(unit, task, run_in) - step
    unit.task_start, unit.threads = None, before
    bytes_per_thread = aligned(unit.task_bytes)
    plan = unit.plan
    unit.params[step + _ENTRIES] = plan.arena + 1 + (plan.row_buffers if loops else 0)
    unit.params[step + _WORKSPACE], unit.params[step + _ARENA] = plan.workspace, plan.arena
    unit.params[step + _SCRATCH] = unit.reserve(bytes_per_thread * region.threads)
    unit.params[step + _BYTES] = bytes_per_thread


def _words(region: Region) -> list[int]:
    """The words of the step after its link; those that depend on what is emitted later are 0."""
    tasks = region.tasks
    after = successors([task.before for task in tasks])
    urgent = sorted(range(len(tasks)), key=lambda number: (-tasks[number].chain_ns, number))
    position = {number: at for at, number in enumerate(urgent)}
    words: list[int] = []
    waiting: list[int] = []
    lists = _HEAD + 4 * len(tasks)
    for task, following in zip(tasks, after, strict=True):
        words += [0, len(task.before), lists + len(waiting), len(following)]
        waiting += sorted(following, key=position.__getitem__)
    ready = [number for number in urgent if not tasks[number].before]
    head = [0] * _HEAD
    head[_THREADS], head[_TASKS], head[_FIRST] = region.call_threads, len(tasks), lists + len(waiting)
    return [*head[2:], *words, *waiting, len(ready), *ready]


def _task_list(
    unit: Unit, task: Sequence[Statement], run_in: Callable[[Entry, Sequence[Statement]], None]
) -> int:
    """Emit the step list of a task; returns the index of its head."""
    entry = Entry(unit, "task")
    run_in(entry, task)
    assert entry.function is None, "all statements of a task are steps"
    return unit.begin_steps() if entry.first_list is None else entry.first_list
