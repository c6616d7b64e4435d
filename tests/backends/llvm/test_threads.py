"""The parallel for: each chunk runs once, and never two at a time with the same thread index."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualflow.backends.llvm.runtime import jit, threads
from dualflow.core.errors import InvalidArgumentError

SOURCE_ROOT = Path(jit.__file__).parents[4]
Array = np.ndarray

needs_workers = pytest.mark.skipif(not threads.available(), reason="no worker threads on this platform")

# Kernels. `visit` adds 1 to each element of an i64 vector. `note` writes lo, hi and thread in row
# lo / chunk of a table. `append` adds 64 lo + thread to a list, whose length comes first. `occupy` takes its
# thread's flag for the length of a little work and counts the times it was taken already. `nested` opens a
# loop of its own within each chunk.
KERNELS = """
declare void @df_pfor(ptr, ptr, ptr, i64, i64)

define void @visit(ptr %vector, i64 %lo, i64 %hi, i64 %thread) {
entry:
  br label %next
next:
  %i = phi i64 [ %lo, %entry ], [ %i.next, %next ]
  %at = getelementptr i64, ptr %vector, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %hi
  br i1 %more, label %next, label %end
end:
  ret void
}

%table = type { i64, [0 x [3 x i64]] }

define void @note(ptr %table, i64 %lo, i64 %hi, i64 %thread) {
  %chunk = load i64, ptr %table
  %row = sdiv i64 %lo, %chunk
  %lo.at = getelementptr %table, ptr %table, i64 0, i32 1, i64 %row, i64 0
  %hi.at = getelementptr %table, ptr %table, i64 0, i32 1, i64 %row, i64 1
  %thread.at = getelementptr %table, ptr %table, i64 0, i32 1, i64 %row, i64 2
  store i64 %lo, ptr %lo.at
  store i64 %hi, ptr %hi.at
  store i64 %thread, ptr %thread.at
  ret void
}

define void @append(ptr %log, i64 %lo, i64 %hi, i64 %thread) {
  %entry = getelementptr i64, ptr %log, i64 1
  %number = atomicrmw add ptr %log, i64 1 monotonic
  %at = getelementptr i64, ptr %entry, i64 %number
  %high = mul i64 %lo, 64
  %packed = add i64 %high, %thread
  store i64 %packed, ptr %at
  ret void
}

define void @occupy(ptr %flags, i64 %lo, i64 %hi, i64 %thread) {
entry:
  %which = add i64 %thread, 1
  %flag = getelementptr i64, ptr %flags, i64 %which
  %taken = atomicrmw xchg ptr %flag, i64 1 seq_cst
  %clashes = atomicrmw add ptr %flags, i64 %taken seq_cst
  br label %work
work:
  %i = phi i64 [ 0, %entry ], [ %i.next, %work ]
  store volatile i64 %i, ptr %flag
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, 500
  br i1 %more, label %work, label %end
end:
  store atomic i64 0, ptr %flag seq_cst, align 8
  ret void
}

%plan = type { ptr, ptr, i64 }

define void @nested(ptr %plan, i64 %lo, i64 %hi, i64 %thread) {
  %pool = load ptr, ptr %plan
  %vector.at = getelementptr %plan, ptr %plan, i64 0, i32 1
  %width.at = getelementptr %plan, ptr %plan, i64 0, i32 2
  %vector = load ptr, ptr %vector.at
  %width = load i64, ptr %width.at
  %from = mul i64 %lo, %width
  %part = getelementptr i64, ptr %vector, i64 %from
  call void @df_pfor(ptr %pool, ptr @visit, ptr %part, i64 %width, i64 3)
  ret void
}
"""


@dataclass(frozen=True)
class Loops:
    """A pool, and the kernels linked to it."""

    pool: threads.Pool
    library: jit.Library

    def run(self, kernel: str, context: int, n: int, chunk: int) -> None:
        kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2
        pfor = ctypes.CFUNCTYPE(None, *kinds)(self.pool.pfor)
        pfor(self.pool.address, self.library.address(kernel), context, n, chunk)

    def visits(self, n: int, chunk: int) -> Array:
        """How often each index was visited."""
        vector = np.zeros(max(n, 0), np.int64)
        self.run("visit", vector.ctypes.data, n, chunk)
        return vector

    def notes(self, n: int, chunk: int) -> Array:
        """One row of lo, hi and thread for each chunk."""
        rows = -(-n // chunk)
        table = np.full(1 + 3 * rows, -1, np.int64)
        table[0] = chunk
        self.run("note", table.ctypes.data, n, chunk)
        return table[1:].reshape(rows, 3)

    def order(self, n: int) -> tuple[Array, Array]:
        """The indices of a loop with one in each chunk, in the order in which they ran, and their threads."""
        log = np.zeros(1 + n, np.int64)
        self.run("append", log.ctypes.data, n, 1)
        return np.divmod(log[1:], 64)


def loops_with(workers: int) -> Loops:
    pool = threads.create_pool(workers)
    exports = ["visit", "note", "append", "occupy", "nested"]
    return Loops(pool, jit.compile_text(KERNELS, exports, {"df_pfor": pool.pfor}))


@pytest.fixture(scope="module", params=[0, 1, 7])
def loops(request: pytest.FixtureRequest) -> Loops:
    return loops_with(request.param)


@pytest.fixture(scope="module")
def crowd() -> Loops:
    return loops_with(7)


def run_python(program: str, *arguments: str, **environment: str) -> str:
    """What a fresh process prints; it must end well within a minute."""
    variables = os.environ | {"PYTHONPATH": str(SOURCE_ROOT)} | environment
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=60, check=True
    ).stdout


# The chunks.


@given(n=st.integers(0, 3000), chunk=st.integers(1, 3500))
def test_every_index_is_visited_once(loops: Loops, n: int, chunk: int) -> None:
    assert (loops.visits(n, chunk) == 1).all()


@given(n=st.integers(1, 3000), chunk=st.integers(1, 3500))
def test_the_ranges_do_not_depend_on_the_number_of_threads(loops: Loops, n: int, chunk: int) -> None:
    notes = loops.notes(n, chunk)
    starts = np.arange(0, n, chunk)
    assert (notes[:, 0] == starts).all()
    assert (notes[:, 1] == np.minimum(starts + chunk, n)).all()


@given(n=st.integers(1, 3000), chunk=st.integers(1, 50))
def test_thread_indices_are_below_the_number_of_threads(loops: Loops, n: int, chunk: int) -> None:
    indices = loops.notes(n, chunk)[:, 2]
    workers = ctypes.c_int64.from_address(loops.pool.address + 640).value
    assert ((indices >= 0) & (indices <= workers)).all()


@needs_workers
def test_odd_threads_begin_with_the_last_chunk() -> None:
    """So that two threads meet. Short loops often end before a worker wakes, so there are several."""
    loops = loops_with(1)
    orders = (loops.order(100_000) for _ in range(1000))
    indices, ran_on = next((i, thread) for i, thread in orders if thread.sum() > 1)
    assert (np.diff(indices[ran_on == 0]) > 0).all()
    assert (np.diff(indices[ran_on == 1]) < 0).all()


@pytest.mark.parametrize("n", [0, -1, -(1 << 40)])
def test_an_empty_range_calls_nothing(loops: Loops, n: int) -> None:
    loops.run("visit", 0, n, 1)


@pytest.mark.parametrize("chunk", [0, -5])
def test_a_chunk_is_at_least_one_index(loops: Loops, chunk: int) -> None:
    assert (loops.visits(100, chunk) == 1).all()


def test_a_chunk_may_be_larger_than_any_range(loops: Loops) -> None:
    assert (loops.visits(10, 1 << 62) == 1).all()


def test_two_chunks_at_a_time_have_two_thread_indices(crowd: Loops) -> None:
    flags = np.zeros(1 + threads.MAX_THREADS, np.int64)
    for _ in range(50):
        crowd.run("occupy", flags.ctypes.data, 200, 1)
    assert flags[0] == 0


def test_thousands_of_tiny_loops(loops: Loops) -> None:
    vector = np.zeros(3, np.int64)
    for _ in range(5000):
        loops.run("visit", vector.ctypes.data, 3, 1)
    assert (vector == 5000).all()


# Several loops at once.


def test_four_user_threads_hammer_one_pool(crowd: Loops) -> None:
    vectors = [np.zeros(1000, np.int64) for _ in range(4)]

    def hammer(vector: Array) -> None:
        for i in range(300):
            crowd.run("visit", vector.ctypes.data, 1000, 1 + i)

    users = [threading.Thread(target=hammer, args=(vector,)) for vector in vectors]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert all((vector == 300).all() for vector in vectors)


def test_a_loop_within_a_loop(loops: Loops) -> None:
    vector = np.zeros(40 * 100, np.int64)
    plan = (ctypes.c_int64 * 3)(loops.pool.address, vector.ctypes.data, 100)
    for _ in range(20):
        loops.run("nested", ctypes.addressof(plan), 40, 1)
    assert (vector == 20).all()


# Workers and processes.


@needs_workers
def test_no_worker_starts_before_it_is_needed() -> None:
    loops = loops_with(2)
    running = ctypes.c_int64.from_address(loops.pool.address + 648)
    loops.visits(100, 100)
    assert running.value == 0
    loops.visits(100, 10)
    assert running.value == 2


def exit_status_of_fork(body: Callable[[], bool]) -> int:
    """Run ``body`` in a forked child: 0 if it answered True; a child that hangs dies of SIGALRM."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        os._exit(0 if body() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_workers_of_its_own(loops: Loops) -> None:
    loops.visits(1000, 1)
    requested, running = (ctypes.c_int64.from_address(loops.pool.address + at) for at in (640, 648))

    def child() -> bool:
        none_yet = running.value == 0
        return none_yet and bool((loops.visits(1000, 1) == 1).all()) and running.value == requested.value

    assert exit_status_of_fork(child) == 0
    assert (loops.visits(1000, 1) == 1).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_is_inside_a_loop(crowd: Loops) -> None:
    stop = threading.Event()
    flags = np.zeros(1 + threads.MAX_THREADS, np.int64)

    def loop_on() -> None:
        while not stop.is_set():
            crowd.run("occupy", flags.ctypes.data, 1000, 1)

    busy = threading.Thread(target=loop_on)
    busy.start()
    try:
        codes = [exit_status_of_fork(lambda: bool((crowd.visits(1000, 1) == 1).all())) for _ in range(10)]
    finally:
        stop.set()
        busy.join()
    assert codes == [0] * 10


_START = """
import ctypes, os, resource, signal, sys
from dualflow.backends.llvm.runtime import jit, threads
pool = threads.pool()
kernel = jit.compile_text(
    "define void @nothing(ptr %c, i64 %lo, i64 %hi, i64 %thread) { ret void }", ["nothing"], {}
)
pfor = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)(pool.pfor)
def loop():
    pfor(pool.address, kernel.address("nothing"), None, 100, 1)
def workers():
    # The system's entry for each started worker.
    tasks = (open(f"/proc/self/task/{task}/status").read() for task in os.listdir("/proc/self/task"))
    tables = [dict(line.split(":", 1) for line in text.splitlines()) for text in tasks]
    return [table for table in tables if table["Name"].strip() == "dualflow"]
"""


@needs_workers
@pytest.mark.parametrize("workers", ["asleep", "awake"])
def test_a_process_ends_while_workers_live(workers: str) -> None:
    program = (
        _START
        + """
loop()
while sys.argv[1] == "asleep" and [worker["State"].split()[0] for worker in workers()] != ["S"] * 7:
    pass
print(threads.status())
"""
    )
    printed = run_python(program, workers, DUALFLOW_NUM_THREADS="8")
    assert printed.startswith("PoolStatus(threads=8, workers_started=7")


@needs_workers
def test_signals_are_left_to_the_main_thread() -> None:
    program = (
        _START
        + """
loop()
while len(workers()) < 2:
    pass
for worker in workers():
    blocked = int(worker["SigBlk"], 16)
    print([bool(blocked >> (s - 1) & 1) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGSEGV)])
"""
    )
    assert run_python(program, DUALFLOW_NUM_THREADS="3").splitlines() == ["[True, True, False]"] * 2


@needs_workers
def test_a_system_that_refuses_threads() -> None:
    program = (
        _START
        + """
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + (4 << 20), held + (4 << 20)))
loop()
print(threads.status())
"""
    )
    printed = run_python(program, DUALFLOW_NUM_THREADS="4")
    assert printed.startswith("PoolStatus(threads=1, workers_started=0, reason='the limit is one thread")


# Settings.


@needs_workers
def test_the_number_of_threads_can_change() -> None:
    program = (
        _START
        + """
counts = []
for count in (3, 1, 2):
    threads.set_num_threads(count)
    loop()
    counts.append(threads.num_threads())
print(counts, threads.status().workers_started)
"""
    )
    assert run_python(program, DUALFLOW_NUM_THREADS="4").strip() == "[3, 1, 2] 2"


@needs_workers
def test_one_thread_means_the_caller_alone(crowd: Loops) -> None:
    requested = ctypes.c_int64.from_address(crowd.pool.address + 640)
    crowd.visits(1000, 1)
    before, requested.value = requested.value, 0
    try:
        assert (crowd.notes(1000, 1)[:, 2] == 0).all()
    finally:
        requested.value = before


@pytest.mark.parametrize("count", [0, -1, 1000])
def test_an_impossible_number_of_threads_is_refused(count: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"can't use {count} threads.*DUALFLOW_NUM_THREADS"):
        threads.set_num_threads(count)


@needs_workers
@pytest.mark.parametrize("setting", ["0", "65", "many", "-2", "1.5"])
def test_an_impossible_setting_is_refused(setting: str) -> None:
    program = """
from dualflow.core.errors import InvalidArgumentError
try:
    from dualflow.backends.llvm.runtime import threads
except InvalidArgumentError as refusal:
    print(refusal)
"""
    printed = run_python(program, DUALFLOW_NUM_THREADS=setting)
    assert printed.strip() == f"DUALFLOW_NUM_THREADS={setting!r}: give a number from 1 to 64"


def test_status_reports_what_there_is() -> None:
    status = threads.status()
    assert status.threads == threads.num_threads() <= threads.max_threads()
    assert bool(status.reason) == (status.threads == 1)
