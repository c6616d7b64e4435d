"""``status()``: how each part of a trace runs, and what works in this process, or why it doesn't."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import dualflow as df
from dualflow.backends.llvm.features import features
from dualflow.backends.llvm.runtime import fastcall

FACILITIES = [
    "C fast call",
    "linker",
    "threads",
    "concurrency",
    "collectives",
    "matrix product",
    "disk cache",
    "programs on disk",
    "kept blocks",
]
SOURCE_ROOT = Path(df.__file__).parents[1]

PROGRAM = """
import dualflow as df
double = df.function(lambda x: x + x)
double(df.ones([3]))
print(double.status())
"""


def status_of_a_process(tmp_path: Path, **environment: str) -> str:
    variables = {"PYTHONPATH": str(SOURCE_ROOT), "DUALFLOW_CACHE_DIR": str(tmp_path / "cache"), **environment}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)
    return done.stdout


def test_each_facility_is_reported_once_after_the_traces() -> None:
    f = df.function(lambda x: x + 1.0, name="f")
    f(df.ones([2])), f(df.ones([2, 2]))
    traces, _, process = f.status().partition("\nin this process\n")
    assert traces.count("native: ") == 2
    assert [line.split(":")[0].strip() for line in process.splitlines()] == FACILITIES


def test_a_concrete_function_reports_itself() -> None:
    f = df.function(lambda x: df.sort(x), name="f")
    concrete = f.get_concrete_function(df.TensorSpec([3]))
    f.get_concrete_function(df.TensorSpec([4]))
    assert concrete.status().startswith("<ConcreteFunction f(x: float32[3])>\n")
    assert "numpy: sort (" in concrete.status()
    assert "float32[4]" not in concrete.status()
    assert [part for part in FACILITIES if f"    {part}: o" in concrete.status()] == FACILITIES


def test_a_concrete_function_that_waits_for_sizes_is_reported() -> None:
    concrete = df.function(lambda x: x + 1.0).get_concrete_function(df.TensorSpec([None]))
    assert "not called yet" in concrete.status()
    concrete(df.ones([2]))
    assert "native: " in concrete.status()


def test_parts_of_one_kind_are_one_line() -> None:
    @df.function(backend="llvm")
    def f(m):
        for _ in range(30):
            m = df.linalg.inv(m + 1.0) * 2.0
        return df.linalg.det(m) + df.reduce_sum(m @ m)

    f(df.eye(9))
    lines = f.status().partition("\nin this process\n")[0].splitlines()[1:]
    kinds = [line.strip().partition(" (")[0] for line in lines]
    assert len(lines) == 3
    assert re.fullmatch(r"native: \d+ kernels, 1 matrix product routine in 32 parts", kinds[0])
    assert kinds[1:] == ["numpy: inv x 30", "numpy: determinant"]


def test_threads_that_are_off_are_reported_with_the_reason(tmp_path: Path) -> None:
    output = status_of_a_process(tmp_path, DUALFLOW_NUM_THREADS="1")
    assert "threads: off (the limit is one thread)\n" in output


def test_a_cache_that_is_off_is_reported_with_the_reason(tmp_path: Path) -> None:
    output = status_of_a_process(tmp_path, DUALFLOW_CACHE_DIR="")
    assert "disk cache: off (DUALFLOW_CACHE_DIR is empty)\n" in output


def test_a_cache_that_is_on_is_reported_with_its_folder(tmp_path: Path) -> None:
    assert f"disk cache: on ({tmp_path / 'cache'})\n" in status_of_a_process(tmp_path)


def test_a_c_fast_call_that_is_off_is_reported_with_the_reason() -> None:
    class Plain:
        """Keeps its array in its dictionary."""

    assert fastcall.probe(Plain) is None
    assert str(features(Plain)[0]) == "C fast call: off (tensors don't store their array in a slot)"


def test_the_c_fast_call_works_in_this_version_of_python() -> None:
    assert fastcall.unavailable_reason(type(df.ones([1]))) == ""
    assert "C fast call: on\n" in _status()


def _status() -> str:
    f = df.function(lambda x: x + 1.0)
    f(df.ones([2]))
    return f.status()
