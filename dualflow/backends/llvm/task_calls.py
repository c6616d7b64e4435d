"""Emits the step of a region: tasks that threads run at the same time; imported only where there are any."""

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

    After these, :class:`TaskField` has the words of each task. Then come the lists of the tasks that wait for
    a task, and at last the number of the tasks that wait for none, and these tasks.

    Attributes:
        THREADS: the threads that take tasks.
        ENTRIES: the entries of the table of buffers, of which each thread has a copy.
        WORKSPACE: the entry for the scratch memory of the thread.
        ARENA, SCRATCH: the buffer and the byte offset of the scratch memory of thread 0.
        BYTES: the bytes of the scratch memory of a thread.
        TASKS: the number of tasks.
        FIRST: the offset of the number of tasks that wait for none.
        END: the number of these words.
    """

    THREADS = FUNCTION + 1
    ENTRIES = auto()
    WORKSPACE = auto()
    ARENA = auto()
    SCRATCH = auto()
    BYTES = auto()
    TASKS = auto()
    FIRST = auto()
    END = auto()


class TaskField(IntEnum):
    """The offset of each word of a task.

    Attributes:
        LIST: the distance from the step to the head of the task's step list.
        WAITS: the number of tasks that it waits for.
        AFTER: the offset in the step of the list of tasks that wait for it.
        COUNT: the number of tasks that wait for it.
        END: the number of these words.
    """

    LIST = 0
    WAITS = auto()
    AFTER = auto()
    COUNT = auto()
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
    """The words of the step from :data:`FUNCTION` on; those that depend on what is emitted later are 0."""
    tasks = region.tasks
    after = successors([task.before for task in tasks])
    urgent = sorted(range(len(tasks)), key=lambda number: (-tasks[number].chain_ns, number))
    position = {number: at for at, number in enumerate(urgent)}
    words: list[int] = []
    waiting: list[int] = []
    lists = RegionField.END + TaskField.END * len(tasks)
    for task, following in zip(tasks, after, strict=True):
        words += [0, len(task.before), lists + len(waiting), len(following)]
        waiting += sorted(following, key=position.__getitem__)
    ready = [number for number in urgent if not tasks[number].before]
    head = [0] * RegionField.END
    head[RegionField.THREADS], head[RegionField.TASKS] = region.call_threads, len(tasks)
    head[RegionField.FIRST] = lists + len(waiting)
    return [*head[FUNCTION:], *words, *waiting, len(ready), *ready]


def _task_list(
    unit: Unit, task: Sequence[Statement], run_in: Callable[[Entry, Sequence[Statement]], None]
) -> int:
    """Emit the step list of a task; returns the index of its head."""
    entry = Entry(unit, "task")
    run_in(entry, task)
    assert entry.function is None, "all statements of a task are steps"
    return unit.table.begin_steps() if entry.first_list is None else entry.first_list
