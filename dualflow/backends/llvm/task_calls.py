"""Emits the step of a region: tasks that run concurrently; imported only for programs with regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum, auto

from dualflow.backends.llvm.entry import Entry, Unit
from dualflow.backends.llvm.runtime import jit, threads
from dualflow.backends.llvm.steps import FUNCTION, StepKind
from dualflow.graph.list_schedule import successors
from dualflow.schedule.arena import aligned
from dualflow.schedule.concurrency import Region
from dualflow.schedule.program_statements import RunTasks, Statement


class RegionField(IntEnum):
    """The offset of each word of the step of a region, which ``runtime/tasks.ll`` reads.

    After these, :class:`TaskField` has the words of each task. Then come the lists of successors, one for
    each task, and at last the number of tasks that are ready at first, and these tasks. A task is ready when
    all of its predecessors are finished.

    Attributes:
        THREADS: the threads that take tasks.
        ENTRIES: the entries of the table of buffers, of which each thread has a copy.
        WORKSPACE: the entry for the scratch memory of the thread.
        ARENA, SCRATCH: the buffer and the byte offset of the scratch memory of thread 0.
        BYTES: the bytes of the scratch memory of a thread.
        TASKS: the number of tasks.
        READY: the offset of the number of tasks without predecessors, which these tasks follow.
        END: the number of these words.
    """

    THREADS = FUNCTION + 1
    ENTRIES = auto()
    WORKSPACE = auto()
    ARENA = auto()
    SCRATCH = auto()
    BYTES = auto()
    TASKS = auto()
    READY = auto()
    END = auto()


class TaskField(IntEnum):
    """The offset of each word of a task.

    Attributes:
        LIST: the distance from the step to the head of the task's step list.
        PREDECESSORS: the number of tasks that must be finished before it starts.
        SUCCESSORS: the offset in the step of the list of its successors.
        SUCCESSOR_COUNT: the number of its successors.
        END: the number of these words.
    """

    LIST = 0
    PREDECESSORS = auto()
    SUCCESSORS = auto()
    SUCCESSOR_COUNT = auto()
    END = auto()


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
    unit.scratch.task_start = unit.scratch.task_bytes = region.task_bytes
    for number, task in enumerate(statement.tasks):
        task_words = step + RegionField.END + TaskField.END * number
        unit.table.params[task_words + TaskField.LIST] = _task_list(unit, task, run_in) - step
    unit.scratch.task_start, unit.threads = None, before
    bytes_per_thread = aligned(unit.scratch.task_bytes)
    plan = unit.plan
    unit.table.params[step + RegionField.ENTRIES] = plan.arena + 1 + (plan.row_buffers if loops else 0)
    unit.table.params[step + RegionField.WORKSPACE] = plan.workspace
    unit.table.params[step + RegionField.ARENA] = plan.arena
    unit.table.params[step + RegionField.SCRATCH] = unit.scratch.reserve(bytes_per_thread * region.threads)
    unit.table.params[step + RegionField.BYTES] = bytes_per_thread


def _words(region: Region) -> list[int]:
    """The words of the step from :data:`FUNCTION` on; :func:`write_tasks` replaces those that are 0.

    Tasks are in the order of their priority, the longest chain of work from the task on, in the list of ready
    tasks and in each list of successors.
    """
    tasks = region.tasks
    by_priority = sorted(range(len(tasks)), key=lambda number: (-tasks[number].chain_ns, number))
    rank = {number: i for i, number in enumerate(by_priority)}
    task_words: list[int] = []
    successor_lists: list[int] = []
    lists_start = RegionField.END + TaskField.END * len(tasks)
    for task, after in zip(tasks, successors([task.before for task in tasks]), strict=True):
        task_words += [0, len(task.before), lists_start + len(successor_lists), len(after)]
        successor_lists += sorted(after, key=rank.__getitem__)
    ready = [number for number in by_priority if not tasks[number].before]
    head = [0] * RegionField.END
    head[RegionField.THREADS], head[RegionField.TASKS] = region.call_threads, len(tasks)
    head[RegionField.READY] = lists_start + len(successor_lists)
    return [*head[FUNCTION:], *task_words, *successor_lists, len(ready), *ready]


def _task_list(
    unit: Unit, task: Sequence[Statement], run_in: Callable[[Entry, Sequence[Statement]], None]
) -> int:
    """Emit the step list of a task; returns the index of its head."""
    entry = Entry(unit, "task")
    run_in(entry, task)
    assert entry.function is None, "all statements of a task are steps"
    return unit.table.begin_steps() if entry.first_list is None else entry.first_list
