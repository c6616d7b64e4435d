"""A fork while another thread compiles or computes: the child can do the same, and doesn't deadlock."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")

# The thread stops while it executes the module, until the fork begins. Without a lock for which forks wait,
# the child would inherit Python's lock of that module. While a module is looked up, Python delays forks.
PROGRAM = """
import importlib.machinery, json, os, signal, sys, threading
import dualflow as df

inside, forking = threading.Event(), threading.Event()
forks = [0]

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name != sys.argv[2] or inside.is_set():
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def exec_module(module):
            inside.set()
            forking.wait()
            execute(module)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Slow())
os.register_at_fork(before=forking.set)

def grown(x):
    while df.reduce_sum(x) < 10.0:
        x = x * 2.0
    return df.tanh(x)

def work():
    df.function(grown)(df.ones([4]))

def make_the_pool():
    from dualflow.backends.llvm.runtime import threads
    threads.pool()

do = globals()[sys.argv[3]]
thread = threading.Thread(target=do)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(100)  # stops a child that hangs
    do()
    os._exit(0)
thread.join()
print(json.dumps(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(
    "module",
    [
        pytest.param("dualflow.backends.llvm.executable", marks=pytest.mark.llvm),
        pytest.param("dualflow.schedule.plan", marks=pytest.mark.llvm),
        pytest.param("dualflow.backends.llvm.runtime.compiler", marks=pytest.mark.llvm),
        pytest.param("dualflow.backends.llvm.runtime.llvm_library", marks=pytest.mark.llvm),
        "dualflow.function.autograph.compilation",
    ],
)
def test_a_fork_while_a_thread_imports(answer: Any, tmp_path: Path, module: str) -> None:
    assert status_of_the_child(answer, tmp_path, module, "work") == 0


def test_a_fork_while_a_thread_makes_the_pool(answer: Any, tmp_path: Path) -> None:
    """It compiles meanwhile, so a fork would have to wait for two things, if each had a lock of its own."""
    assert (
        status_of_the_child(answer, tmp_path, "dualflow.backends.llvm.runtime.llvm_library", "make_the_pool")
        == 0
    )


# A codec counts too: Python imports it when a file is opened with its encoding.
IMPORTS = """
import json, sys
import dualflow as df
from dualflow.core import locks

without_the_lock = []

def is_held():  # by this thread, or by the one that waits for this thread's compile
    lock = locks._unforkable
    if lock._is_owned() or not lock.acquire(blocking=False):
        return True
    lock.release()
    return False

class Finder:
    def find_spec(self, name, path=None, target=None):
        if not is_held():
            without_the_lock.append(name)
        return None

sys.meta_path.insert(0, Finder())

@df.function
def step(x, w):
    while df.reduce_sum(x) < 10.0:
        x = df.tanh(x @ w) * 2.0
    return x

def gradient(x, w):
    with df.GradientTape() as tape:
        tape.watch(w)
        loss = df.reduce_sum(step(x, w) + df.random.normal(x.shape))
    return tape.gradient(loss, w)

compiled = df.function(gradient)
for size in (3, 3, 3, 5):  # the first call, the fast paths, another trace
    gradient(df.ones([size, 4]), df.ones([4, 4]))
    compiled(df.ones([size, 4]), df.ones([4, 4]))
df.linalg.svd(df.ones([3, 3]))
df.numpy.fft.fftfreq(4)
df.random.stateless_gamma([2], seed=[1, 2], alpha=1.0)
next(iter(df.data.Dataset.range(3).shuffle(3)))
df.strings.length("text")
print(json.dumps(without_the_lock))
"""


def test_a_fork_waits_for_each_import_of_a_first_call(answer: Any, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(IMPORTS, encoding="utf-8")
    assert answer("import runpy, sys; runpy.run_path(sys.argv[1])", str(path)) == []


def status_of_the_child(answer: Any, tmp_path: Path, module: str, work: str) -> Any:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")  # in a file, since tensor loops are converted by their source
    return answer("import runpy, sys; runpy.run_path(sys.argv[1])", str(path), module, work)
