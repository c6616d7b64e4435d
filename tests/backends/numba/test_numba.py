"""The Numba backend: its kernels' source, and its cache files under threads and forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    where = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DUALFLOW_CACHE_DIR", str(where))
        yield where


def compiled(f: Callable[..., Any], *specs: Any) -> Any:
    return df.function(f, backend="numba").get_concrete_function(*specs)


def kernels(concrete: Any) -> dict[str, Any]:
    return concrete.compiled.executable.source.context.kernels


# Source


def test_a_kernel_reads_as_the_loops_that_it_runs() -> None:
    text = compiled(lambda x: df.reduce_max(x * 2.0, 1), df.TensorSpec([4, 100])).kernels
    code = [line.split("  #")[0].rstrip() for line in text.splitlines()]
    begin = code.index("def k0(lo, hi, x0, x1, c0, n0, n1, n2, status):")
    assert code[begin - 1] == '@njit(error_model="numpy", nogil=True, cache=True)'
    assert code[begin + 1 : begin + 5] == [
        "    for i0 in range(lo, hi):",
        "        r0 = f32(-inf)",
        "        for i1 in range(n0):",
        "            r1 = x0[u(i0 * n1 + i1)]",
    ]


def test_kernels_that_differ_in_sizes_alone_are_one() -> None:
    first = compiled(lambda x: df.exp(x) + 1.0, df.TensorSpec([4, 10]))
    second = compiled(lambda x: df.exp(x) + 1.0, df.TensorSpec([7, 33]))
    (a,), (b,) = kernels(first).values(), kernels(second).values()
    assert a.function("k") == b.function("k")


def test_equal_kernels_of_a_graph_are_one() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            x = df.reshape(df.sort(df.tanh(x) * 2.0), [-1])
        return x

    concrete = compiled(f, df.TensorSpec([16]))
    assert len(kernels(concrete)) == 1


def test_numba_loads_what_an_earlier_process_compiled(cache: Path) -> None:
    program = (
        "import dualflow as df\n"
        "f = df.function(lambda x: df.sinh(x) * 3.0, backend='numba')\n"
        "f(df.ones([5]))\n"
        "print(f.concrete_functions[0].compiled.executable.origin)\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
        ).stdout.strip()
        for _ in range(2)
    ]
    assert outputs == ["compiled", "disk"]


def test_a_damaged_file_is_replaced(cache: Path) -> None:
    program = (
        "import dualflow as df\n"
        "f = df.function(lambda x: df.cosh(x) * 3.0, backend='numba')\n"
        "print(f(df.zeros([2])).numpy().tolist())\n"
    )
    for _ in range(2):
        output = subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
        )
        assert output.stdout.strip() == "[3.0, 3.0]"
        files = list((cache / "numba").glob("*.py"))
        assert files
        for file in files:
            file.write_text("raise SystemExit('this must not run')")


def test_without_a_cache_folder_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", "")
    f = df.function(lambda x: df.asinh(x) * 5.0, backend="numba")
    np.testing.assert_allclose(f(df.ones([3])), np.arcsinh(np.ones(3)) * 5, rtol=1e-6)


# Values


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
def test_dtypes_that_numba_has_no_kernels_for_go_through_numpy(dtype: str) -> None:
    f = df.function(lambda x: x * x + x, backend="numba")
    x = np.arange(4).astype(dtype)
    result = f(df.constant(x)).numpy()
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, x * x + x)
    assert {p.kind for p in f.concrete_functions[0].parts} >= {"numpy"}


@pytest.mark.parametrize("shape", [(0,), (3, 0), ()])
def test_empty_and_scalar_tensors(shape: tuple[int, ...]) -> None:
    f = df.function(lambda x: (x + 1.0, df.reduce_sum(x)), backend="numba")
    result, total = f(df.ones(shape))
    np.testing.assert_array_equal(result, np.full(shape, 2.0, np.float32))
    assert total.numpy() == np.prod(shape)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_integers_wrap_as_numpys_do(dtype: Any) -> None:
    f = df.function(lambda x, y: (x * y, x + y, x - y, x // y, x % y), backend="numba")
    rng = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    x, y = rng.integers(limits.min, limits.max, (2, 50), dtype=dtype, endpoint=True)
    y[y == 0] = 3
    results = f(df.constant(x), df.constant(y))
    with np.errstate(over="ignore"):
        expected = x * y, x + y, x - y, x // y, x % y
    for actual, desired in zip(results, expected, strict=True):
        np.testing.assert_array_equal(actual, desired)


def test_a_large_sum_keeps_its_digits() -> None:
    x = np.random.default_rng(0).normal(1e4, 1, (100_000, 8)).astype(np.float32)
    f = df.function(lambda x: (df.reduce_mean(x, 0), df.reduce_sum(x)), backend="numba")
    means, total = f(df.constant(x))
    np.testing.assert_allclose(means, x.mean(0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_allclose(total, x.sum(dtype=np.float64), rtol=1e-6)


# Threads, signals, forks


def test_results_dont_depend_on_who_else_runs() -> None:
    x = df.constant(np.random.default_rng(0).normal(size=(512, 2048)).astype(np.float32))
    f = df.function(lambda x: (df.nn.softmax(x), df.reduce_sum(x * x)), backend="numba")
    alone = [y.numpy() for y in f(x)]
    barrier, outcomes = threading.Barrier(4), []

    def work() -> None:
        barrier.wait()
        for _ in range(5):
            results = f(x)
            outcomes.append([y.numpy() for y in results])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 20
    for results in outcomes:
        for a, b in zip(results, alone, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_a_forked_child_computes_the_same() -> None:
    program = """
import os, numpy as np, dualflow as df
f = df.function(lambda x: df.nn.softmax(x), backend="numba")
x = df.constant(np.random.default_rng(0).normal(size=(512, 2048)).astype(np.float32))
expected = f(x).numpy()
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(f(x).numpy(), expected) else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that signal")
@pytest.mark.parametrize("shape", [[], [4]], ids=["scalar", "tensor"])
def test_a_signals_handler_ends_an_endless_loop(shape: list[int], tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    text = f"""
import signal, dualflow as df

@df.function(backend="numba")
def endless(x):
    while df.reduce_min(x) >= 0.0:
        x = x * 1.0
    return x

def stop(number, frame):
    raise KeyboardInterrupt

endless.get_concrete_function(df.ones({shape})).parts  # compiled
signal.signal(signal.SIGVTALRM, stop)
try:
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
    endless(df.ones({shape}))
except KeyboardInterrupt:
    print("stopped")
"""
    program.write_text(text)
    output = subprocess.run(
        [sys.executable, program], check=True, capture_output=True, text=True, timeout=120
    )
    assert output.stdout.strip() == "stopped"


def test_a_loop_inside_of_a_cond_is_noted_while_it_runs() -> None:
    """What a signal ends has to be known, to keep what the lines before it have assigned."""

    @df.function(backend="numba")
    def next_multiple(i: Any) -> Any:
        if i > 0:
            while i % 7 > 0:
                i += 1
        return i

    assert [int(next_multiple(df.constant(i))) for i in (0, 3)] == [0, 7]
    (concrete,) = next_multiple.concrete_functions
    (noted,) = concrete.compiled.executable.source.marked_loops
    assert noted.op.name == "cond"
