"""A fork in the middle of what another thread does: the child can do the same, and doesn't wait for ever."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")

# The thread stops within the import until the fork has begun: without a lock that forks wait for, the child
# inherits Python's lock of a module that is being imported.
PROGRAM = """
import json, os, signal, sys, threading
import dualflow as df

inside, forking = threading.Event(), threading.Event()
forks = [0]

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[2] and not inside.is_set():
            inside.set()
            forking.wait()
        return None

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


def status_of_the_child(answer: Any, tmp_path: Path, module: str, work: str) -> Any:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")  # in a file, since tensor loops are converted by their source
    return answer("import runpy, sys; runpy.run_path(sys.argv[1])", str(path), module, work)
