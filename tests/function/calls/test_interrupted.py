"""Ctrl-C in a compiled call: assignments before the interrupted loop are kept."""

from __future__ import annotations

import linecache
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import dualflow as df
from dualflow.core.tracebacks import PROGRAM

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a timer that sends signals")


def in_machine_code():
    """Whether compiled code runs and runs, for the frames that signals find.

    A signal may come just before such code begins, but not the second that finds a frame at one place.
    """
    latest = [None]

    def where(frame):
        place = frame.f_code, frame.f_lineno
        before, latest[0] = latest[0], place
        file = frame.f_code.co_filename
        calls = file.startswith(PROGRAM) or (Path(file).name, frame.f_code.co_name) in CALLERS
        return place == before and calls

    return where


def at_the_end_of_machine_code(frame):
    """Whether compiled code has just come to its end: it lets Python run no handler before."""
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() == "call(*addresses)"


def in_recover(frame):
    """Whether a failed call is recovered from now, and the frame is not of a callback that would be ended."""
    if frame.f_code.co_name != "evaluate":
        return False
    while frame is not None and frame.f_code.co_name != "recover":
        frame = frame.f_back
    return frame is not None


CALLERS = [("executable.py", "enter"), ("traced_function.py", "__call__"), (Path(__file__).name, "call")]
"""Files and functions that call compiled code, in addition to Numba's programs."""


@contextmanager
def interrupting(where):
    """The block ends with KeyboardInterrupt when a signal finds a frame for which ``where`` holds."""

    def handle(number, frame):
        if where(frame):
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGVTALRM, handle)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.05, 0.05)  # of the process's own work, whatever others do
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class World:
    """Variables, and the updates of the programs."""

    def __init__(self):
        self.v, self.w, self.n = df.Variable([1.0, 2.0]), df.Variable([3.0, 4.0]), df.Variable(0)
        self.log = []

    def state(self):
        return [x.numpy().tolist() for x in (self.v, self.w, self.n)]


def endless(x):
    """A loop that carries more than registers hold."""
    i = df.constant(0)
    while i >= 0:
        x = x * 0.5 + 1.0
        i = (i + 1) % 1000
    return x


def forever(i):
    """One that does not."""
    while i >= 0:
        i = (i + 1) % 1000
    return i


def loop_before_the_update(s, i):
    x = s.v * 2.0
    if i > 0:
        x = endless(x)
    s.v.assign(x)


def update_in_the_kernel_of_a_loop(s, i):
    s.n.assign(s.n + forever(-1 + i * 2))


def assignments_around_a_loop(s, i):
    s.v.assign(s.v * 2.0)
    s.n.assign_add(1)
    k = i
    if i > 0:
        k = forever(i)
    s.w.assign_add(s.v)
    s.n.assign_add(k)


def loop_in_a_loop(s, i):
    s.v.assign(s.v * 2.0)
    k = df.constant(0)
    while k < 3:
        s.w.assign_add(s.v)
        if i > 0:
            s.v.assign(endless(s.v))
        k += 1


def loop_that_assigns(s, i):
    s.v.assign(s.v * 2.0)
    s.n.assign(i)
    while s.n > 0:
        s.n.assign(s.n % 1000 + i)


def python_before_a_loop(s, i):
    s.v.assign(df.py_function(lambda x: s.log.append(1) or x * 2.0, [s.v], df.float32))
    df.print("once", output_stream=s.log.append)
    s.w.assign_add(s.v)
    if i > 0:
        s.n.assign(forever(i))


LEFT = {
    loop_before_the_update: [[1.0, 2.0], [3.0, 4.0], 0],
    update_in_the_kernel_of_a_loop: [[1.0, 2.0], [3.0, 4.0], 0],
    assignments_around_a_loop: [[2.0, 4.0], [3.0, 4.0], 1],
    loop_in_a_loop: [[2.0, 4.0], [3.0, 4.0], 0],
    loop_that_assigns: [[2.0, 4.0], [3.0, 4.0], 1],
    python_before_a_loop: [[2.0, 4.0], [5.0, 8.0], 0],
}


@pytest.mark.parametrize("calls", [0, 3], ids=["at first", "later"])
@pytest.mark.parametrize("program", LEFT)
def test_an_interrupted_loop_leaves_what_was_assigned_before_it(program, calls):
    s = World()
    f = df.function(lambda i: program(s, i))
    number = df.constant(1)
    for _ in range(calls):
        f(df.constant(0))
    s.v.assign([1.0, 2.0]), s.w.assign([3.0, 4.0]), s.n.assign(0)
    s.log.clear()

    def call():
        f(number)

    with interrupting(in_machine_code()), pytest.raises(KeyboardInterrupt):
        call()
    assert s.state() == LEFT[program]
    assert s.log == ([1, "once\n"] if program is python_before_a_loop else [])
    f(df.constant(0))


def data_sized(s, n, i):
    s.n.assign_add(1)
    s.v.assign(s.v * 2.0)
    ones = df.boolean_mask(df.ones([n]), df.ones([n]) > 0.5)
    if i > 0:
        i = forever(i)
    s.w.assign(s.w + df.cast(i, df.float32) + df.reduce_sum(ones))


@pytest.mark.parametrize("calls", [0, 1], ids=["at first", "later"])
def test_one_interrupt_ends_a_function_that_numpy_runs_whole(calls):
    s = World()
    f = df.function(lambda n, i: data_sized(s, n, i), backend="numpy")
    for _ in range(calls):
        f(df.constant(3), df.constant(0))
    s.v.assign([1.0, 2.0]), s.w.assign([3.0, 4.0]), s.n.assign(0)
    signals = []

    def once(frame):
        if Path(df.__file__).parent not in Path(frame.f_code.co_filename).parents:
            return False  # for example a callback of the garbage collector, in which Python drops exceptions
        while frame is not None and frame.f_code.co_name != "_run_while":
            frame = frame.f_back
        if frame is None or signals:
            return False
        signals.append("a signal in the loop")
        return True

    with interrupting(once), pytest.raises(KeyboardInterrupt):
        f(df.constant(3), df.constant(1))
    assert s.state() == [[2.0, 4.0], [3.0, 4.0], 1]


def test_an_interrupted_call_of_python_leaves_what_was_assigned_before_it():
    s = World()

    def interrupt(x):
        raise KeyboardInterrupt

    @df.function
    def f():
        s.n.assign_add(1)
        y = df.py_function(interrupt, [s.v], df.float32)
        s.v.assign(y)

    for i in (1, 2, 3):
        with pytest.raises(KeyboardInterrupt):
            f()
        assert s.state() == [[1.0, 2.0], [3.0, 4.0], i]


@pytest.mark.llvm  # Numba's products are lines of Python, between which handlers run
def test_an_interrupt_that_comes_late_loses_nothing():
    """Products don't look for signals: the handler runs when they are done."""
    s, square = World(), df.ones([700, 700]) / 700.0

    @df.function
    def f(x):
        s.n.assign_add(1)
        y = df.py_function(lambda x: s.log.append(1) or x, [x], df.TensorSpec([700, 700]))
        for _ in range(30):
            y = y @ x
        s.v.assign(y[0, :2])
        s.w.assign_add(s.v)

    def call_again_and_again():
        while True:
            f(square)

    with interrupting(at_the_end_of_machine_code), pytest.raises(KeyboardInterrupt):
        call_again_and_again()
    calls = len(s.log)
    assert int(s.n) == calls
    np.testing.assert_allclose(s.v, [1.0 / 700.0] * 2, rtol=1e-4)
    np.testing.assert_allclose(s.w, [3.0 + calls / 700.0, 4.0 + calls / 700.0], rtol=1e-4)


def test_an_interrupt_while_it_is_settled_leaves_what_was_reached():
    """A failed call is run again by NumPy, which another signal ends."""
    s = World()

    @df.function
    def f(limit):
        s.v.assign(s.v * 2.0)
        k = df.constant(0)
        while k < 100_000_000:
            s.n.assign(k)
            k += 1
            assert k < limit, "far"

    with pytest.raises(AssertionError):
        f(df.constant(2))
    assert s.state() == [[2.0, 4.0], [3.0, 4.0], 1]
    with interrupting(in_recover), pytest.raises(KeyboardInterrupt):
        f(df.constant(90_000_000))
    assert s.v.numpy().tolist() == [4.0, 8.0]
    assert 0 <= s.n.numpy() < 90_000_000
    np.testing.assert_array_equal(s.w, [3.0, 4.0])


LARGE_GRAPH = """
import signal
import dualflow as df

def handle(number, frame):
    while frame is not None and frame.f_code.co_name != "optimise":
        frame = frame.f_back
    if frame is not None:
        raise KeyboardInterrupt

signal.signal(signal.SIGVTALRM, handle)
signal.setitimer(signal.ITIMER_VIRTUAL, 0.02, 0.02)

@df.function
def f(x):
    for i in range(1500):
        x = df.sin(x) * float(i % 7 + 1)
    return x @ x

try:
    f(df.ones([4, 4]))
except KeyboardInterrupt:
    print("interrupted")
finally:
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
"""


@pytest.mark.exhaustive
@pytest.mark.llvm
def test_ctrl_c_ends_the_passes_of_a_large_graph(tmp_path):
    """With nothing on disk LLVM would compile meanwhile, and signals wait for it."""
    environment = {**os.environ, "DUALFLOW_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", LARGE_GRAPH]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "interrupted\n"
