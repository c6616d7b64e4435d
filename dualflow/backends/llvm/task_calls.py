"""Emits the step of a region: tasks that run concurrently; imported only for programs with regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
        THREADS: the number of threads that take tasks.
        ENTRIES: the number of entries in the table of buffers, of which each thread has a copy.
        WORKSPACE: the entry for the scratch memory of the thread.
        ARENA, SCRATCH: the buffer and the byte offset of the scratch memory of thread 0.
        BYTES: the size of the scratch memory of a thread, in bytes.
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
    entry: Entry,
    statement: RunTasks,
    emit_statements: Callable[[Entry, Sequence[Statement]], None],
    *,
    loops: bool,
) -> None:
    """Emit the step of a region.

    The calls of a task don't split their loops, as the pool is busy. If sizes are symbolic, a call may run
    all tasks on one thread; then the pool is free, and the calls of a task may split theirs.

    Args:
        entry: the entry that runs the region.
        statement: the region.
        emit_statements: emits statements in an entry.
        loops: whether the entry has loops, and so a table of buffers with addresses of its own.
    """
    unit, region = entry.unit, statement.region
    step = entry.step(StepKind.TASKS, _words_from_function(region))
    unit.set_callee(step, threads.tasks_source())
    unit.addresses["sched_yield"] = jit.process_symbol("sched_yield")
    unit.use_threads()
    with _task_scope(unit, region):
        for number, task in enumerate(statement.tasks):
            task_words = step + RegionField.END + TaskField.END * number
            unit.table.params[task_words + TaskField.LIST] = _task_list(unit, task, emit_statements) - step
    bytes_per_thread = aligned(unit.scratch.task_bytes)
    plan = unit.plan
    unit.table.params[step + RegionField.ENTRIES] = plan.arena + 1 + (plan.row_buffers if loops else 0)
    unit.table.params[step + RegionField.WORKSPACE] = plan.workspace
    unit.table.params[step + RegionField.ARENA] = plan.arena
    unit.table.params[step + RegionField.SCRATCH] = unit.scratch.reserve(bytes_per_thread * region.threads)
    unit.table.params[step + RegionField.BYTES] = bytes_per_thread


@contextmanager
def _task_scope(unit: Unit, region: Region) -> Iterator[None]:
    """A context for the statements of tasks, which use the scratch memory of their thread."""
    threads_of_calls = unit.threads
    if type(region.call_threads) is int:
        unit.threads = 1
    unit.scratch.task_start = region.task_bytes
    unit.scratch.task_bytes = region.task_bytes
    try:
        yield
    finally:
        unit.scratch.task_start = None
        unit.threads = threads_of_calls


def _words_from_function(region: Region) -> list[int]:
    """The words of the step from :data:`FUNCTION` on.

    The fields from ``ENTRIES`` to ``BYTES``, and ``LIST`` of each task, are 0 until :func:`write_tasks` sets
    them. The list of ready tasks and each list of successors are ordered by priority: the longest chain of
    work from the task on.
    """
    tasks = region.tasks
    by_priority = sorted(range(len(tasks)), key=lambda number: (-tasks[number].chain_ns, number))
    rank = {number: i for i, number in enumerate(by_priority)}
    task_words: list[int] = []
    successor_lists: list[int] = []
    lists_start = RegionField.END + TaskField.END * len(tasks)
    for task, after in zip(tasks, successors([task.before for task in tasks]), strict=True):
        fields = [0] * TaskField.END
        fields[TaskField.PREDECESSORS] = len(task.before)
        fields[TaskField.SUCCESSORS] = lists_start + len(successor_lists)
        fields[TaskField.SUCCESSOR_COUNT] = len(after)
        task_words += fields
        successor_lists += sorted(after, key=rank.__getitem__)
    ready = [number for number in by_priority if not tasks[number].before]
    head = [0] * RegionField.END
    head[RegionField.THREADS] = region.call_threads
    head[RegionField.TASKS] = len(tasks)
    head[RegionField.READY] = lists_start + len(successor_lists)
    return [*head[FUNCTION:], *task_words, *successor_lists, len(ready), *ready]


def _task_list(
    unit: Unit, task: Sequence[Statement], emit_statements: Callable[[Entry, Sequence[Statement]], None]
) -> int:
    """Emit the step list of a task; returns the index of its head."""
    entry = Entry(unit, "task")
    emit_statements(entry, task)
    assert entry.function is None, "all statements of a task are steps"
    return unit.table.begin_steps() if entry.first_list is None else entry.first_list
