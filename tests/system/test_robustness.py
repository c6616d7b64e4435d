"""Damaged caches, rival processes, forks, threads, Ctrl-C, and programs of ten thousand ops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dualflow.backends.runtime.object_cache

Answer = Callable[..., Any]
Started = Callable[..., subprocess.Popen[str]]
ENTRIES = f"*{dualflow.backends.runtime.object_cache._SUFFIX}"

PROGRAM = """
import json, time
import numpy as np
import dualflow as df

f = df.function(lambda x, y: df.reduce_sum(df.tanh(x @ y) * 2.0, 1))
x, y = (df.constant(np.linspace(-1, 1, n * m, dtype=np.float32).reshape(n, m)) for n, m in ((5, 4), (4, 3)))
result = f(x, y).numpy()
assert np.allclose(result, np.tanh(x.numpy() @ y.numpy()).sum(1) * 2, rtol=1e-5), result
(concrete,) = f.concrete_functions
libraries = concrete.compiled.executable.libraries
print(json.dumps(all(library.report.from_cache for library in libraries)))
"""
"""Runs a function, checks its result and prints whether its code came from the cache."""


# The object cache


@pytest.mark.llvm
def test_a_second_process_finds_the_code_of_the_first(answer: Answer) -> None:
    assert [answer(PROGRAM), answer(PROGRAM)] == [False, True]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "a byte changed": lambda content: content[:-40] + bytes([content[-40] ^ 255]) + content[-39:],
    "foreign": lambda content: b"\x7fELF" + bytes(5000),
    "longer": lambda content: content + b"more",
}


@pytest.mark.llvm
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_entries_are_compiled_again_and_mended(
    forked_answer: Answer, cache: Path, damage: Callable[[bytes], bytes]
) -> None:
    forked_answer(PROGRAM)
    for entry in cache.glob(ENTRIES):
        entry.write_bytes(damage(entry.read_bytes()))
    assert [forked_answer(PROGRAM), forked_answer(PROGRAM)] == [False, True]


@pytest.mark.llvm
def test_an_entry_with_a_good_digest_of_no_code_is_compiled_again(
    forked_answer: Answer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forked_answer(PROGRAM)
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(cache))
    for entry in cache.glob(ENTRIES):
        dualflow.backends.runtime.object_cache.store(entry.stem, b"\x7fELF" + bytes(range(256)) * 20)
    assert [forked_answer(PROGRAM), forked_answer(PROGRAM)] == [False, True]


@pytest.mark.llvm
def test_a_file_instead_of_the_cache_folder_is_no_error(forked_answer: Answer, cache: Path) -> None:
    cache.write_text("not a folder")
    assert [forked_answer(PROGRAM), forked_answer(PROGRAM)] == [False, False]
    assert cache.read_text() == "not a folder"


@pytest.mark.llvm
def test_a_folder_instead_of_an_entry_is_no_error(forked_answer: Answer, cache: Path) -> None:
    forked_answer(PROGRAM)
    for entry in cache.glob(ENTRIES):
        entry.unlink()
        entry.mkdir()
    assert forked_answer(PROGRAM) is False


@pytest.mark.llvm
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_an_unwritable_cache_folder_is_no_error(forked_answer: Answer, cache: Path) -> None:
    cache.mkdir(mode=0o500)
    assert forked_answer(PROGRAM) is False


@pytest.mark.llvm
def test_processes_that_compile_the_same_at_once_all_get_it_right(started: Started, cache: Path) -> None:
    rivals = [started(PROGRAM) for _ in range(3)]
    assert [rival.communicate()[1] for rival in rivals if rival.wait()] == []
    assert list(cache.glob(ENTRIES)) == list(cache.iterdir())


# Forks

FORK = """
import json, os, threading
import numpy as np
import dualflow as df

x = df.constant(np.ones(1 << 20, np.float32))
f = df.function(lambda x: df.reduce_sum(df.exp(df.sin(x))) + df.reduce_max(x))
m = df.constant(np.ones((300, 300), np.float32))
g = df.function(lambda m: m @ m)
expected = f(x).numpy(), g(m).numpy()

def all_is_well(number):
    fresh = df.function(lambda x: df.cos(x) * float(number) + df.tanh(x))
    return (
        f(x).numpy() == expected[0]
        and np.array_equal(g(m).numpy(), expected[1])
        and np.allclose(fresh(x).numpy(), np.cos(1.0) * number + np.tanh(1.0))
    )

def fork(number):
    child = os.fork()
    if not child:
        try:
            os._exit(0 if all_is_well(number) else 1)
        finally:
            os._exit(2)
    return child
"""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
def test_a_forked_child_calls_and_compiles_functions_on_threads(forked_answer: Answer) -> None:
    program = """
statuses = [os.waitpid(child, 0)[1] for child in [fork(i) for i in range(3)]]
print(json.dumps([statuses, bool(all_is_well(7))]))
"""
    assert forked_answer(FORK + program, DUALFLOW_NUM_THREADS="4") == [[0, 0, 0], True]


@needs_fork
def test_a_child_forked_while_other_threads_call_and_compile_does_both(forked_answer: Answer) -> None:
    program = """
all_is_well(0), all_is_well(1)  # Python itself can't fork while another thread imports
stop = threading.Event()
wrong = []

def work(number):
    while not stop.is_set():
        if not all_is_well(number):
            wrong.append(number)

threads = [threading.Thread(target=work, args=(i,)) for i in (1, 2)]
for thread in threads:
    thread.start()
statuses = [os.waitpid(fork(i), 0)[1] for i in range(12)]
stop.set()
for thread in threads:
    thread.join()
print(json.dumps([set(statuses) == {0}, wrong]))
"""
    assert forked_answer(FORK + program, DUALFLOW_NUM_THREADS="3") == [True, []]


# Threads

THREADS = """
import json, threading
import numpy as np
import dualflow as df

def on_threads(work, count=4):
    barrier, problems = threading.Barrier(count), []
    def run(number):
        barrier.wait()
        try:
            work(number)
        except BaseException as problem:
            problems.append(repr(problem))
    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems
"""


@pytest.mark.parametrize("size", [10, 300])
def test_threads_that_call_one_function_at_once_each_get_their_own_result(
    forked_answer: Answer, size: int
) -> None:
    """The first calls trace together; later ones share the arena, or release the interpreter's lock."""
    program = f"""
size = {size}
f = df.function(lambda m, k: df.reduce_sum(df.exp((m @ m) * 1e-4) @ m, 1) * k)
def work(number):
    m = np.full((size, size), number + 1.0, np.float32)
    first = None
    for _ in range(30):
        result = f(m, df.constant(np.float32(number))).numpy()
        first = result.copy() if first is None else first
        assert np.array_equal(result, first)
    expected = (np.exp((m.astype(np.float64) @ m) * 1e-4) @ m).sum(1) * number
    assert np.allclose(first, expected, rtol=1e-4), (first, expected)
print(json.dumps([on_threads(work), f.experimental_get_tracing_count()]))
"""
    assert forked_answer(THREADS + program, DUALFLOW_NUM_THREADS="2") == [[], 1]


def test_threads_that_trace_different_functions_do_not_mix_them(forked_answer: Answer) -> None:
    program = """
def work(number):
    for i in range(20):
        f = df.function(lambda x: x * float(number) + float(i))
        assert f(df.constant(2.0)).numpy() == 2 * number + i
print(json.dumps(on_threads(work)))
"""
    assert forked_answer(THREADS + program) == []


def test_threads_that_compile_do_not_block_threads_that_inspect_graphs(
    forked_answer: Answer,
) -> None:
    program = """
x = df.constant(np.ones(10, np.float32))
def work(number):
    for i in range(60):
        f = df.function(lambda x: df.sin(df.sin(df.sin(x) * 2.0) + x) * float(i))
        if number % 2:
            f(x)
        else:
            f.get_concrete_function(x).optimised_graph
print(json.dumps(on_threads(work)))
"""
    assert forked_answer(THREADS + program) == []


def test_alternating_threads_update_a_variable_exactly(forked_answer: Answer) -> None:
    program = """
v = df.Variable(np.zeros(200_000, np.float32))
step = df.function(lambda: v.assign_add(df.ones_like(v)).value())
lock = threading.Lock()
def work(number):
    for _ in range(50):
        with lock:
            step()
print(json.dumps([on_threads(work), sorted(set(v.numpy().tolist()))]))
"""
    assert forked_answer(THREADS + program, DUALFLOW_NUM_THREADS="2") == [[], [200.0]]


def test_threads_that_update_a_variable_at_once_leave_some_value(forked_answer: Answer) -> None:
    """Without a lock updates may be lost or mixed, but each element is what some of them made it."""
    program = """
v = df.Variable(np.zeros(200_000, np.float32))
step = df.function(lambda: v.assign_add(df.ones_like(v)).value())
def work(number):
    for _ in range(50):
        step()
values = [on_threads(work), float(v.numpy().min()) >= 1, float(v.numpy().max()) <= 200]
print(json.dumps(values))
"""
    assert forked_answer(THREADS + program, DUALFLOW_NUM_THREADS="2") == [[], True, True]


# Ctrl-C

LONG_TO_COMPILE = 30 if os.environ.get("DUALFLOW_BACKEND") == "numba" else 6000
"""Ops that take seconds to compile."""


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize("stage", ["tracing", "compiling"])
def test_ctrl_c_while_it_compiles_leaves_a_function_that_compiles_again(started: Started, stage: str) -> None:
    program = f"""
import signal
import dualflow as df, numpy as np, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # the shell may have had it ignored
first = [True]

@df.function
def f(x):
    for i in range({LONG_TO_COMPILE}):
        if i == {LONG_TO_COMPILE // 2 if stage == "tracing" else LONG_TO_COMPILE - 1} and first:
            first.clear()
            print("now", flush=True)
        x = df.sin(x) + float(i % 7)
    return x

x = df.constant(np.ones(3, np.float32))
try:
    while True:
        f(x)
        f.clear_cache()
except KeyboardInterrupt:
    print("interrupted", flush=True)
y = np.ones(3, np.float32)
for i in range({LONG_TO_COMPILE}):
    y = np.sin(y) + np.float32(i % 7)
assert np.allclose(f(x).numpy(), y, rtol=1e-4), (f(x).numpy(), y)
print("fine")
"""
    process = started(program, DUALFLOW_CACHE_DIR="")
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (out, process.returncode) == ("interrupted\nfine\n", 0), err


# Ten thousand ops

LONG = """
import json, sys, time
import numpy as np
import dualflow as df

def chain(x, length):
    for i in range(length):
        x = df.sin(x) + x
    return x * 0.5

x = df.constant(np.linspace(0, 1, 100, dtype=np.float32))
df.function(chain, autograph=False)(x, 3)

def deep(frames):
    return deep(frames - 1) if frames else sys._getframe()

depth, frame = 0, sys._getframe()
while frame is not None:
    depth, frame = depth + 1, frame.f_back
sys.setrecursionlimit(depth + 120)
"""


@pytest.mark.llvm  # Numba's own passes recurse, and take a minute for a thousand ops
def test_ten_thousand_ops_need_no_recursion(forked_answer: Answer) -> None:
    program = """
f = df.function(chain, autograph=False)
result = f(x, 5000).numpy()
expected = chain(x, 5000).numpy()
long = len(f.concrete_functions[0].graph.nodes) >= 10_000
print(json.dumps([long, bool(np.allclose(result, expected, rtol=1e-3))]))
"""
    assert forked_answer(LONG + program) == [True, True]


@pytest.mark.llvm  # Numba's own passes recurse, and take a minute for a thousand ops
def test_the_gradient_of_ten_thousand_ops_needs_no_recursion(forked_answer: Answer) -> None:
    program = """
def slope(x, length):
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x
        for i in range(length):
            y = df.sin(y) * 0.3 + y * 0.7
    return tape.gradient(y, x)

f = df.function(slope, autograph=False)
same = np.allclose(f(x, 1000), slope(x, 1000), rtol=1e-3)
print(json.dumps([len(f.concrete_functions[0].graph.nodes) >= 10_000, bool(same)]))
"""
    assert forked_answer(LONG + program) == [True, True]


@pytest.mark.exhaustive
@pytest.mark.llvm  # about the steps up to machine code; Numba's own are not ours
def test_five_times_the_ops_take_about_five_times_as_long(forked_answer: Answer) -> None:
    """In processor time of the first call, tracing and compiling: a quadratic step would make it 25."""
    program = """
def cost(length):
    f = df.function(chain, autograph=False)
    begun = time.process_time()
    f(x, length)
    return time.process_time() - begun

cost(1000)
print(json.dumps(min(cost(5000), cost(5001)) / max(cost(1000), cost(1001))))
"""
    assert forked_answer(LONG + program, DUALFLOW_CACHE_DIR="") < 10


@pytest.mark.llvm
def test_a_warm_process_compiles_and_calls_without_llvm(answer: Answer) -> None:
    program = """
import json, sys
import dualflow as df
f = df.function(lambda x: df.reduce_sum(df.exp(x) @ x))
f(df.ones([8, 8])), f(df.ones([8, 8]))
print(json.dumps("dualflow.backends.llvm.runtime.llvm_library" in sys.modules))
"""
    assert [answer(program), answer(program)] == [True, False]
