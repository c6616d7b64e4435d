"""Prefetching threads: their elements, their errors, and that all of them end."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import dualflow as df

Dataset = df.data.Dataset


KINDS = "dualflow map", "dualflow prefetch"
"""What threads of pipelines are named for; those of the Numba backend's pool stay."""


@pytest.fixture
def assert_all_end() -> Callable[[], None]:
    """``assert_all_end()`` waits for the workers that the test has started, which end by themselves."""
    others = set(threading.enumerate())

    def check() -> None:
        gc.collect()
        for thread in set(threading.enumerate()) - others:
            if thread.name.startswith(KINDS):
                thread.join(60)
                assert not thread.is_alive()

    return check


def output_of(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout


def slowly(x: Any) -> Any:
    """A call in Python, which keeps AUTOTUNE's threads busy."""
    return df.py_function(lambda v: v + 1, [x], df.int64)


PIPELINES = {
    "prefetch": lambda d: d.prefetch(2),
    "map": lambda d: d.map(slowly, num_parallel_calls=3),
    "map in any order": lambda d: d.map(slowly, num_parallel_calls=3, deterministic=False),
    "interleave": lambda d: d.interleave(lambda x: Dataset.from_tensors(x), num_parallel_calls=2),
    "all": lambda d: d.map(slowly, num_parallel_calls=2).batch(2).prefetch(2).unbatch().prefetch(1),
}


@pytest.fixture(params=PIPELINES)
def pipeline(request: pytest.FixtureRequest) -> Any:
    return PIPELINES[request.param]


def test_all_elements_are_returned(pipeline: Any, assert_all_end: Callable[[], None]) -> None:
    received = [int(x) for x in pipeline(Dataset.range(20))]
    shift = min(received)
    assert sorted(received) == [x + shift for x in range(20)]
    assert_all_end()


def test_a_loop_that_is_left_leaves_no_thread(pipeline: Any, assert_all_end: Callable[[], None]) -> None:
    for x in pipeline(Dataset.range(1000).repeat()):
        if int(x) > 5:
            break
    del x
    assert_all_end()


def test_an_iterator_that_is_dropped_or_closed_leaves_no_thread(
    pipeline: Any, assert_all_end: Callable[[], None]
) -> None:
    iterator = iter(pipeline(Dataset.range(1000).repeat()))
    next(iterator)
    del iterator
    assert_all_end()
    iterator = iter(pipeline(Dataset.range(1000).repeat()))
    next(iterator)
    iterator.close()
    assert_all_end()


def check(v: Any) -> Any:
    """A function that runs in Python, in whatever thread."""
    if int(v) == 3:
        raise KeyError("three")  # the user's line
    return v


def failing(x: Any) -> Any:
    return df.py_function(check, [x], df.int64)


@pytest.mark.parametrize("threads", [None, 2])
def test_a_workers_error_comes_with_the_users_line(
    threads: int | None, assert_all_end: Callable[[], None]
) -> None:
    dataset = Dataset.range(6).map(failing, num_parallel_calls=threads).prefetch(2)
    iterator = iter(dataset)
    assert [int(next(iterator)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="three") as caught:
        next(iterator)
    lines = [str(entry.statement) for entry in caught.traceback]
    assert any("the user's line" in line for line in lines)
    del caught, iterator
    assert_all_end()


def test_a_dataset_goes_on_after_an_error() -> None:
    iterator = iter(Dataset.range(6).map(failing).prefetch(2))
    assert [int(next(iterator)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError):
        next(iterator)
    assert [int(x) for x in iterator] == [4, 5]


def test_several_threads_read_a_dataset_with_iterators_of_their_own() -> None:
    dataset = (
        Dataset.range(200).shuffle(50, seed=1).map(lambda x: x + 1, num_parallel_calls=2).batch(7).prefetch(2)
    )
    sums: list[int] = []

    def read() -> None:
        sums.append(sum(int(df.reduce_sum(x)) for x in dataset))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [200 * 201 // 2] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("name", ["prefetch", "map"])
def test_a_forked_process_goes_on_with_threads_of_its_own(name: str) -> None:
    program = (
        "import os, sys, dualflow as df\n"
        "D = df.data.Dataset\n"
        "plus = lambda x: df.py_function(lambda v: v + 1, [x], df.int64)\n"
        f"kind = {name!r}\n"
        "d = D.range(8).prefetch(2) if kind == 'prefetch' else D.range(8).map(plus, num_parallel_calls=2)\n"
        "iterator = iter(d)\n"
        "first = int(next(iterator))\n"
        "pid = os.fork()\n"
        "rest = [int(x) - first for x in iterator]\n"
        "if pid == 0:\n"
        "    print(rest, flush=True)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "print(rest)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.splitlines() == ["[1, 2, 3, 4, 5, 6, 7]"] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_frees_an_iterator_whose_lock_its_parents_thread_held() -> None:
    program = (
        "import os, threading, dualflow as df\n"
        "iterator = df.data.Dataset.range(8).prefetch(2).stage.start()\n"
        "iterator.next(1)\n"
        "held, forked = threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with iterator._queue._changed:\n"
        "        held.set(); forked.wait()\n"
        "thread = threading.Thread(target=hold)\n"
        "thread.start(); held.wait()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    del iterator, hold, thread\n"
        "    print('freed', flush=True)\n"
        "    os._exit(0)\n"
        "forked.set()\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
    )
    assert output_of(program) == "freed\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_that_is_forked_while_another_thread_reads_has_to_make_a_new_iterator() -> None:
    program = (
        "import os, threading, dualflow as df\n"
        "reading, go_on = threading.Event(), threading.Event()\n"
        "def numbers():\n"
        "    reading.set(); go_on.wait()\n"
        "    yield from range(3)\n"
        "dataset = df.data.Dataset.from_generator(numbers, df.int32)\n"
        "iterator = iter(dataset)\n"
        "state = iterator.get_state()\n"
        "thread = threading.Thread(target=lambda: next(iterator))\n"
        "thread.start(); reading.wait()\n"
        "pid = os.fork()\n"
        "go_on.set()\n"
        "if pid == 0:\n"
        "    for act in (lambda: next(iterator), iterator.get_state):\n"
        "        try: act()\n"
        "        except df.errors.FailedPreconditionError as error: print('forked' in str(error))\n"
        "    go_on = threading.Event(); go_on.set()\n"
        "    iterator.set_state(state)\n"
        "    print([int(x) for x in iterator], flush=True)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "thread.join()\n"
        "print([int(x) for x in iterator])\n"
    )
    assert output_of(program).splitlines() == ["True", "True", "[0, 1, 2]", "[1, 2]"]


def test_a_closed_iterator_has_ended_also_for_threads_that_wait() -> None:
    waiting, go_on = threading.Event(), threading.Event()

    def numbers() -> Any:
        yield 0
        waiting.set()
        go_on.wait(60)
        yield from (1, 2, 3)

    iterator = iter(Dataset.from_generator(numbers, df.int32).prefetch(1))
    elements: list[int] = []
    threads = [threading.Thread(target=lambda: elements.extend(map(int, iterator))) for _ in range(3)]
    for thread in threads:
        thread.start()
    waiting.wait(60)
    iterator.close()
    go_on.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert sorted(elements) in ([0], [0, 1])
    assert next(iterator, None) is None
    with pytest.raises(df.errors.FailedPreconditionError, match="closed"):
        iterator.get_state()


def test_a_trace_reads_from_threads_that_compile() -> None:
    """A trace holds the lock of traces, and the stage's thread needs it to compile its function."""
    program = (
        "import dualflow as df\n"
        "dataset = df.data.Dataset.range(5).batch(3).map(lambda x: x * 2).prefetch(2)\n"
        "iterator = iter(dataset)\n"
        "take = df.function(lambda: next(iterator))\n"
        "print(take().numpy().tolist())\n"
    )
    assert output_of(program) == "[0, 2, 4]\n"


@pytest.mark.parametrize(
    "reader", ["", "threading.Thread(target=lambda: next(iterator), daemon=True).start()"]
)
def test_ctrl_c_ends_a_loop_that_waits(reader: str) -> None:
    program = (
        "import signal, threading, dualflow as df\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it\n"
        "waiting = threading.Event()\n"
        "def forever():\n"
        "    waiting.set()\n"
        "    threading.Event().wait()\n"
        "    yield 1\n"
        "d = df.data.Dataset.from_generator(forever, df.int32).prefetch(1)\n"
        "main = threading.main_thread().ident\n"
        "def interrupt():\n"
        "    waiting.wait()\n"
        "    signal.pthread_kill(main, signal.SIGINT)\n"
        "threading.Thread(target=interrupt).start()\n"
        "try:\n"
        "    next(iter(d))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "interrupted\n"


def test_ctrl_c_ends_a_wait_for_another_thread_that_reads() -> None:
    program = (
        "import os, signal, sys, threading, dualflow as df\n"
        "def interrupt_once(*_):\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    interrupted.set()\n"
        "    raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGINT, interrupt_once)\n"
        "reading = threading.Event()\n"
        "def forever():\n"
        "    reading.set()\n"
        "    threading.Event().wait()\n"
        "    yield 1\n"
        "iterator = iter(df.data.Dataset.from_generator(forever, df.int32))\n"
        "threading.Thread(target=lambda: next(iterator), daemon=True).start()\n"
        "reading.wait()\n"
        "main = threading.main_thread().ident\n"
        "interrupted = threading.Event()\n"
        "def interrupt():\n"
        "    while os.path.basename(sys._current_frames()[main].f_code.co_filename) != 'iterator.py': pass\n"
        "    while not interrupted.wait(0.1):  # Python misses a signal just before it waits for a lock\n"
        "        signal.pthread_kill(main, signal.SIGINT)\n"
        "threading.Thread(target=interrupt, daemon=True).start()\n"
        "try:\n"
        "    next(iterator)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
        "os._exit(0)\n"
    )
    assert output_of(program) == "interrupted\n"
