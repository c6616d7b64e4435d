"""The JIT compiler: text in, callable addresses out, memory released, and every error explained."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dualflow.backends.llvm.runtime import jit
from dualflow.backends.runtime import object_cache
from dualflow.core.errors import InternalError

SOURCE_ROOT = Path(jit.__file__).parents[4]
UNARY = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)

TWICE = "define double @twice(double %x) {\n  %y = fadd double %x, %x\n  ret double %y\n}\n"
LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "cache"
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(where))
    return where


def compiled(text: str, name: str, **symbols: int) -> tuple[jit.Library, Callable[[float], float]]:
    library = jit.compile_text(text, [name], symbols)
    return library, UNARY(library.address(name))


def scaled_one(factor: int) -> float:
    """factor * 1, by a library of its own."""
    _library, function = compiled(scaled(factor), "scaled")
    return function(1.0)


def scaled(factor: int) -> str:
    return f"define double @scaled(double %x) {{\n  %y = fmul double %x, {factor}.0\n  ret double %y\n}}\n"


# Compiling and calling.


def test_a_compiled_function_computes() -> None:
    _library, twice = compiled(TWICE, "twice")
    assert twice(21.0) == 42.0


def test_only_exports_have_addresses() -> None:
    library = jit.compile_text(TWICE + scaled(3), ["twice"], {})
    with pytest.raises(InternalError, match="no function 'scaled' in this library, which exports twice"):
        library.address("scaled")


def test_constants_and_stores_stay_within_reach_of_the_code() -> None:
    text = """
        @table = private constant [4 x double] [double 2.0, double 3.0, double 5.0, double 7.0]
        @calls = internal global i64 0
        define double @lookup(double %x) {
          %n = load i64, ptr @calls
          %next = add i64 %n, 1
          store i64 %next, ptr @calls
          %at = getelementptr [4 x double], ptr @table, i64 0, i64 %n
          %entry = load double, ptr %at
          ret double %entry
        }"""
    _library, lookup = compiled(text, "lookup")
    assert [lookup(0.0) for _ in range(4)] == [2.0, 3.0, 5.0, 7.0]


def test_two_libraries_may_use_the_same_names() -> None:
    first, by_two = compiled(scaled(2), "scaled")
    second, by_three = compiled(scaled(3), "scaled")
    assert (by_two(1.0), by_three(1.0)) == (2.0, 3.0)
    assert first.address("scaled") != second.address("scaled")


# Symbols from outside.


@pytest.mark.parametrize("name", ["sin", "cos", "log1p", "expm1", "erf", "tgamma", "cbrt", "atan"])
def test_the_maths_of_c_needs_no_address(name: str) -> None:
    if not hasattr(math, {"tgamma": "gamma"}.get(name, name)):
        pytest.skip("math has no such function to compare with")
    text = f"declare double @{name}(double)\ndefine double @f(double %x) {{\n"
    text += f"  %y = call double @{name}(double %x)\n  ret double %y\n}}\n"
    _library, function = compiled(text, "f")
    expected = getattr(math, {"tgamma": "gamma"}.get(name, name))(0.625)
    assert function(0.625) == pytest.approx(expected, rel=1e-15)


def test_symbols_of_the_code_generator_need_no_address() -> None:
    text = """
        declare double @llvm.pow.f64(double, double)
        declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
        define double @f(double %x) {
          %space = alloca [4096 x double]
          call void @llvm.memset.p0.i64(ptr %space, i8 0, i64 32768, i1 true)
          %zero = load volatile double, ptr %space
          %power = call double @llvm.pow.f64(double %x, double %x)
          %y = fadd double %power, %zero
          ret double %y
        }"""
    _library, function = compiled(text, "f")
    assert function(3.0) == 27.0


def test_a_given_symbol_is_called() -> None:
    negate = UNARY(lambda x: -x)
    address = ctypes.cast(negate, ctypes.c_void_p).value
    assert address is not None
    text = "declare double @mine(double)\ndefine double @f(double %x) {\n"
    text += "  %y = call double @mine(double %x)\n  ret double %y\n}\n"
    _library, function = compiled(text, "f", mine=address)
    assert function(2.5) == -2.5


def test_a_given_variable_is_read() -> None:
    number = ctypes.c_double(6.5)
    text = "@mine = external global double\ndefine double @f(double %x) {\n"
    text += "  %y = load double, ptr @mine\n  ret double %y\n}\n"
    _library, function = compiled(text, "f", mine=ctypes.addressof(number))
    assert function(0.0) == 6.5


@pytest.mark.parametrize("text", ["declare void @unheard_of()\n", "@unheard_of = external global i8\n"])
def test_a_symbol_that_is_not_provided_is_named(text: str) -> None:
    with pytest.raises(InternalError, match=r"'unheard_of'.*provided: other, this"):
        jit.compile_text(text + TWICE, ["twice"], {"this": 8, "other": 16})


def test_other_functions_of_the_process_are_out_of_reach() -> None:
    with pytest.raises(InternalError, match="'getpid'"):
        jit.compile_text("declare i32 @getpid()\n" + TWICE, ["twice"], {})


# Refusals.


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("define double @f( {", "expected"),
        ("define i32 @f(double %x) { ret double %x }", "function result type"),
        ("define double @f(double %x) { %y = fadd double %x, %z  ret double %y }", "undefined value '%z'"),
    ],
)
def test_text_that_llvm_refuses_is_explained(text: str, reason: str) -> None:
    with pytest.raises(InternalError, match=f"LLVM refuses this kernel.*(?s:.)*{reason}"):
        jit.compile_text(text, ["f"], {})


def test_an_export_that_the_text_lacks_is_named() -> None:
    with pytest.raises(InternalError, match="absent"):
        jit.compile_text(TWICE, ["absent"], {})


# The object cache.


def test_the_second_compilation_comes_from_disk() -> None:
    first, _ = compiled(TWICE, "twice")
    second, twice = compiled(TWICE, "twice")
    assert (first.report.from_cache, second.report.from_cache) == (False, True)
    assert first.report.key == second.report.key
    assert twice(4.0) == 8.0


def test_another_process_finds_the_object() -> None:
    compiled(TWICE, "twice")
    program = (
        "import sys; from dualflow.backends.llvm.runtime import jit;"
        "sys.exit(not jit.compile_text(sys.argv[1], ['twice'], {}).report.from_cache)"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE_ROOT)}
    assert subprocess.run([sys.executable, "-c", program, TWICE], env=environment).returncode == 0


def test_another_text_is_another_object() -> None:
    first, _ = compiled(scaled(2), "scaled")
    second, _ = compiled(scaled(3), "scaled")
    assert first.report.key != second.report.key
    assert not second.report.from_cache


def test_addresses_are_no_part_of_the_object() -> None:
    text = "declare double @mine(double)\ndefine double @f(double %x) {\n"
    text += "  %y = call double @mine(double %x)\n  ret double %y\n}\n"
    for value in (1.0, 2.0):
        callback = UNARY(lambda _, value=value: value)
        address = ctypes.cast(callback, ctypes.c_void_p).value
        assert address is not None
        _library, function = compiled(text, "f", mine=address)
        assert function(0.0) == value


def test_an_entry_that_is_no_object_is_recompiled() -> None:
    key = compiled(TWICE, "twice")[0].report.key
    object_cache.store(key, b"whole, but no object file")
    library, twice = compiled(TWICE, "twice")
    assert not library.report.from_cache
    assert twice(1.0) == 2.0
    assert compiled(TWICE, "twice")[0].report.from_cache


def test_a_report_reports_the_cost() -> None:
    built, _ = compiled(TWICE, "twice")
    loaded, _ = compiled(TWICE, "twice")
    first, second = built.report, loaded.report
    assert min(first.parse_ms, first.optimise_ms, first.emit_ms, first.link_ms) > 0
    assert (second.parse_ms, second.optimise_ms, second.emit_ms) == (0, 0, 0)
    assert second.link_ms > 0
    assert first.object_bytes == second.object_bytes > 0
    assert first.text_bytes == len(TWICE)


# Reading.


def test_a_library_shows_its_code() -> None:
    text = """
        define internal double @half(double %x) alwaysinline {
          %space = alloca double
          store double %x, ptr %space
          %again = load double, ptr %space
          %y = fmul double %again, 0.5
          ret double %y
        }
        define double @f(double %x) { %y = call double @half(double %x)  ret double %y }"""
    library, _ = compiled(text, "f")
    assert library.text == text
    assert not any(word in library.optimised() for word in ("alloca", "@half"))
    assert "mulsd" in library.assembly() or "fmul" in library.assembly()


# Lifetime.


@LINUX_ONLY
def test_dropped_libraries_give_their_memory_back() -> None:
    def resident_kilobytes() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    def growth(count: int) -> int:
        before = resident_kilobytes()
        for _ in range(count):
            compiled(TWICE, "twice")
        gc.collect()
        return resident_kilobytes() - before

    growth(200)
    assert min(growth(400) for _ in range(3)) < 800  # now and then Python allocates more memory of its own


@LINUX_ONLY
def test_the_code_goes_when_the_library_goes() -> None:
    def mapped(address: int) -> bool:
        spans = (line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines())
        return any(int(start, 16) <= address < int(end, 16) for start, end in spans)

    library = jit.compile_text(TWICE, ["twice"], {})
    address = library.address("twice")
    assert mapped(address)
    del library
    gc.collect()
    assert not mapped(address)


# Threads, forks, signals.


def test_threads_compile_at_once() -> None:
    results: dict[int, float] = {}

    def work(factor: int) -> None:
        results[factor] = scaled_one(factor)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {factor: float(factor) for factor in range(1, 9)}


def exit_status_of_fork(body: Callable[[], bool]) -> int:
    """Run ``body`` in a forked child: 0 if it answered True; a child that hangs dies of SIGALRM."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        os._exit(0 if body() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_calls_and_compiles() -> None:
    _library, twice = compiled(TWICE, "twice")
    assert exit_status_of_fork(lambda: twice(1.0) == 2.0) == 0
    assert exit_status_of_fork(lambda: scaled_one(5) == 5.0) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_in_the_middle_of_a_compilation() -> None:
    stop = threading.Event()
    started = threading.Event()

    def compile_on() -> None:
        factor = 100
        while not stop.is_set():
            factor += 1
            scaled_one(factor)
            started.set()

    busy = threading.Thread(target=compile_on)
    busy.start()
    try:
        started.wait()
        codes = [exit_status_of_fork(lambda: scaled_one(7) == 7.0) for _ in range(10)]
    finally:
        stop.set()
        busy.join()
    assert codes == [0] * 10


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize(
    "alarm", [interrupted, lambda *_: signal.raise_signal(signal.SIGINT)], ids=["its own handler", "Ctrl-C"]
)
def test_a_signal_in_a_compilation_leaves_everything_usable(alarm: Any, folder: Path) -> None:
    # A shell starts what runs in the background with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    previous = signal.signal(signal.SIGALRM, alarm)
    interruptions = 0
    kept: list[object] = []  # for Python swallows a Ctrl-C that comes while an object is being freed
    try:
        for attempt in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002 * (1 + attempt % 20))
                kept.extend(compiled(scaled(1000 * attempt + factor), "scaled") for factor in range(40))
            except KeyboardInterrupt:
                interruptions += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, previous)
        after = signal.signal(signal.SIGINT, before)
    assert interruptions > 0
    assert after is signal.default_int_handler
    assert all(path.suffix == ".dfo" for path in folder.glob("*"))
    in_another_thread: list[float] = []
    thread = threading.Thread(target=lambda: in_another_thread.extend(map(scaled_one, range(60))))
    thread.start()
    thread.join()
    assert in_another_thread == [float(factor) for factor in range(60)]
