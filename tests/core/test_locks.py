"""Locks are released however their block is left, also by a signal handler."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import dualflow
from dualflow.core.locks import SharedLock, SignalSafeLock, cached_attribute, signal_safe


@pytest.mark.parametrize("make", [threading.RLock, threading.Lock])
def test_a_lock_is_held_within_the_block(make: Any) -> None:
    lock = make()
    with SignalSafeLock(lock):
        assert not free_for_another_thread(lock)
    assert free_for_another_thread(lock)


def test_an_inner_block_leaves_the_outer_one_its_lock() -> None:
    lock = threading.RLock()
    with SignalSafeLock(lock):
        with SignalSafeLock(lock):
            pass
        assert not free_for_another_thread(lock)
    assert free_for_another_thread(lock)


def test_a_hold_that_was_never_left_gives_the_lock_back() -> None:
    lock = threading.RLock()
    lost = SignalSafeLock(lock)
    lost.__enter__()
    assert not free_for_another_thread(lock)
    del lost
    assert free_for_another_thread(lock)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("make", [threading.RLock, threading.Lock])
def test_no_interrupt_leaves_a_lock_taken(make: Any) -> None:
    lock = make()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    interrupted = 0
    try:
        for attempt in range(500):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + attempt % 30))
                while True:
                    with signal_safe(lock):
                        for _ in range(3):  # a jump back within the block
                            pass
            except KeyboardInterrupt:
                interrupted += 1
            assert free_for_another_thread(lock)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted == 500


def test_a_shared_lock_is_reentrant() -> None:
    shared = SharedLock()
    with shared.lock, shared.lock:
        assert not free_for_another_thread(shared.bare)
    assert free_for_another_thread(shared.bare)


def free_for_another_thread(lock: Any) -> bool:
    acquired: list[bool] = []

    def take() -> None:
        acquired.append(lock.acquire(blocking=False))
        if acquired[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return acquired[0]


class Slow:
    """Its attribute is computed where ``go_on`` allows it."""

    def __init__(self, begun: threading.Event, go_on: threading.Event) -> None:
        self.begun, self.go_on = begun, go_on

    @cached_attribute
    def attribute(self) -> int:
        self.begun.set()
        self.go_on.wait()
        return 1


def allowed() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_while_an_attribute_is_computed_computes_it_too() -> None:
    waiting = Slow(threading.Event(), threading.Event())
    thread = threading.Thread(target=lambda: waiting.attribute)
    thread.start()
    waiting.begun.wait()
    child = os.fork()
    if not child:
        signal.alarm(20)  # ends a child that waits for a lock that is never released
        os._exit(Slow(threading.Event(), allowed()).attribute)
    waiting.go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_no_module_has_attributes_that_hold_a_lock_while_they_are_computed() -> None:
    files = Path(dualflow.__file__).parent.rglob("*.py")
    assert [f.name for f in files if re.search(r"import .*\bcached_property\b", f.read_text("utf-8"))] == []
