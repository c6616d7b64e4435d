"""Variable updates from several threads: none is lost, and tensors that were read don't change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.eager import updates
from dualflow.eager.updates import VariableUpdate

THREADS = 8
SIZES = [1, 100_000]
WITHOUT_THE_GIL = "import sys; sys._is_gil_enabled = lambda: False; "
"""The GIL state of a free-threaded Python, so that its code path runs here."""


def together(*works: Callable[[], object]) -> None:
    """Run each in a thread of its own, begun at the same time; the first error is raised here."""
    barrier = threading.Barrier(len(works))
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@contextmanager
def changing(variables: list[Any]) -> Iterator[list[Any]]:
    """An update of ``variables``."""
    update = VariableUpdate(variables)
    with update.running, update as locks:
        yield locks


@pytest.fixture(autouse=True)
def _threads_switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def add_one(v: Any) -> None:
    v.assign_add(np.ones(v.shape, np.float32))


def subtract_minus_one(v: Any) -> None:
    v.assign_sub(np.full(v.shape, -1.0, np.float32))


def add_to_a_part(v: Any) -> None:
    v[...].assign_add(1.0)


def scatter(v: Any) -> None:
    v.scatter_nd_add([[0]], [1.0])


def scatter_less(v: Any) -> None:
    v.scatter_nd_sub([[0]], [-1.0])


def descend(v: Any) -> None:
    v1.train.GradientDescentOptimizer(1.0).apply_gradients(
        [(df.constant(np.full(v.shape, -1.0, np.float32)), v)]
    )


CHANGES = [add_one, subtract_minus_one, add_to_a_part, scatter, scatter_less, descend]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("change", CHANGES)
def test_changes_from_many_threads_all_count(change, size):
    v = df.Variable(np.zeros(size, np.float32))
    rounds = 200 if size == 1 else 20

    def work() -> None:
        for _ in range(rounds):
            change(v)

    together(*[work] * THREADS)
    assert v.numpy()[0] == THREADS * rounds


def test_eight_thousand_additions():
    v = df.Variable(0.0)

    def work() -> None:
        for _ in range(1000):
            v.assign_add(1.0)

    together(*[work] * THREADS)
    assert v.numpy() == 8000.0


def test_changes_of_several_kinds_all_count():
    v = df.Variable(np.zeros(1, np.float32))

    def work(change: Callable[[Any], None]) -> Callable[[], None]:
        return lambda: [change(v) for _ in range(200)] and None

    together(*[work(change) for change in CHANGES])
    assert v.numpy()[0] == 200 * len(CHANGES)


def test_an_assignment_between_is_not_undone():
    """After an assignment, only additions that came later may be visible with it."""
    v, high = df.Variable(0.0), 1e6
    added = [0] * 4
    reads: list[float] = []

    def add(i: int) -> None:
        for _ in range(300):
            v.assign_add(1.0)
            added[i] += 1

    def assign() -> None:
        for _ in range(300):
            v.assign(high)
            reads.append(float(v))

    together(*[lambda i=i: add(i) for i in range(4)], assign)
    assert min(reads) >= high


def test_values_computed_before_an_error_are_not_assigned():
    v = df.Variable([1.0, 2.0])
    before = v.value()
    with pytest.raises(ValueError, match="shape"):
        v[0].assign_add([1.0, 2.0, 3.0])
    assert v.value() is before
    v.assign_add([1.0, 1.0])
    assert v.numpy().tolist() == [2.0, 3.0]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_a_signal_handlers_change_counts_too():
    v = df.Variable(np.zeros(10_000, np.float32))
    handled: list[int] = []

    def handler(*_: object) -> None:
        add_one(v)
        handled.append(1)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        timers = 0
        for attempt in range(2000):
            if len(handled) == timers:  # the last one has fired, and its handler has ended
                timers += 1
                signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + attempt % 20))
            add_one(v)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert handled
    assert v.numpy().tolist() == [2000.0 + len(handled)] * 10_000


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_interrupted_changes_leave_the_variable_free():
    """Ctrl-C at any place: the variable holds a whole value, and can be read and changed after it."""
    v = df.Variable(np.zeros(1000, np.float32))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    interrupted = 0
    try:
        for attempt in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + attempt % 30))
                for _ in range(50):
                    update = VariableUpdate([v])
                    with update.running, update as (lock,):
                        lock.tensor = lock.tensor + 1.0
                    add_one(v)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted
    together(lambda: add_one(v), lambda: add_one(v))  # other threads don't wait for what was given up
    assert len(set(v.numpy().tolist())) == 1


# Steps over several variables.


def test_reads_within_an_update_of_another_thread_give_the_old_value():
    v = df.Variable(2.0)
    reads: list[Any] = []
    with changing([v]):
        together(
            lambda: reads.extend([v.value(), v.numpy(), df.identity(v), v + 0.0, -v, df.concat([[v]], 0)])
        )
    assert [float(np.ravel(x)[0]) for x in reads] == [2.0, 2.0, 2.0, 2.0, -2.0, 2.0]


def test_reads_within_an_update_in_place_wait_for_its_end():
    v = df.Variable([1.0])
    reads: list[float] = []
    reader = threading.Thread(target=lambda: reads.append(float(v[0])))
    update = VariableUpdate([v], compiled=True)
    with update.running, update as (lock,):
        assert update.begin_in_place()
        references = sys.getrefcount(lock.tensor)
        reader.start()
        while reader.is_alive() and sys.getrefcount(lock.tensor) == references:
            reader.join(1e-3)
        assert reads == []
        lock.tensor._array[0] = 2.0
    reader.join()
    assert reads == [2.0]


def test_no_update_in_place_begins_while_a_value_is_referenced():
    v, w = df.Variable([1.0]), df.Variable([1.0])
    held = w.value()
    update = VariableUpdate([v, w], compiled=True)
    with update.running, update as locks:
        assert not update.begin_in_place()
        assert not any(lock.in_place for lock in locks)
    del held


def test_an_interrupted_update_in_place_does_not_block_reads():
    """A signal handler has raised an exception at the begin of its end."""
    v = df.Variable([1.0])
    update = VariableUpdate([v], compiled=True)
    with update.running:
        update.__enter__()
        assert update.begin_in_place()
    together(lambda: float(v[0]))


def test_updates_of_variables_in_any_order_come_to_an_end():
    a, b = df.Variable(0.0), df.Variable(0.0)

    def work(variables: list[Any]) -> None:
        for _ in range(200):
            with changing(variables) as locks:
                for lock in locks:
                    lock.tensor = lock.tensor + 1.0

    together(lambda: work([a, b]), lambda: work([b, a]), lambda: work([a]), lambda: work([b]))
    assert (a.numpy(), b.numpy()) == (600.0, 600.0)


def test_an_update_within_an_update_of_one_thread_does_not_wait():
    v = df.Variable(1.0)
    with changing([v]) as (lock,):
        v.assign_add(1.0)
        assert v.numpy() == 2.0
        lock.tensor = lock.tensor + 1.0
    assert v.numpy() == 3.0


def test_an_update_that_fails_leaves_the_value():
    v = df.Variable(1.0)
    with pytest.raises(ZeroDivisionError), changing([v]):
        1 / 0  # noqa: B018
    together(lambda: v.assign_add(1.0))
    assert v.numpy() == 2.0


def waiting(count: int) -> None:
    """Waits until `count` updates are running or queued."""
    while len(updates._updates) < count:
        pass


def test_who_waits_for_this_thread_is_not_waited_for():
    """The other thread came first for ``b``, but needs ``a`` as well, which this one has."""
    a, b = df.Variable(0.0), df.Variable(0.0)

    def both() -> None:
        with changing([a, b]) as locks:
            for lock in locks:
                lock.tensor = lock.tensor + 1.0

    with changing([a]):
        other = threading.Thread(target=both)
        other.start()
        waiting(2)
        with changing([b]) as (lock,):
            lock.tensor = lock.tensor + 10.0
    other.join()
    assert (a.numpy(), b.numpy()) == (1.0, 11.0)


def test_threads_that_would_wait_for_each_other_are_reported():
    a, b = df.Variable(0.0), df.Variable(0.0)
    have_both = threading.Barrier(2)
    messages: list[str] = []

    def nested(outer: Any, inner: Any) -> None:
        with changing([outer]):
            have_both.wait()
            try:
                with changing([inner]) as (lock,):
                    lock.tensor = lock.tensor + 1.0
            except RuntimeError as error:
                messages.append(str(error))

    together(lambda: nested(a, b), lambda: nested(b, a))
    assert len(messages) == 1
    assert "wait for each other" in messages[0]
    assert {float(a), float(b)} == {0.0, 1.0}


# Forks.


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_threads_of_its_parent():
    program = """
import os, signal, threading
import numpy as np
import dualflow as df
from dualflow.eager.updates import VariableUpdate

v = df.Variable(np.ones(10, np.float32))
inside, done = threading.Event(), threading.Event()

def hold():
    update = VariableUpdate([v])
    with update.running, update as (lock,):
        inside.set()
        done.wait()
        lock.tensor = lock.tensor * 2.0

holder = threading.Thread(target=hold)
holder.start()
inside.wait()
waiting = threading.Thread(target=lambda: v.assign_add(np.ones(10, np.float32)))
waiting.start()
child = os.fork()
if child == 0:
    signal.alarm(100)
    v.assign_add(np.ones(10, np.float32))
    os._exit(int(v.numpy().tolist() != [2.0] * 10))
status = os.waitpid(child, 0)[1]
done.set()
holder.join()
waiting.join()
print(status, v.numpy()[0])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("0 3.0\n", 0), ended.stderr


def test_without_the_gil_changes_all_count_too():
    program = """
import threading
import numpy as np
import dualflow as df
from dualflow.eager.variable_slots import GIL

v = df.Variable(np.zeros(3, np.float32))
add = df.function(lambda x: v.assign_add(x))
one = df.ones([3])

def work():
    for _ in range(100):
        v.assign_add(one)
        add(one)
        v[...].assign_add(1.0)

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
before = v.value()
v.assign(one)
print(GIL, before.numpy()[0], v.numpy()[0])
"""
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_GIL + program], capture_output=True, text=True, check=False
    )
    assert ended.stdout == "False 1200.0 1.0\n", ended.stderr
